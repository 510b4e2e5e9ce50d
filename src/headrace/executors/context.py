"""What a running task knows of itself, and how its words travel.

`current` works wherever the task's code runs: in its coroutine and the tasks that it starts, in a thread, in a child
process. What it says goes to a `Channel`: the worker's own object, or in a child one that writes to the pipe.
"""

import math
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from mmap import mmap
from typing import Any, Literal, Protocol, cast

from headrace.core.errors import NoCurrentTask
from headrace.core.task import ClaimedTask, Ref
from headrace.telemetry.events import EXECUTORS
from headrace.telemetry.running import SOURCES, fields_of

type Level = Literal["debug", "info", "warning", "error", "critical"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One call of `current.log`. `at` is seconds since the epoch by the clock of the host."""

    at: float
    message: str
    level: Level = "info"
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    value: float
    total: float | None = None
    message: str | None = None


class Channel(Protocol):
    """Where a running task's words go. Executors call it on the thread of the event loop only."""

    def log(self, ref: Ref, line: LogLine, /) -> None: ...

    def progress(self, ref: Ref, progress: Progress, /) -> None: ...

    def heartbeat(self, ref: Ref, /) -> None: ...


class QuietChannel:
    """Drops everything."""

    def log(self, ref: Ref, line: LogLine, /) -> None:
        pass

    def progress(self, ref: Ref, progress: Progress, /) -> None:
        pass

    def heartbeat(self, ref: Ref, /) -> None:
        pass


class Control:
    """What executors and signal handlers know of a running attempt; nothing here is for the user.

    `soft_at` is an instant of CLOCK_MONOTONIC. `open` is true while user code runs: only then may an exception be
    raised into it. `mark` is where a coroutine's steps are marked (see SlotTable.mark), for those of its sub-tasks.
    """

    __slots__ = ("interrupted", "mark", "on_interrupted", "open", "soft_at", "stop_raised", "stop_reason")

    def __init__(self) -> None:
        self.soft_at = math.inf
        self.open = False
        self.mark: tuple[mmap | bytearray, int] | None = None
        self.interrupted = False
        self.on_interrupted: Callable[[], None] | None = None
        self.stop_reason: str | None = None
        self.stop_raised = False


class Context:
    """The running attempt. A parameter annotated `Context` is injected; `current` is the same object."""

    __slots__ = ("_channel", "_claim", "control", "options", "worker")

    def __init__(self, claim: ClaimedTask, *, channel: Channel, options: Mapping[str, Any], worker: str) -> None:
        self._claim = claim
        self._channel = channel
        self.options = options
        self.worker = worker
        self.control = Control()

    @property
    def task_id(self) -> int:
        return self._claim.id

    @property
    def claim_no(self) -> int:
        return self._claim.claim_no

    @property
    def attempt(self) -> int:
        """The number of this attempt among those that count: 1 for the first."""
        return self._claim.attempt + 1

    @property
    def max_attempts(self) -> int:
        return self._claim.max_attempts

    @property
    def name(self) -> str:
        return self._claim.name

    @property
    def queue(self) -> str:
        return self._claim.queue

    @property
    def executor(self) -> str:
        """What runs it: coroutine, process, thread or command."""
        return EXECUTORS.get(self._claim.pool, self._claim.pool)

    @property
    def job_id(self) -> int | None:
        return self._claim.job

    @property
    def run_no(self) -> int:
        return self._claim.run_no

    @property
    def metadata(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.options.get("metadata") or {})

    @property
    def cancelled(self) -> bool:
        """Whether this attempt was told to stop; a loop that asks can end cleanly."""
        return self.control.stop_reason is not None

    def log(self, message: str, *, level: Level = "info", **fields: Any) -> None:
        """Add a line to the log of this attempt."""
        line = LogLine(at=time.time(), message=str(message), level=level, fields=fields)
        self._channel.log(Ref(self._claim.id, self._claim.claim_no), line)

    def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        """Say how far it is; only the last value is kept."""
        said = Progress(
            value=_plain(value),
            total=None if total is None else _plain(total),
            message=None if message is None else str(message),
        )
        self._channel.progress(Ref(self._claim.id, self._claim.claim_no), said)

    def heartbeat(self) -> None:
        """Say that it is alive, where nothing else does."""
        self._channel.heartbeat(Ref(self._claim.id, self._claim.claim_no))

    def __repr__(self) -> str:
        return f"<Context {self.name} task={self.task_id} attempt={self.attempt}/{self.max_attempts}>"


def _plain(number: float) -> float:
    """A Decimal or another library's number as one that every process and database knows; what is none raises here."""
    return number if type(number) in (int, float) else float(number)


running: ContextVar[Context | None] = ContextVar("headrace_running", default=None)


def running_context() -> Context:
    """The context of the task that runs here, or NoCurrentTask."""
    context = running.get()
    if context is None:
        raise NoCurrentTask(
            "no task runs here: `current` works inside a task, in the coroutines and threads that it starts "
            "with its context (asyncio.to_thread does; a bare thread needs contextvars.copy_context().run)"
        )
    return context


def _describe() -> dict[str, Any] | None:
    context = running.get()
    return None if context is None else fields_of(context._claim, worker=context.worker)  # pyright: ignore[reportPrivateUsage]


SOURCES.attempt = _describe


class _Current:
    """Stands for the context of whatever task runs here."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(running_context(), name)

    def __repr__(self) -> str:
        context = running.get()
        return "<current: no task runs here>" if context is None else f"<current: {context!r}>"


current: Context = cast("Context", _Current())
