"""What spans are made of, without the library that makes them: see `telemetry.opentelemetry`.

enqueue → claim → submit → run → finalize are one trace. The context travels in the options of the task (`trace`), so an
attempt continues the trace of whoever enqueued it, in whatever process it runs. Without tracing there is nothing of it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol

from headrace.core.settlement import Settlement
from headrace.core.task import ClaimedTask, NewTask
from headrace.telemetry.events import Event

OPTION = "trace"  # where the options of a task carry the context


class Attempt(Protocol):
    """A running attempt, as `Context` describes it."""

    @property
    def task_id(self) -> int: ...
    @property
    def claim_no(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def executor(self) -> str: ...

    options: Mapping[str, Any]
    worker: str


class Trace:
    """What a worker remembers of a claim. `span` is the tracer's own; instants are nanoseconds of the wall clock."""

    __slots__ = ("claimed", "settled", "span")

    def __init__(self, span: Any, claimed: int) -> None:
        self.span = span
        self.claimed = claimed
        self.settled = claimed


class Traced(Protocol):
    """A claim in a worker's hands."""

    claim: ClaimedTask
    trace: Trace | None


class Run(Protocol):
    """The span around one attempt."""

    @property
    def environment(self) -> Mapping[str, str]:
        """For programs that the attempt starts: TRACEPARENT and its like."""
        ...

    def failed(self, error_class: str, message: str) -> None:
        """For an attempt that fails without an exception."""
        ...


class Tracing(Protocol):
    def preload(self) -> None:
        """Import what spans need, and start nothing: children are forked after this, and no task waits for it."""
        ...

    def enqueueing(self, tasks: Sequence[NewTask]) -> AbstractContextManager[Sequence[NewTask]]:
        """Around the write of these tasks: yields them with the context that they carry. One span for all."""
        ...

    def claimed(self, claims: Sequence[Traced], *, seconds: float) -> None:
        """These arrived by a claim that took so long; each gets its `trace`."""
        ...

    def submitted(self, claim: Traced, executor: str) -> Mapping[str, str]:
        """It is handed to an executor; the context that its run continues."""
        ...

    def running(self, attempt: Attempt) -> AbstractContextManager[Run]:
        """Around the user's code, where it runs: what it traces itself belongs to this span."""
        ...

    def finalized(self, finished: Sequence[tuple[Traced, Settlement, bool]], *, worker: str) -> None:
        """The ledger has answered: to each settlement whether it was accepted."""
        ...

    def buried(self, event: Event) -> None:
        """A listener to TasksFinished for whoever settles what dead workers held."""
        ...


_LAST_ACTS: list[Callable[[], None]] = []


def before_exit(act: Callable[[], None]) -> None:
    """Have this done by a process that leaves without the interpreter's own end."""
    _LAST_ACTS.append(act)


def flush_before_exit() -> None:
    for act in _LAST_ACTS:
        with suppress(Exception):  # spans are not worth an exit that fails
            act()
