"""Claimed and not yet started: per pool and queue, two lanes, each in the order of the ledger."""

import bisect
from collections import deque
from collections.abc import Sequence, Set
from typing import Any

from headrace.core.lanes import Lane, LaneCredit
from headrace.core.task import ClaimedTask, Pool, Want
from headrace.executors.slots import SlotRange
from headrace.worker.holding import Held

# Retries that one claim takes while nothing else is there: what arrives meanwhile waits until they have begun.
_RETRIES = 50


class LaneBuffer:
    """One lane of one queue for one pool, in order. Claims arrive in order, except that a later one may bring a higher
    priority: then it is put where it belongs.
    """

    __slots__ = ("entries", "more")

    def __init__(self) -> None:
        self.entries: deque[Held] = deque()
        # Whether the lane is taken to have more in the store: it delivered all it was last asked for.
        self.more = True

    def __len__(self) -> int:
        return len(self.entries)

    def push(self, arrived: Sequence[Held]) -> None:
        """`arrived` are in order among themselves, as a claim gives them."""
        entries = self.entries
        if not entries or _order(entries[-1]) < _order(arrived[0]):
            entries.extend(arrived)
        else:
            for held in arrived:
                bisect.insort(entries, held, key=_order)

    def pop(self) -> Held:
        return self.entries.popleft()

    def remove(self, gone: Set[Held]) -> None:
        self.entries = deque(held for held in self.entries if held not in gone)


def _order(held: Held) -> tuple[int, Any, int, int]:
    """With the number of the claim: what was given back from here may come again before it is removed."""
    claim = held.claim
    return (-claim.priority, claim.order_at, claim.id, claim.claim_no)


def best_first(claim: ClaimedTask) -> tuple[int, int, Any, int]:
    """The order of claims whichever queue and pool they are of."""
    return (claim.lane, -claim.priority, claim.order_at, claim.id)


class QueueBuffer:
    """Both lanes of one queue for one pool."""

    __slots__ = ("_primary", "_retry", "credit", "hinted", "lanes", "new", "queue")

    def __init__(self, queue: str, credit: LaneCredit) -> None:
        self.queue = queue
        self.credit = credit
        self.hinted = False  # someone said that there may be work; nobody has asked since
        self.new = False  # and that some of it is no retry
        self._primary, self._retry = LaneBuffer(), LaneBuffer()
        self.lanes: dict[int, LaneBuffer] = {Lane.PRIMARY: self._primary, Lane.RETRY: self._retry}

    def __len__(self) -> int:
        return len(self._primary.entries) + len(self._retry.entries)

    @property
    def live(self) -> bool:
        """Whether it is likely to have work in the store."""
        return self._primary.more or self._retry.more or self.hinted

    @property
    def storms(self) -> bool:
        """Whether it is known to have retries, and in the store nothing else."""
        return (self._retry.more or bool(self._retry)) and not self._primary.more

    @property
    def only_retries(self) -> bool:
        """Nor here."""
        return self.storms and not self._primary

    def take(self) -> Held | None:
        """The next to start; None when that is not here yet.

        A lane that has nothing here but more in the store still lets the other earn credit; when its own turn comes it
        is waited for. A claim brings it, or the word that there was no more; if the other lane went first meanwhile,
        ten starts would not hold their exact shares.
        """
        primary, retry = self._primary, self._retry
        if primary.entries and not retry.entries and not retry.more:
            return primary.entries.popleft()  # by far the commonest: nobody to share with
        if not self._contested:
            return (primary or retry).pop() if self else None
        if self.owes():
            return None
        return self.lanes[self.credit.pick(True, True) or Lane.PRIMARY].pop()

    @property
    def _contested(self) -> bool:
        primary, retry = self._primary, self._retry
        return (primary.more or bool(primary)) and (retry.more or bool(retry))

    def owes(self) -> bool:
        """Whether it is the turn of a lane that has work in the store and none here: worth a claim of its own."""
        turn = self._retry if self.credit.shares(1)[1] else self._primary
        return self._contested and not turn

    def wants(self, pool: Pool, room: int) -> list[Want]:
        """What to ask so that buffer and answer together have the shares of the next picks.

        A lane that fell short last time is still asked for its share (at least one), and the other for all the room:
        so neither starves, no worker idles beside work, and at most a share too much arrives, once.
        """
        primary, retry = self._primary, self._retry
        shares = self.credit.shares(len(self) + room)
        asked = [max(0, shares[0] - len(primary)), max(0, shares[1] - len(retry))]
        if not (primary.more and retry.more):
            asked = [max(1, n) for n in asked]
            if primary.more:
                asked[0] = max(asked[0], room)
            elif retry.more:
                asked[1] = min(max(asked[1], room), _RETRIES)
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

    @property
    def storms(self) -> bool:
        return any(queue.storms for queue in self._queues.values())

    @property
    def nothing_new(self) -> bool:
        """Whether all that waits here are retries."""
        return not any(queue.lanes[Lane.PRIMARY] for queue in self._queues.values())

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
            found = self._queues[(pool, queue)] = QueueBuffer(queue, self.credit(queue))
            self._turns.setdefault(pool, deque()).append(found)
        return found

    def add(self, arrived: Sequence[Held]) -> None:
        """In order within each lane, as a claim gives them."""
        slots, run = self._slots, list[Held]()
        place: tuple[Pool, str, int] | None = None
        for held in arrived:
            claim = held.claim
            if place != (claim.pool, claim.queue, claim.lane):
                if place is not None:
                    self._push(place, run)
                run = []
                place = (claim.pool, claim.queue, claim.lane)
            run.append(held)
            if slots is not None:
                held.place = slots.wait(held.ref)
        if place is not None:
            self._push(place, run)

    def _push(self, place: tuple[Pool, str, int], run: Sequence[Held]) -> None:
        pool, queue, lane = place
        self.queue(pool, queue).lanes[lane].push(run)
        self._counts[pool] = self._counts.get(pool, 0) + len(run)

    def _left(self, held: Held) -> Held:
        if held.place is not None and self._slots is not None:
            self._slots.no_longer_waits(held.place)
            held.place = None
        return held

    def take(self, pool: Pool) -> Held | None:
        """The next to start. None when there is nothing, or only what must let a lane go first that a claim brings."""
        count = self._counts.get(pool)
        if not count:
            return None
        turns = self._turns[pool]
        for _ in range(len(turns)):
            queue = turns[0]
            turns.rotate(-1)
            held = queue.take()
            if held is not None:
                self._counts[pool] = count - 1
                return self._left(held)
        return None

    def remove(self, held: Held) -> None:
        self._remove({self._left(held)})

    def take_older(self, than: float) -> list[Held]:
        """Remove and return what was asked for before the monotonic instant `than`."""
        old = [held for held in self.entries() if held.since < than]
        self._remove({self._left(held) for held in old})
        for held in old:
            # It goes back, so there is more in the store, whatever the last claim of this lane said.
            self.queue(held.pool, held.claim.queue).lanes[held.claim.lane].more = True
        return old

    def entries(self) -> list[Held]:
        return [held for queue in self._queues.values() for lane in queue.lanes.values() for held in lane.entries]

    def _remove(self, gone: Set[Held]) -> None:
        if not gone:
            return
        for (pool, _), queue in self._queues.items():
            for lane in queue.lanes.values():
                before = len(lane)
                lane.remove(gone)
                self._counts[pool] = self._counts.get(pool, 0) - (before - len(lane))
