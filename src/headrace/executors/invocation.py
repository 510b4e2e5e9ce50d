"""`prepare -> call -> outcome`: what every executor of functions does around user code.

Whatever user code does, the answer is an outcome; nothing here lets an exception of its through.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from headrace.core.classification import class_path
from headrace.core.errors import (
    BreakerOpen,
    DurableError,
    HeadraceError,
    NoCurrentTask,
    PayloadError,
    SoftTimeLimitExceeded,
    UnknownTask,
)
from headrace.core.memory import shown_memory
from headrace.core.outcome import (
    Cancel,
    Cancelled,
    Completed,
    Failed,
    Outcome,
    Released,
    Retried,
    RetryAfter,
    Snooze,
    Snoozed,
)
from headrace.core.retry import ErrorKind, ErrorSignature, Retry
from headrace.core.states import AttemptState, Reason
from headrace.core.task import ErrorInfo
from headrace.executors.base import Entry, Launch, Ran, Source
from headrace.executors.context import Channel, Context, QuietChannel
from headrace.executors.suspension import suspended_by, swallowed
from headrace.executors.tracebacks import traceback_of
from headrace.telemetry.tracing import Tracing

RESULT_LIMIT = 16 * 1024 * 1024
MESSAGE_LIMIT = 8 * 1024
TRACEBACK_LIMIT = 64 * 1024
_BREAKER_DELAY = 5.0
_CONTROL = (Snooze, RetryAfter, Cancel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What a worker process lends its executors.

    `result_limit` is in bytes of JSON; a larger result fails the attempt rather than the process or the database.
    """

    channel: Channel = field(default_factory=QuietChannel)
    resources: Mapping[str, Any] = field(default_factory=dict[str, Any])
    worker: str = ""
    result_limit: int = RESULT_LIMIT
    source: Source | None = None  # has the ledger of durable calls, where there is one
    tracing: Tracing | None = None  # for what has no function that middleware could wrap


class Call(NamedTuple):
    """An entry and the arguments it is called with."""

    entry: Entry
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self) -> Any:
        return self.entry.function(*self.args, **self.kwargs)


def resolve(source: Source, name: str, options: Mapping[str, Any], policy: Retry) -> Entry | Ran:
    """The entry of that name. A name nobody registered goes back uncharged; a path that does not import fails."""
    try:
        return source.resolve(name, options)
    except UnknownTask:
        return Ran(outcome=Released(), unknown=True)
    except BaseException as error:
        return Ran(outcome=permanent(error, policy))


def prepare(launch: Launch, entry: Entry, context: Context, resources: Mapping[str, Any]) -> Call | Ran:
    """Arguments that do not load, or resources that are missing, will not be there at the next attempt either."""
    try:
        args, kwargs = entry.load_arguments(launch.claim.arguments)
        injected = entry.inject(context, resources)
    except BaseException as error:
        return Ran(outcome=permanent(error, launch.policy))
    if injected:
        kwargs = {**kwargs, **injected}
    return Call._make((entry, args, kwargs))


def outcome_of_value(
    value: Any, entry: Entry, policy: Retry, context: Context, result_limit: int = RESULT_LIMIT
) -> Outcome:
    durable = context.durable
    if durable is not None and durable.suspend is not None:
        return permanent(swallowed(context.claim, durable.suspend), policy)
    if isinstance(value, _CONTROL):
        return _outcome_of_control(value, policy)
    try:
        text = entry.dump_result(value)
    except BaseException as error:
        return permanent(error, policy)
    # A character takes at most four bytes, so almost every result is measured without being encoded.
    if len(text) * 4 <= result_limit:
        return Completed(result=text)
    return _within_limit(text, entry.name, result_limit, policy)


def _outcome_of_control(value: Snooze | RetryAfter | Cancel, policy: Retry) -> Outcome:
    try:
        match value:
            case Snooze():
                return Snoozed(delay=value.duration.total_seconds())
            case RetryAfter():
                return Retried(delay=value.duration.total_seconds(), message=_limited(value.reason, MESSAGE_LIMIT))
            case Cancel():
                # `user`: the task's own author decided; the words stand in the message.
                return Cancelled(reason=Reason.USER, message=_limited(str(value.reason), MESSAGE_LIMIT))
    except Exception as error:  # Snooze("soon") is the task's mistake
        return permanent(error, policy)


def _within_limit(text: str, name: str, limit: int, policy: Retry) -> Outcome:
    size = len(text) if len(text) > limit else len(text.encode())
    if size <= limit:
        return Completed(result=text)
    return permanent(
        PayloadError(
            f"the result of {name} has {size:,} bytes and the limit is {limit:,}: "
            "store it yourself and return where it is, or configure a place for large results"
        ),
        policy,
    )


def outcome_of_exception(error: BaseException, policy: Retry, *, stop_reason: str | None = None) -> Outcome:
    """What an exception that left user code means. `stop_reason` is set when the attempt was told to stop."""
    if stop_reason is not None and isinstance(error, asyncio.CancelledError | Stopped):
        return Cancelled(reason=stop_reason)
    if (suspended := suspended_by(error)) is not None:
        return suspended
    if isinstance(error, BreakerOpen):
        return Released(delay=_breaker_delay(error), attempt=AttemptState.RELEASED)
    if isinstance(error, DurableError | NoCurrentTask):
        return permanent(error, policy)  # the task is written wrongly, and stays so
    signature = signature_of(error, policy)
    if signature.kind == "error" and _holds_soft_limit(error):
        signature = ErrorSignature(kind="soft_timeout", mro=signature.mro, verdict=signature.verdict)
    return Failed(error=error_info(error), signature=signature)


def _holds_soft_limit(error: BaseException) -> bool:
    """A task group wraps what was raised inside it; it is still the soft limit."""
    if not isinstance(error, BaseExceptionGroup):
        return isinstance(error, SoftTimeLimitExceeded)
    return any(_holds_soft_limit(part) for part in cast("BaseExceptionGroup[BaseException]", error).exceptions)


class Stopped(BaseException):
    """Raised into a `def` that was told to stop. Not an Exception, so that `except Exception` lets it through."""


def permanent(error: BaseException, policy: Retry) -> Failed:
    """A failure that another attempt would only repeat."""
    found = signature_of(error, policy)
    return Failed(error=error_info(error), signature=ErrorSignature(kind="error", mro=found.mro, verdict="permanent"))


def timed_out(seconds: float | None, *, detail: BaseException | None = None) -> Failed:
    """The hard limit; the verdict of whoever ended the attempt."""
    limit = "" if seconds is None else f" of {seconds:g} s"
    return Failed(
        error=ErrorInfo(
            error_class="headrace.TimeLimitExceeded",
            message=f"it ran longer than its hard limit{limit} and was ended; raise `timeout`, or do less in one task",
            traceback=None if detail is None else error_info(detail).traceback,
        ),
        signature=failure(kind="timeout"),
    )


def out_of_memory(used: int, limit: int) -> Failed:
    """The hard limit of a child's memory; the verdict of whoever killed it."""
    return Failed(
        error=ErrorInfo(
            error_class="headrace.MemoryLimitExceeded",
            message=f"its child process had {shown_memory(used)} in use, more than the {shown_memory(limit)} of "
            "--kill-memory, and was killed; raise that, or let the task hold less at a time",
        ),
        signature=failure(kind="oom"),
    )


def failure(*, kind: ErrorKind = "error") -> ErrorSignature:
    """The signature of a failure without an exception."""
    return ErrorSignature(kind=kind)


def signature_of(error: BaseException, policy: Retry) -> ErrorSignature:
    try:
        return ErrorSignature.of(error, policy)
    except Exception:  # exceptions with hostile attributes; the failure itself still counts
        return ErrorSignature(mro=tuple(class_path(base) for base in type(error).__mro__))


def error_info(error: BaseException) -> ErrorInfo:
    """An exception as data that any database can hold."""
    return ErrorInfo(
        error_class=_limited(_public_path(type(error)), 500),
        message=_limited(_message_of(error), MESSAGE_LIMIT),
        traceback=_limited(traceback_of(error), TRACEBACK_LIMIT),
    )


def _public_path(cls: type[BaseException]) -> str:
    """Our own errors under the name by which users import them."""
    return f"headrace.{cls.__qualname__}" if issubclass(cls, HeadraceError) and _is_ours(cls) else class_path(cls)


def _is_ours(cls: type) -> bool:
    return cls.__module__ == HeadraceError.__module__


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as broken:
        return f"(its message cannot be shown: {type(broken).__qualname__})"


def visible(text: str) -> str:
    """NUL, which PostgreSQL refuses, and lone surrogates, which are not UTF-8, as escapes."""
    if "\0" in text:
        text = text.replace("\0", "\\x00")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _limited(text: str, limit: int) -> str:
    if len(text) > limit:
        # The end of a traceback says what happened, its beginning where from.
        head = limit // 4
        text = f"{text[:head]}\n… {len(text) - limit:,} characters left out …\n{text[len(text) - (limit - head) :]}"
    return visible(text)


def _breaker_delay(error: BreakerOpen) -> float:
    if error.delay is not None:
        return max(0.0, error.delay)
    if error.until is not None:
        return max(0.0, (error.until - datetime.now(UTC)).total_seconds())
    return _BREAKER_DELAY
