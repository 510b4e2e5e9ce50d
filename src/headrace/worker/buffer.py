"""Claimed and not yet started: per pool and queue, two lanes, each in the order of the ledger."""

import heapq
from collections import deque
from collections.abc import Iterable

from headrace.core.lanes import Lane, LaneCredit
from headrace.core.task import Pool, Want
from headrace.executors.slots import SlotRange
from headrace.worker.holding import Held

type _Entry = tuple[int, object, int, Held]


class LaneBuffer:
    """One lane of one queue for one pool. A heap, because a later claim may bring a higher priority."""

    __slots__ = ("_heap", "more")

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        # Whether the lane is taken to have more in the store: it delivered all it was last asked for.
        self.more = True

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, held: Held) -> None:
        claim = held.claim
        heapq.heappush(self._heap, (-claim.priority, claim.order_at, claim.id, held))

    def pop(self) -> Held:
        return heapq.heappop(self._heap)[3]

    def remove(self, keep: Iterable[Held]) -> None:
        self._heap = []
        for held in keep:
            self.push(held)

    def entries(self) -> list[Held]:
        return [entry[3] for entry in self._heap]


class QueueBuffer:
    """Both lanes of one queue for one pool."""

    __slots__ = ("lanes", "queue")

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.lanes = {Lane.PRIMARY: LaneBuffer(), Lane.RETRY: LaneBuffer()}

    def __len__(self) -> int:
        return len(self.lanes[Lane.PRIMARY]) + len(self.lanes[Lane.RETRY])

    @property
    def more(self) -> bool:
        return self.lanes[Lane.PRIMARY].more or self.lanes[Lane.RETRY].more

    def take(self, credit: LaneCredit) -> Held:
        """The next to start.

        A lane that has nothing here but more in the store still lets the other earn credit; when its own turn comes
        while nothing of it is here, the other lane goes first and the turn is kept, not lost.
        """
        primary, retry = self.lanes[Lane.PRIMARY], self.lanes[Lane.RETRY]
        contested = self._contested and not self.owes(credit)
        picked = credit.pick(bool(primary) or contested, bool(retry) or contested)
        return self.lanes[Lane.PRIMARY if picked is None else picked].pop()

    @property
    def _contested(self) -> bool:
        return all(bool(lane) or lane.more for lane in self.lanes.values())

    def owes(self, credit: LaneCredit) -> bool:
        """Whether it is the turn of a lane that has work in the store and none here: worth a claim of its own."""
        turn = Lane.RETRY if credit.shares(1)[1] else Lane.PRIMARY
        return self._contested and not self.lanes[turn]

    def wants(self, pool: Pool, credit: LaneCredit, room: int) -> list[Want]:
        """What to ask so that buffer and answer together have the shares of the next picks.

        A lane that fell short last time is still asked for its share (at least one), and the other for all the room:
        so neither starves, no worker idles beside work, and at most a share too much arrives, once.
        """
        primary, retry = self.lanes[Lane.PRIMARY], self.lanes[Lane.RETRY]
        shares = credit.shares(len(self) + room)
        asked = [max(0, shares[0] - len(primary)), max(0, shares[1] - len(retry))]
        if not (primary.more and retry.more):
            asked = [max(1, n) for n in asked]
            if primary.more:
                asked[0] = max(asked[0], room)
            elif retry.more:
                asked[1] = max(asked[1], room)
        return [
            Want(queue=self.queue, pool=pool, lane=lane, n=n)
            for lane, n in zip((Lane.PRIMARY, Lane.RETRY), asked, strict=True)
            if n > 0
        ]


class Buffer:
    """Everything claimed and not started. Queues take turns; within a queue the lane credit decides.

    With `slots`, the supervisor can see what waits here.
    """

    def __init__(self, *, retry_ratio: float, slots: SlotRange | None = None) -> None:
        self._slots = slots
        self._retry_ratio = retry_ratio
        self._credits: dict[str, LaneCredit] = {}
        self._queues: dict[tuple[Pool, str], QueueBuffer] = {}
        self._turns: dict[Pool, deque[QueueBuffer]] = {}
        self._counts: dict[Pool, int] = {}

    def __len__(self) -> int:
        return sum(self._counts.values())

    def count(self, pool: Pool) -> int:
        return self._counts.get(pool, 0)

    def credit(self, queue: str) -> LaneCredit:
        found = self._credits.get(queue)
        if found is None:
            found = self._credits[queue] = LaneCredit(self._retry_ratio)
        return found

    def queue(self, pool: Pool, queue: str) -> QueueBuffer:
        found = self._queues.get((pool, queue))
        if found is None:
            found = self._queues[(pool, queue)] = QueueBuffer(queue)
            self._turns.setdefault(pool, deque()).append(found)
        return found

    def add(self, held: Held) -> None:
        self.queue(held.pool, held.claim.queue).lanes[Lane(held.claim.lane)].push(held)
        self._counts[held.pool] = self._counts.get(held.pool, 0) + 1
        if self._slots is not None:
            held.place = self._slots.wait(held.ref)

    def _left(self, held: Held) -> Held:
        if self._slots is not None and held.place is not None:
            self._slots.no_longer_waits(held.place)
            held.place = None
        return held

    def take(self, pool: Pool) -> Held | None:
        if not self._counts.get(pool):
            return None
        turns = self._turns[pool]
        while True:
            turns.rotate(-1)
            if turns[-1]:
                self._counts[pool] -= 1
                return self._left(turns[-1].take(self.credit(turns[-1].queue)))

    def remove(self, held: Held) -> None:
        self._remove({id(self._left(held))})

    def take_older(self, than: float) -> list[Held]:
        """Remove and return what was asked for before the monotonic instant `than`."""
        old = [held for held in self.entries() if held.since < than]
        self._remove({id(self._left(held)) for held in old})
        return old

    def entries(self) -> list[Held]:
        return [
            held for queue in self._queues.values() for lane in queue.lanes.values() if lane for held in lane.entries()
        ]

    def _remove(self, gone: set[int]) -> None:
        if not gone:
            return
        for (pool, _), queue in self._queues.items():
            for lane in queue.lanes.values():
                kept = [held for held in lane.entries() if id(held) not in gone]
                self._counts[pool] = self._counts.get(pool, 0) - (len(lane) - len(kept))
                lane.remove(kept)
