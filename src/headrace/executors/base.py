"""The contract that every executor keeps, and what it is given to run."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from headrace.core.outcome import Outcome
from headrace.core.retry import Retry
from headrace.core.task import ClaimedTask, Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds from the moment user code is entered; None is no limit."""

    soft: float | None = None
    hard: float | None = None


class Entry(Protocol):
    """A callable with what is needed to call it: the worker's view of a task definition."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    retry: Retry

    def load_arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Canonical JSON to typed arguments. Raises ArgumentError."""
        ...

    def dump_result(self, value: Any) -> str:
        """A returned value to canonical JSON. Raises PayloadError."""
        ...

    def inject(self, context: Any, resources: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments that are not part of the payload: resources and the context."""
        ...


class Source(Protocol):
    """Where executors find callables by name; in a child process it is the same app, imported again.

    A child imports `target` ("module:attribute"). The attribute is a Source itself, or has one as its attribute
    `source`. A Source may have a method `resources()` that gives an async context manager of `Mapping[str, Any]`: it is
    entered once per child, before the first task, and left when the child is retired. One with a method `ledger` (see
    executors.ledger.Keeper) lets tasks use durable steps. One with a number `revision` gives the same entries for the
    same names and options until that changes, so that a worker need not ask for each task.
    """

    def resolve(self, name: str, options: Mapping[str, Any]) -> Entry:
        """Raises UnknownTask, or EntrypointError for a dotted path that cannot be imported."""
        ...


_NO_LIMITS, _DEFAULT_POLICY = Limits(), Retry()


class Launch(NamedTuple):
    """One attempt to run. A tuple, as is what comes of it: one of each is made per task."""

    claim: ClaimedTask
    entry: Entry | None  # None for commands, and in the parent of a child that resolves the name itself
    options: Mapping[str, Any]
    limits: Limits = _NO_LIMITS
    policy: Retry = _DEFAULT_POLICY

    @property
    def ref(self) -> Ref:
        return Ref(self.claim.id, self.claim.claim_no)


class Ran(NamedTuple):
    """What came of a launch. `ran_for` is None when user code was never entered.

    `unknown` with Released: nobody registered the name in the process that was to run it; the worker chooses the delay.
    """

    outcome: Outcome
    ran_for: float | None = None
    unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    kill: bool = False  # a blocking call can be ended without ending the worker process
    pause: bool = False
    adopt: bool = False  # a durable handle lets another worker take over a running attempt


class Executor(Protocol):
    """`run` never raises for what user code did; the outcome says it. `stop` makes `run` return soon."""

    name: str
    capabilities: Capabilities

    async def open(self) -> None: ...

    async def close(self) -> None:
        """End whatever still runs. Idempotent."""
        ...

    def free(self) -> int:
        """How many more launches can start now."""
        ...

    async def run(self, launch: Launch) -> Ran:
        """Never cancel the asyncio task that awaits this to end an attempt: call `stop`. A cancellation from outside
        (the loop shuts down) ends the attempt without an outcome.
        """
        ...

    async def stop(self, ref: Ref, *, grace: float, reason: str = "user") -> None:
        """Tell a running attempt to stop; after `grace` seconds end it by force where that can be done.

        Returns at once; `run` returns the outcome: Cancelled with `reason`, or what the attempt came to before it
        could be stopped. An attempt that is not here is ignored. One that has not entered user code yet gives
        Cancelled with ran_for None.
        """
        ...


@runtime_checkable
class Queueing(Protocol):
    """An executor whose launches may wait inside of it before their code is entered."""

    def inside(self, ref: Ref) -> bool:
        """Whether user code of this attempt has been entered and not left."""
        ...


@runtime_checkable
class Batching(Protocol):
    """An executor that hands out launches ahead of their turn."""

    def release_unstarted(self) -> None:
        """Give back whatever has not entered user code: its `run` returns Released."""
        ...


@runtime_checkable
class Immediate(Protocol):
    """An executor that runs in the caller's own thread of control, until the code first waits."""

    def begin(self, launch: Launch) -> Ran | Coroutine[Any, Any, Ran]:
        """What came of it when it ended without waiting, else what to await at once for the rest."""
        ...
