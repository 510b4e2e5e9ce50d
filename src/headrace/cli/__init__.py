"""The command line: one file per group of commands, output as a table, as JSON or as little as possible.

Exit codes: 0 done · 1 the act failed or found something wrong · 2 wrong usage · 3 not found · 4 no store to be had.
"""

import sys


def main() -> None:
    """Entry point of the `headrace` command."""
    from headrace.cli.failures import explained
    from headrace.cli.root import application

    sys.exit(explained(application))
