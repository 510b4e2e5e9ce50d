"""What tasks say by the standard library's `logging` becomes lines of their attempt.

One handler on the root logger, in processes of workers only. A record belongs to the task in whose context it was made:
on the loop, in a thread, in a child. Without a running task it costs the look at one context variable.
"""

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, cast, override

from headrace.executors.context import Level, LogLine, running
from headrace.telemetry.logs import LEVELS, lower_root

OFF = "off"
DEFAULT = "info"
_NAME = "headrace-tasks"
_OWN = "headrace"
# Names that `current.log` knows, by the lowest number of each.
_BY_NUMBER: tuple[tuple[int, Level], ...] = (
    (logging.CRITICAL, "critical"),
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO, "info"),
)


class TaskLines(logging.Handler):
    """Secrets are taken out where the lines are written, as of every other line."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.set_name(_NAME)
        self.users = 0
        self.root_was: int | None = None  # the level of the root, where it was changed
        self._inside = threading.local()

    @override
    def handle(self, record: logging.LogRecord) -> bool:
        """Without the lock of a handler: a channel is safe to use from everywhere, and may log by itself."""
        if running.get() is not None and self.filter(record):
            self.emit(record)
        if record.levelno >= logging.WARNING and logging.lastResort is not None and self._is_alone(record.name):
            # Where nothing is configured, warnings go to the standard error, and they still do.
            logging.lastResort.handle(record)
        return True

    def _is_alone(self, name: str) -> bool:
        logger: logging.Logger | None = logging.getLogger(name)
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return False
            logger = logger.parent
        return True

    @override
    def emit(self, record: logging.LogRecord) -> None:
        context = running.get()
        # Its own loggers tell of the engine, and a line about a line would have no end.
        if context is None or record.name.partition(".")[0] == _OWN or getattr(self._inside, "busy", False):
            return
        self._inside.busy = True
        try:
            context.say(LogLine(at=record.created, message=self._text(record), level=_level(record.levelno)))
        except Exception:  # a line that cannot be kept is no failure of the task
            self.handleError(record)
        finally:
            self._inside.busy = False

    def _text(self, record: logging.LogRecord) -> str:
        """The message and the exception. `record.exc_text` may be what a handler of the user's made of it."""
        try:
            message = record.getMessage()
        except Exception:  # its arguments do not fit
            message = str(record.msg)
        if record.exc_info:
            with suppress(Exception):
                message = f"{message}\n{logging.Formatter().formatException(record.exc_info)}"
        return message


def _level(number: int) -> Level:
    for least, name in _BY_NUMBER:
        if number >= least:
            return name
    return "debug"


def level_of(source: object) -> str:
    """What the app's settings say."""
    found: Any = getattr(getattr(source, "settings", None), "task_log_level", DEFAULT)
    return cast("str", found) if found in LEVELS or found == OFF else DEFAULT


def capture_logging(level: str) -> TaskLines | None:
    """From now on, in this process; the handler, for `release`."""
    if level == OFF:
        return None
    number = LEVELS[level]
    root = logging.getLogger()
    for handler in root.handlers:
        if isinstance(handler, TaskLines):
            handler.setLevel(min(handler.level, number))
            handler.users += 1
            return handler
    handler = TaskLines(number)
    handler.users = 1
    handler.root_was = lower_root(number)
    root.addHandler(handler)
    return handler


def release(handler: TaskLines | None) -> None:
    if handler is not None:
        handler.users -= 1
        if not handler.users:
            root = logging.getLogger()
            root.removeHandler(handler)
            if handler.root_was is not None and root.level == handler.level:
                root.setLevel(handler.root_was)


@contextmanager
def captured_logging(level: str) -> Generator[None]:
    handler = capture_logging(level)
    try:
        yield
    finally:
        release(handler)
