"""How many tasks ended how, by queue and name: counted here, written each second for those who look at the ledger."""

from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter

from headrace.core.settlement import Settlement
from headrace.core.states import TaskState
from headrace.core.task import ClaimedTask
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store

_place = attrgetter("queue", "name")

type Finished = Sequence[tuple[ClaimedTask, Settlement]]


def counted(finished: Finished) -> Counter[tuple[str, str, str]]:
    """(queue, name, outcome) of those that ended; what goes on is no outcome."""
    counts: Counter[tuple[str, str, str]] = Counter()
    # Every task of a worker passes here: by a built-in loop it costs 0.2 µs instead of 0.5.
    completed = [claim for claim, settlement in finished if settlement.state is TaskState.COMPLETED]
    for (queue, name), n in Counter(map(_place, completed)).items():
        counts[queue, name, "completed"] = n
    if len(completed) < len(finished):
        for claim, settlement in finished:
            if settlement.terminal and settlement.state is not TaskState.COMPLETED:
                counts[claim.queue, claim.name, settlement.state.value] += 1
    return counts


async def count_for(store: Store, worker: str, counts: Counter[tuple[str, str, str]]) -> None:
    await store.count_outcomes([(worker, *place, n) for place, n in counts.items()])


class Outcomes(Service):
    """Once a second, not with every finish: a row for each name would be written as often as tasks end, and nobody
    decides by these counts. A process that is killed takes those of its last second with it, and what an outage leaves
    in doubt is written again.
    """

    name = "outcomes"

    def __init__(self, *, store: Store, worker: Callable[[], str], interval: float = 1.0) -> None:
        super().__init__(Pace(interval=interval))
        self._store = store
        self._worker = worker
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def note(self, finished: Finished) -> None:
        self._counts.update(counted(finished))

    async def run_once(self) -> None:
        await self.flush()

    async def flush(self) -> None:
        if not self._counts:
            return
        counts, self._counts = self._counts, Counter()
        try:
            await count_for(self._store, self._worker(), counts)
        except BaseException:
            self._counts.update(counts)
            raise
