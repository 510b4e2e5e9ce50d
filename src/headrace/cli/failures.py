"""From an error to one line on stderr and an exit code that scripts can use."""

import sys
from collections.abc import Callable
from typing import Any

from headrace.core.errors import HeadraceError, NotFound, StoreError

OK, FAILED, USAGE, NOT_FOUND, UNAVAILABLE, INTERRUPTED = 0, 1, 2, 3, 4, 130

# What each means, for `headrace --help` and the reference.
EXIT_CODES = {
    OK: "done",
    FAILED: "the act failed, or something is wrong (doctor, health, db check, tasks that were not changed)",
    USAGE: "wrong usage: an unknown option, a wrong value, no such module or App",
    NOT_FOUND: "no task, job, worker, schedule or breaker of that name",
    UNAVAILABLE: "no store to be had: not reachable, no schema, one newer than this code, a missing extra",
    INTERRUPTED: "ended by Ctrl-C",
}


class CommandError(HeadraceError):
    """What the user asked for cannot be done as asked; the message says why and what to do."""

    def __init__(self, message: str, *, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


def explained(run: Callable[[], Any]) -> int:
    """Run the command; every error that headrace names becomes one line, everything else keeps its traceback."""
    try:
        run()
    except CommandError as error:
        return _say(error, error.code)
    except NotFound as error:
        return _say(error, NOT_FOUND)
    except StoreError as error:
        return _say(error, UNAVAILABLE)
    except HeadraceError as error:
        return _say(error, FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    return OK


def _say(error: Exception, code: int) -> int:
    from rich.console import Console
    from rich.markup import escape

    from headrace.cli.output import redacted

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[bold red]headrace:[/] {escape(redacted(str(error)))}")
    sys.stderr.flush()
    return code
