"""Typed events at the seams, and the bus that carries them. Nobody listening costs one truth test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headrace.core.breaker import BreakerStatus
from headrace.core.settlement import Settlement
from headrace.core.task import ClaimedTask

# By which name the executor of a pool goes, where it has another.
EXECUTORS = {"child": "process"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksClaimed:
    """One event for what a claim brought: one for each task would cost more than counting it."""

    claims: Sequence[ClaimedTask]


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksStarted:
    """These are entered now, or handed to a child that will; with the seconds since each was eligible."""

    started: Sequence[tuple[ClaimedTask, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksFinished:
    """The ledger accepted what came of these claims."""

    finished: Sequence[tuple[ClaimedTask, Settlement]]
    worker: str | None = None  # who held them


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRefused:
    """The claim no longer held: someone else has the task, and this report changed nothing."""

    task: int
    claim_no: int
    worker: str
    act: str  # start, finish


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted:
    worker: str
    queues: tuple[str, ...]
    concurrency: int
    children: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStopped:
    worker: str
    released: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseWasLost:
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescued:
    """A dead worker's tasks were taken from it."""

    worker: str
    by: str
    charged: int
    released: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessDied:
    """A worker process ended without being asked to."""

    worker: str
    pid: int
    exit_code: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopStalled:
    """An event loop did not turn; what it had not started was given back."""

    worker: str
    seconds: float
    released: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLost:
    what: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreBack:
    what: str
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksCreated:
    queue: str
    kind: str
    executor: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsCreated:
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded:
    job: int
    state: str
    took: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFired:
    """A tick was decided: its task is enqueued, or it was left out because an earlier one is unfinished."""

    schedule: str
    tick: datetime
    verdict: str  # enqueue, replace, skip
    task: int | None
    late: float  # seconds after the tick, by the store's clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSetAside:
    """It does not fire until it is written anew. `here`: this scheduler cannot read it, others may well fire it."""

    schedule: str
    problem: str
    here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerMoved:
    """A breaker of this process; `lasts` is for how many seconds an open one refuses."""

    service: str
    state: BreakerStatus
    lasts: float = 0.0


type Event = (
    BreakerMoved
    | TasksCreated
    | JobsCreated
    | JobEnded
    | TasksClaimed
    | TasksStarted
    | TasksFinished
    | ReportRefused
    | WorkerStarted
    | WorkerStopped
    | LeaseWasLost
    | Rescued
    | ProcessDied
    | LoopStalled
    | StoreLost
    | StoreBack
    | ScheduleFired
    | ScheduleSetAside
)
type Listener = Callable[[Event], None]


class Bus:
    """Calls its listeners in the caller's thread. Falsy while nobody listens; `hears` says whether somebody wants the
    events of one kind, so that hot paths can skip the others.
    """

    def __init__(self) -> None:
        self._everything: list[Listener] = []
        self._listeners: dict[type[Any], list[Listener]] = {}

    def __bool__(self) -> bool:
        return bool(self._everything or self._listeners)

    def hears(self, kind: type[Any]) -> bool:
        return bool(self._everything) or kind in self._listeners

    def subscribe(self, listener: Listener, *kinds: type[Any]) -> None:
        """To these kinds of events; to all when none is named."""
        if not kinds:
            self._everything.append(listener)
        for kind in kinds:
            self._listeners.setdefault(kind, []).append(listener)

    def emit(self, event: Event) -> None:
        for listener in self._everything:
            listener(event)
        for listener in self._listeners.get(type(event), ()):
            listener(event)
