"""Log lines of workers, as text or as JSON: with the attempt they are about, and without secrets.

It is a handler of the standard library's `logging`, so what tasks log by it goes the same way: on the loop, in threads
and in children. Nothing is configured in a process that only enqueues.
"""

import json
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast, override

from headrace.telemetry.redaction import DEFAULT, Redaction
from headrace.telemetry.running import running_fields

type LogFormat = Literal["console", "json"]

LEVELS: Mapping[str, int] = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": 40}
FORMATS: tuple[LogFormat, ...] = ("console", "json")
VARIABLE = "HEADRACE_WORKER_LOGS"  # from a worker process to the children that it starts
FIELDS = ("task_id", "attempt", "queue", "worker", "runner_type", "ray_job_id", "log_ref", "trace_id", "span_id")
_ATTRIBUTE = "headrace"
_SHOWN = {"task_id": "task", "attempt": "attempt", "queue": "queue", "worker": "worker", "runner_type": "runner"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    level: str = "info"
    format: LogFormat = "console"


class _Rules:
    """The rules of the app that this process serves, once it is imported."""

    redaction: Redaction = DEFAULT
    configured = False


def configure(options: LogOptions, *, inherited: bool = False) -> None:
    """For a worker's own processes, before the user's module is imported: what that configures comes after it, and
    where it took the handlers of the root away, it stays so. `inherited`: children are to do the same.
    """
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if handler.get_name() == _ATTRIBUTE]
    if _Rules.configured and not ours:
        return
    _Rules.configured = True
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if options.format == "json" else ConsoleLines())
    handler.addFilter(_worth_a_line)
    for old in ours:
        root.removeHandler(old)
    handler.set_name(_ATTRIBUTE)
    root.addHandler(handler)
    level = LEVELS[options.level]
    # What tasks log comes from loggers of any name. The handler has the level, too: see lower_root.
    handler.setLevel(min(level, logging.WARNING))
    root.setLevel(min(level, logging.WARNING))
    logging.getLogger("headrace").setLevel(level)
    if inherited:
        os.environ[VARIABLE] = json.dumps(asdict(options))


def lower_root(level: int) -> int | None:
    """Let records of that level come to the handlers of the root, where nobody else's handlers would hear more by it;
    the level that it had, if it was changed.
    """
    root = logging.getLogger()
    before = root.level
    if before <= level or any(found.get_name() != _ATTRIBUTE for found in root.handlers):
        return None
    root.setLevel(level)
    return before


def configure_child() -> None:
    """As the worker process that started this one, if it said so."""
    if text := os.environ.get(VARIABLE):
        configure(LogOptions(**json.loads(text)))


def use_redaction(source: object) -> None:
    """From now on by the rules of this app; those who have none keep the built-in ones."""
    found = getattr(source, "redaction", None)
    _Rules.redaction = found if isinstance(found, Redaction) else DEFAULT


def redaction() -> Redaction:
    """The rules of the app that this process serves."""
    return _Rules.redaction


def about(fields: Mapping[str, Any]) -> dict[str, Any]:
    """For `extra=` of a log call: the attempt that the line is about."""
    return {_ATTRIBUTE: fields}


class TaskFields(logging.Filter):
    """For a logging configuration of your own: gives every record `task_id`, `attempt`, `queue`, `worker`,
    `runner_type`, `ray_job_id`, `log_ref`, `trace_id` and `span_id`, None where there is nothing to say.
    """

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        found = _fields(record)
        for name in FIELDS:
            if not hasattr(record, name):
                setattr(record, name, found.get(name))
        return True


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    found: Any = getattr(record, _ATTRIBUTE, None)
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else running_fields() or {}


def _worth_a_line(record: logging.LogRecord) -> bool:
    """What libraries say beside any task is of interest from WARNING on."""
    if record.levelno >= logging.WARNING or record.name.partition(".")[0] == "headrace":
        return True
    return "task_id" in _fields(record)


class _Lines(logging.Formatter):
    """Each part is redacted by itself: the name of a logger (`shop.auth`) is not that of a value. The text of an
    exception is made here: `record.exc_text` is what another handler, which redacts nothing, made of it.
    """

    def message_of(self, record: logging.LogRecord) -> str:
        try:
            message = record.getMessage()
        except Exception:  # its arguments do not fit
            message = str(record.msg)
        return _Rules.redaction.text(message)

    def exception_of(self, record: logging.LogRecord) -> str:
        return _Rules.redaction.text(self.formatException(record.exc_info)) if record.exc_info else ""

    def stack_of(self, record: logging.LogRecord) -> str:
        return _Rules.redaction.text(self.formatStack(record.stack_info)) if record.stack_info else ""


class ConsoleLines(_Lines):
    @override
    def format(self, record: logging.LogRecord) -> str:
        line = f"{self.formatTime(record)} {record.levelname} {record.name}: {self.message_of(record)}"
        fields = _fields(record)
        words = [f"{word}={found}" for name, word in _SHOWN.items() if (found := fields.get(name)) is not None]
        if trace := fields.get("trace_id"):
            words.append(f"trace={trace}")
        if words:
            line = f"{line} [{' '.join(words)}]"
        return "\n".join(part for part in (line, self.exception_of(record), self.stack_of(record)) if part)


class JsonLines(_Lines):
    """One object a line. What a task gave as `extra=` is in `extra`."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.message_of(record),
            "pid": record.process,
            **_fields(record),
        }
        if extra := {name: value for name, value in vars(record).items() if name not in _STANDARD}:
            line["extra"] = _Rules.redaction.value(extra)
        if exception := self.exception_of(record):
            line["exception"] = exception
        if stack := self.stack_of(record):
            line["stack"] = stack
        return json.dumps(line, ensure_ascii=False, default=str, separators=(",", ":"))


_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", _ATTRIBUTE, *FIELDS}
