"""The figures of the first page, for everybody who sees all and for one who sees their own.

What is counted over the whole ledger is kept for as long as counting it would else take more than a fiftieth of the
time: however many look, and however large the ledger is, they take no more from it than that.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from headrace.app import App
from headrace.client.failing import Failing, failing
from headrace.client.searching import Search, Walk
from headrace.core.states import LIVE, TaskState
from headrace.core.task import QueueRecord, TaskFilter
from headrace.server.overview.buckets import Bucket, Buckets, spans
from headrace.server.overview.keeping import ALL
from headrace.server.overview.ranges import RANGES, Range, RangeName
from headrace.store.base import COUNTED_AT_MOST, Store
from headrace.store.figures import DepthsAt, EndedTask

_BUDGET = 0.02
_LEAST = 1.0  # seconds that an answer is kept
_MOST_KEPT = 1000  # answers
_PATIENCE = 0.3  # seconds for buckets that nobody has asked for before
OWN_ENDS = 10_000
FAILURES = 2_000  # failed tasks that are looked at
GROUPS = 50
_RUNNING = ("active", "idle", "stopping")


class Crowd(NamedTuple):
    alive: int
    silent: int
    stopping: int
    hosts: int


class Standing(NamedTuple):
    """What is there now, of everybody."""

    at: datetime
    states: dict[str, int]
    queues: list[QueueRecord]
    workers: Crowd
    dead_letters: int


class Counted(NamedTuple):
    """How many ended in a range."""

    at: datetime
    buckets: list[Bucket]
    complete: bool


class Own(NamedTuple):
    n: int
    more: bool  # or there may be: among those that there was no time to look at


class Ended(NamedTuple):
    """What ended in a range."""

    counted: Counted
    failing: Failing
    dead_letters: Own | None  # one's own; None: those of everybody, which are counted elsewhere


class Overview:
    """One for each server. Answers are shared by all who may see the same."""

    def __init__(self, app: App, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock
        self._buckets = Buckets()
        self._kept: dict[str, tuple[Any, float]] = {}
        self._looking: dict[str, asyncio.Task[Any]] = {}

    async def standing(self) -> Standing:
        return await self._shared("standing", lambda: self._app.engine.run(stand))

    async def ended(self, name: RangeName, owner: str | None) -> Ended:
        return await self._shared(
            f"ended {_asked(name, owner)}",
            lambda: self._app.engine.run(lambda store: self._look_back(store, RANGES[name], owner)),
        )

    async def counted(self, name: RangeName, owner: str | None) -> Counted:
        """Without a look at single failures, which costs the most."""
        return await self._shared(
            f"counted {_asked(name, owner)}",
            lambda: self._app.engine.run(lambda store: self._count(store, RANGES[name], owner)),
        )

    async def depths(self, name: RangeName, queue: str = ALL) -> list[DepthsAt]:
        """Of everybody: how deep a queue was, or all of them together."""
        range = RANGES[name]

        async def look(store: Store) -> list[DepthsAt]:
            since = range.starts(await store.now())[0]
            return await store.depth_series(queue, since=since, bucket=range.bucket, buckets=range.buckets)

        return await self._shared(f"depths {name} {queue}", lambda: self._app.engine.run(look))

    async def _look_back(self, store: Store, range: Range, owner: str | None) -> Ended:
        counted = await self._count(store, range, owner)
        failed = await self._failing(store, counted.buckets[0].at, owner)
        return Ended(counted, failed, None if owner is None else await _own_dead_letters(store, owner))

    async def _count(self, store: Store, range: Range, owner: str | None) -> Counted:
        now = await store.now()
        if owner is None:
            buckets, complete = await self._buckets.look(store, range, now, seconds=_PATIENCE)
            return Counted(now, buckets, complete)
        starts = range.starts(now)
        ended = await store.own_ends(owner, since=starts[0], limit=OWN_ENDS)
        return Counted(now, _sorted_out(ended, starts, range.bucket), len(ended) < OWN_ENDS)

    async def _failing(self, store: Store, since: datetime, owner: str | None) -> Failing:
        wanted = Search(
            criteria=TaskFilter(states=(TaskState.FAILED,), owner=owner), since=since, shown=self._app.redaction.text
        )
        return await failing(store, wanted, most=FAILURES, groups=GROUPS, seconds=_PATIENCE)

    async def _shared[T](self, question: str, look: Callable[[], Coroutine[Any, Any, T]]) -> T:
        kept = self._kept.get(question)
        if kept is not None and kept[1] > self._clock():
            return kept[0]
        looking = self._looking.get(question)
        if looking is None:
            looking = self._looking[question] = asyncio.create_task(self._look(question, look))
        # Whoever asked first may go: the others still wait for this.
        return await asyncio.shield(looking)

    async def _look[T](self, question: str, look: Callable[[], Coroutine[Any, Any, T]]) -> T:
        began = self._clock()
        try:
            answer = await look()
        finally:
            del self._looking[question]
        now = self._clock()
        if len(self._kept) >= _MOST_KEPT:
            self._kept = {asked: kept for asked, kept in self._kept.items() if kept[1] > now}
        if len(self._kept) < _MOST_KEPT:
            self._kept[question] = answer, now + max(_LEAST, (now - began) / _BUDGET)
        return answer


def _asked(name: RangeName, owner: str | None) -> str:
    return name if owner is None else f"{name} of {owner}"


async def _own_dead_letters(store: Store, owner: str) -> Own:
    """Among the last dead letters of all: they are in one index, whoever owns them."""
    wanted = Search(criteria=TaskFilter(owner=owner, dead_letter=True))
    dead = Walk(store, wanted, most=COUNTED_AT_MOST, seconds=_PATIENCE)
    n = sum([len(page) async for page in dead.pages()])
    return Own(n, not dead.looked.complete)


async def stand(store: Store) -> Standing:
    """Each figure is counted up to a cap."""
    now = await store.now()
    counts = await store.live_counts()
    workers = await store.workers(states=_RUNNING)
    silent = [worker for worker in workers if now - worker.last_heartbeat > timedelta(seconds=worker.lease)]
    stopping = sum(worker.state == "stopping" and worker not in silent for worker in workers)
    alive = [worker for worker in workers if worker not in silent and worker.state != "stopping"]
    return Standing(
        at=now,
        states={state.value: counts.get(state, 0) for state in TaskState if state in LIVE},
        queues=await store.queues(),
        workers=Crowd(len(alive), len(silent), stopping, len({worker.hostname for worker in alive})),
        dead_letters=await store.dead_letter_depth(),
    )


def _sorted_out(ended: Iterable[EndedTask], starts: Sequence[datetime], width: int) -> list[Bucket]:
    """One's own, each of which was looked at."""
    buckets = [Bucket(at) for at in starts]
    for each in ended:
        place = int((each.finished_at - starts[0]).total_seconds() // width)
        if 0 <= place < len(buckets):
            bucket = buckets[place]
            bucket.count(each.queue, each.name, each.state.value, 1)
            bucket.sample.append((*spans(each), 1.0))
    return buckets
