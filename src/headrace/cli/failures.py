"""From an error to one line on stderr and an exit code that scripts can use."""

import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.markup import escape

from headrace.cli.output import redacted
from headrace.core.errors import HeadraceError, NotFound, StoreError

OK, FAILED, USAGE, NOT_FOUND, UNAVAILABLE = 0, 1, 2, 3, 4


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
        return 130
    return OK


def _say(error: Exception, code: int) -> int:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[bold red]headrace:[/] {escape(redacted(str(error)))}")
    sys.stderr.flush()
    return code
