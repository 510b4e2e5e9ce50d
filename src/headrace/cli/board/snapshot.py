"""One look at the ledger, and how fast work ends between two of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from headrace.core.states import TaskState
from headrace.core.task import QueueRecord, TaskFilter, TaskRecord, WorkerRecord
from headrace.store.base import Store

_FAILURES = 20
_FIRES = 20
_NEVER = datetime.max.replace(tzinfo=UTC)
_WINDOW = 10.0  # seconds over which a rate is taken
_LIVE = ("active", "idle", "stopping")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    """The next time that a schedule enqueues its task."""

    schedule: str
    task: str
    at: datetime | None
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    at: datetime  # by the store's clock
    queues: Sequence[QueueRecord]
    workers: Sequence[WorkerRecord]
    failures: Sequence[TaskRecord]
    fires: Sequence[Fire] = ()


class Rate(NamedTuple):
    """Tasks a second, as the workers counted them in the transactions that ended them."""

    completed: float = 0.0
    failed: float = 0.0


async def look(store: Store) -> Snapshot:
    """None of these grows with history or with the backlog."""
    return Snapshot(
        at=await store.now(),
        queues=await store.queues(),
        workers=await store.workers(states=_LIVE),
        failures=await store.list(TaskFilter(states=(TaskState.FAILED,), limit=_FAILURES)),
        fires=await next_fires(store),
    )


async def next_fires(store: Store) -> Sequence[Fire]:
    """Those that fire soonest, then those that do not."""
    found = [
        Fire(schedule=record.name, task=record.task.name, at=record.next_at, paused=record.paused)
        for record in await store.schedules()
    ]
    return sorted(found, key=lambda fire: (fire.paused or fire.at is None, fire.at or _NEVER, fire.schedule))[:_FIRES]


class Rates:
    """Over the last seconds, from the counters that each worker's row has."""

    def __init__(self) -> None:
        self._samples: list[tuple[datetime, dict[str, tuple[int, int]]]] = []

    def note(self, snapshot: Snapshot) -> Mapping[str, Rate]:
        """The rate of each worker that was there before."""
        counted = {worker.id: (worker.tasks_completed, worker.tasks_failed) for worker in snapshot.workers}
        self._samples.append((snapshot.at, counted))
        while len(self._samples) > 2 and (snapshot.at - self._samples[1][0]).total_seconds() >= _WINDOW:
            self._samples.pop(0)
        return {worker: rate for worker in counted if (rate := self._of(worker)) is not None}

    def _of(self, worker: str) -> Rate | None:
        seen = [(at, counts[worker]) for at, counts in self._samples if worker in counts]
        (first, before), (last, after) = seen[0], seen[-1]
        seconds = (last - first).total_seconds()
        if seconds <= 0:
            return None
        return Rate((after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds)


def total(rates: Mapping[str, Rate]) -> Rate:
    return Rate(sum(rate.completed for rate in rates.values()), sum(rate.failed for rate in rates.values()))
