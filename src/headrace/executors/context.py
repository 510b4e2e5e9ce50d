"""What a running task knows of itself, and how its words travel.

`current` works wherever the task's code runs: in its coroutine and the tasks that it starts, in a thread, in a child
process. What it says goes to a `Channel`: the worker's own object, or in a child one that writes to the pipe.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from mmap import mmap
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from headrace.core.durations import Duration
from headrace.core.errors import NoCurrentTask, PayloadError
from headrace.core.live import VALUES
from headrace.core.payload import dumps
from headrace.core.task import ClaimedTask, Ref
from headrace.executors.ledger import Ledger
from headrace.telemetry.events import EXECUTORS
from headrace.telemetry.running import SOURCES, fields_of

if TYPE_CHECKING:
    from headrace.executors.durable import Durable

MOST_VALUES = 100_000
MOST_VALUE_BYTES = 16_000_000

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

    def stream(self, ref: Ref, value: str, /) -> None:
        """A value as JSON text."""
        ...

    def heartbeat(self, ref: Ref, /) -> None: ...


class QuietChannel:
    """Drops everything."""

    def log(self, ref: Ref, line: LogLine, /) -> None:
        pass

    def progress(self, ref: Ref, progress: Progress, /) -> None:
        pass

    def stream(self, ref: Ref, value: str, /) -> None:
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

    __slots__ = ("__weakref__", "_channel", "_claim", "_source", "_streamed", "control", "durable", "options", "worker")

    def __init__(
        self,
        claim: ClaimedTask,
        channel: Channel,
        options: Mapping[str, Any],
        worker: str,
        source: object | None = None,
    ) -> None:
        self._claim = claim
        self._channel = channel
        self._source = source
        self._streamed: tuple[int, int] | None = None  # values and bytes so far
        self.options = options
        self.worker = worker
        self.control = Control()
        self.durable: Durable | None = None  # once it has made a durable call; for executors

    @property
    def claim(self) -> ClaimedTask:
        """What executors know of it."""
        return self._claim

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
        if str(level) == VALUES:
            raise ValueError(f"{level!r} is the level of what current.stream() says; give another one to current.log()")
        self.say(LogLine(at=time.time(), message=str(message), level=level, fields=fields))

    def say(self, line: LogLine) -> None:
        """What `log` and the capture of `logging` come to."""
        self._channel.log(Ref(self._claim.id, self._claim.claim_no), line)

    def stream(self, value: object) -> None:
        """Give a value to whoever follows `handle.stream()`, within a moment and in order.

        PayloadError where JSON cannot carry it, and where this attempt has given more than 100,000 values or 16 MB:
        what is large belongs into the result, or elsewhere.
        """
        text = dumps(value)
        count, size = self._streamed or (0, 0)
        count, size = count + 1, size + len(text)
        if count > MOST_VALUES or size > MOST_VALUE_BYTES:
            raise PayloadError(
                f"task {self.task_id} ({self.name}) has streamed all that one attempt may: {MOST_VALUES:,} values or "
                f"{MOST_VALUE_BYTES // 1_000_000} MB; join them into fewer, or store them elsewhere"
            )
        self._streamed = (count, size)
        self._channel.stream(Ref(self._claim.id, self._claim.claim_no), text)

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

    # Durable steps. In an `async def` each of them is awaited; where no loop runs it blocks and gives the value itself.

    def step[**P](self, name: str, fn: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call `fn` and store what it returns under this name, once: later attempts get the stored value, and `fn` is
        not called again. The name must be unique within the task. The value goes through JSON, like a result.

        When the process dies after `fn` has run and before its value is stored, `fn` runs again: make its effect
        idempotent (`current.task_id` with the name of the step is a key for that).
        """
        durable = self._durable("step")
        name, awaited = durable.named("step", name), _is_on_a_loop()
        return durable.done("step", durable.step(name, fn, args, kwargs, awaited=awaited), awaited=awaited)

    def sleep(self, duration: Duration, *, name: str | None = None) -> Any:
        """Give the slot back and go on after so long, counted from the first time."""
        durable = self._durable("sleep")
        return durable.done("sleep", durable.sleep(durable.named("sleep", name), duration), awaited=_is_on_a_loop())

    def wait(self, event: str, key: str = "", timeout: Duration | None = None, *, name: str | None = None) -> Any:
        """Give the slot back until `app.send(event, key, payload)`: the payload. WaitTimeout after `timeout`.

        The event may have been sent before: each wait takes the oldest that was sent since the task was enqueued and
        that no other wait of the task has taken.
        """
        durable = self._durable("wait")
        program = durable.wait(durable.named("wait", name), event, key, timeout)
        return durable.done("wait", program, awaited=_is_on_a_loop())

    def call(self, call: Any, *, name: str | None = None) -> Any:
        """Run another task, `current.call(child.s(1))`, and give the slot back until it has ended: its result.

        TaskFailed or TaskCancelled when it has none. In a job, the child belongs to the same job.
        """
        durable = self._durable("call")
        program = durable.call(durable.named("call", name), call)
        return durable.done("call", program, awaited=_is_on_a_loop())

    @property
    def job(self) -> Any:
        """The job of this task: `current.job.add(other.s(1))`. NoCurrentTask where it belongs to none."""
        if self._claim.job is None:
            raise NoCurrentTask(
                f"there is no current job: task {self.task_id} ({self.name}) belongs to none; "
                "enqueue it as a job: task.s(…).enqueue()"
            )
        return self._ledger("job").job()

    def _durable(self, act: str) -> "Durable":
        if self.durable is None:
            # Imported here: a task without durable calls pays nothing for them.
            from headrace.executors.durable import Durable

            self.durable = Durable(self._claim, self._ledger(act))
        return self.durable

    def _ledger(self, act: str) -> Ledger:
        make = getattr(self._source, "ledger", None)
        if make is None:
            raise NoCurrentTask(
                f"current.{act} needs a ledger, and what runs task {self.task_id} ({self.name}) has none"
            )
        return make(self._claim, self.worker)

    def __repr__(self) -> str:
        return f"<Context {self.name} task={self.task_id} attempt={self.attempt}/{self.max_attempts}>"


def _is_on_a_loop() -> bool:
    """Whether what is called here is to be awaited: a loop runs on this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


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
