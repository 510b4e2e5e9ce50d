"""The command line: one file per group of commands, output as a table, as JSON or as little as possible.

Exit codes: 0 done · 1 the act failed or found something wrong · 2 wrong usage · 3 not found · 4 no store to be had.
"""

import sys


def main() -> None:
    """Entry point of the `headrace` command."""
    works = "--reload" not in sys.argv or "--reload-channel" in sys.argv  # else it only watches those that work
    if sys.argv[1:2] in (["worker"], ["up"]) and works and "--help" not in sys.argv:
        # Its first process imports while this one reads the command line; it ends by itself when that is wrong.
        from headrace.worker.spawning import prepare

        prepare()
    from headrace.cli.failures import explained
    from headrace.cli.root import application

    sys.exit(explained(application))
