"""How much to claim, and when: for free slots and a moment of work beyond them, never more than can start soon."""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from operator import attrgetter

from headrace.core.errors import StoreUnavailable
from headrace.core.lanes import Lane
from headrace.core.task import ClaimedTask, Pool, Want
from headrace.runtime.faults import reached
from headrace.store.base import Store
from headrace.store.offering import Offer, Offering
from headrace.worker.buffer import Buffer
from headrace.worker.standing import Standing

# Seconds of work that the buffer holds beyond the free slots: enough to go on while the next claim is on its way, and
# little enough that what waits here starts before another worker would have.
_AHEAD, _LONGEST_AHEAD = 0.1, 0.25
_LONGEST_TRIP = 1.0  # an outage that was waited out says nothing of claims
_TRIPS_AHEAD = 3
_DEEPEST = 2500  # what a fast process can start while one claim is on its way, and the next
_CLAIM = 1000  # so that a transaction stays short (twice as many gained nothing)
_BUFFERED: frozenset[Pool] = frozenset({"coroutine", "thread"})  # children queue for themselves, commands take long
_OVERTAKING = 10  # new tasks that are claimed beside retries at a time
_FIRST_PAUSE = 0.02
_FIRST_GLANCE = 0.01  # seconds of a window before its rate is believed
_PLACE = attrgetter("queue", "pool", "lane")

type Received = Callable[[Sequence[ClaimedTask], float], None]


class Throughput:
    """Starts per second over the last moments, from which the depth of the buffer follows."""

    def __init__(self, *, window: float = 0.2) -> None:
        self._window = window
        self._since = 0.0
        self._count = 0
        self._rate = 0.0

    def rate(self, now: float) -> float:
        """A burst that is over must not keep the buffer deep: a window that stays open lowers the rate. One that begins
        must not wait for its first window to close: with 100 places and short tasks, claims would stay that small for
        as long.
        """
        elapsed = now - self._since
        so_far = self._count / elapsed if elapsed > _FIRST_GLANCE else 0.0
        return max(self._rate, so_far) if elapsed < self._window else min(self._rate, so_far)

    def count(self, started: int, now: float) -> None:
        elapsed = now - self._since
        if elapsed < self._window:
            self._count += started
            return
        # After a quiet time the old window says nothing: a long gap counts as a slow start.
        self._rate = (self._count + started) / elapsed
        self._since, self._count = now, 0


class Claimer:
    """Decides what to ask for and keeps at most one claim under way, alone or as a passenger of a finish."""

    def __init__(
        self,
        *,
        store: Store,
        worker: Callable[[], str],
        buffer: Buffer,
        free: Mapping[Pool, Callable[[], int]],
        received: Received,
        poll: float,
        busy: Callable[[], bool],
        rng: random.Random,
        idle: Callable[[], bool] | None = None,
    ) -> None:
        self._store = store
        self._worker = worker
        self._buffer = buffer
        self._free = free
        self._received = received
        self._poll = poll
        self._busy = busy
        self._rng = rng
        self._idle = idle
        self._queues: list[str] = []
        self._wake = asyncio.Event()
        self._under_way = False
        self._offering = store if isinstance(store, Offering) else None
        self._offer: tuple[Offer, list[Want]] | None = None
        self._turned_at = time.monotonic()
        self.standing = Standing(store=store, worker=worker, received=self._handed, missed=self._doubt)
        self._aside = False  # a claim of new work is under way beside the others
        self._aside_since = 0.0
        self._overtook_at = 0.0  # when the last of those that brought something was asked
        self._overtakes_from = 0.0  # the instant until which looking for it is not worth another claim
        self._checking = False  # someone compares notes with the ledger
        self._runs = False
        self._quiet = False  # nothing is known to wait in the store
        self._pause = 0.0
        self._next = 0.0
        self._trip = 0.0  # how long claims take of late
        self._open = True
        self._suspended = False
        self.throughput: dict[Pool, Throughput] = {pool: Throughput() for pool in free}
        self.uncertain = False  # a claim failed in a way that may have taken tasks we do not know of
        self._asked_all = False
        self.found_nothing = False  # the last claim asked for every queue, pool and lane, and got nothing

    @property
    def queues(self) -> Sequence[str]:
        return self._queues

    def set_queues(self, queues: Iterable[str]) -> None:
        found = sorted(set(queues))
        if found != self._queues:
            self._queues = found
            self.standing.end()  # where it did; it begins anew

    def close(self) -> None:
        """Claim no more; what is under way still arrives."""
        self._open = False
        self._withdrawn()
        self.standing.end()
        self._wake.set()

    def suspend(self, suspended: bool) -> None:
        """While outcomes cannot be written nothing new is taken."""
        self._suspended = suspended
        if suspended:
            self._withdrawn()
            self.standing.end()
        self._wake.set()

    @property
    def under_way(self) -> bool:
        return self._under_way or self._aside or (self._offer is not None and self._offer[0].taken_at is not None)

    def overtakes_for(self, now: float) -> float | None:
        """Seconds since a claim of new work went beside the others, while it has no answer."""
        return now - self._aside_since if self._aside else None

    def poke(self, queue: str | None = None, *, new: bool = True) -> None:
        """There may be work: ask now. Not `new`: retries alone."""
        if queue is not None:
            for pool in self._free:
                buffer = self._buffer.queue(pool, queue)
                buffer.hinted, buffer.new = True, buffer.new or new
        self._pause = 0.0
        self._next = 0.0
        self.found_nothing = self._quiet = False
        self._wake.set()

    def ask_everywhere(self) -> None:
        """Ask now, and let no lane be passed over."""
        for pool in self._free:
            for queue in self._queues:
                for lane in self._buffer.queue(pool, queue).lanes.values():
                    lane.more = False
        self.poke()

    @property
    def next_in(self) -> float:
        """Seconds until it asks by itself again, when nothing wakes it."""
        return max(0.0, self._next - time.monotonic())

    def hungry(self) -> None:
        """A slot became free; ask unless the last answers were empty and it is too early to ask again."""
        if time.monotonic() >= self._next:
            self._wake.set()
        if self._quiet:
            self._stand_by()

    def pause_for_check(self) -> bool:
        """Keep claims from starting while someone compares notes with the ledger; False while one is under way."""
        if self._under_way or self._aside or not self._withdrawn():
            return False
        self._under_way = self._checking = True
        return True

    def checked(self) -> None:
        self._under_way = self._checking = False
        self._wake.set()

    def begin(self, *, riding: bool = False) -> list[Want]:
        """The wants of a claim that starts now, or nothing. Whoever got wants must call `end`.

        `riding`: with a transaction that is made anyway.
        """
        if self._under_way or not self._open or self._suspended or time.monotonic() < self._next:
            return []
        if not self._withdrawn():
            return []  # it is on its way with somebody's transaction
        wants = self._wants(riding=riding)
        self._under_way = bool(wants)
        return wants

    def end(self, wants: Sequence[Want], claims: Sequence[ClaimedTask] | None, *, asked_at: float) -> None:
        """Take in the answer; None when the claim failed."""
        self._under_way = self._quiet = False
        if claims is None:
            self.uncertain = True
            self.standing.end()
            self._slow_down()
            return
        self._remember(wants, claims, asked_at)
        self._trip += (min(_LONGEST_TRIP, time.monotonic() - asked_at) - self._trip) / 4
        if claims:
            self._pause, self._next, self.found_nothing = 0.0, 0.0, False
            self.standing.end()
        elif self._may_have_more() or any(self._owed(pool) for pool in self._free):
            self._wake.set()  # it asked one lane only, in its turn, or work was announced meanwhile
        else:
            self.found_nothing = self._asked_all
            self._quiet = True
            self._slow_down()
            self._make_offer()
        self._received(claims, asked_at)  # nothing, too: what had to wait for another lane need not any more

    async def run(self) -> None:
        """Ask whenever there is room, alone: a busy finisher carries the claim instead."""
        self._runs = True
        try:
            await self._ask_on()
            if self._offer is not None:  # taken before it could be withdrawn: a claim under way like any other
                await asyncio.gather(asyncio.wrap_future(self._offer[0].answer), return_exceptions=True)
        finally:
            self._runs = False  # and nobody would withdraw what were offered from here on
            if self._offer is not None:
                offer, self._offer = self._offer, None
                offer[0].forget()
            await self.standing.close()

    async def _ask_on(self) -> None:
        while self._open:
            await self._rest()
            self._wake.clear()
            if self._busy():
                # The finish that is under way asks, and pokes when it could not.
                if wants := self._overtaking():
                    await self._overtake(wants)
                continue
            wants = self.begin()
            if not wants:
                continue
            asked_at = time.monotonic()
            claims: list[ClaimedTask] | None = None
            try:
                reached("claim.before_commit")
                claims = await self._store.claim(self._worker(), wants)
                reached("claim.after_commit")
            except StoreUnavailable:
                pass
            finally:
                self.end(wants, claims, asked_at=asked_at)
            if claims:
                self._wake.set()

    def _overtaking(self) -> list[Want]:
        """New work that was announced while retries are claimed one batch after the other: it does not wait until those
        that are on their way have come and ended.
        """
        # What is claimed while notes are compared would be found there as well, and taken in twice.
        if not self._open or self._suspended or self._checking or time.monotonic() < self._overtakes_from:
            return []
        wants: list[Want] = []
        for pool, free in self._free.items():
            room = min(_OVERTAKING, free())  # what could not start at once is better off with another worker
            for queue in self._queues if room > 0 else ():
                buffer = self._buffer.queue(pool, queue)
                if buffer.new and buffer.only_retries:
                    buffer.hinted = buffer.new = False
                    wants.append(Want(queue=queue, pool=pool, lane=Lane.PRIMARY, n=room))
        return wants

    async def _overtake(self, wants: Sequence[Want]) -> None:
        """Beside the claim that is under way, if any; the one exception from one at a time."""
        asked_at = self._aside_since = time.monotonic()
        self._aside = True
        try:
            claims = await self._store.claim(self._worker(), wants)
        except BaseException as error:
            self.uncertain = True
            if not isinstance(error, StoreUnavailable):
                raise
            return
        finally:
            self._aside = False
        if not claims:  # retries that became due are announced, too: not more than half of the time goes for looking
            self._overtakes_from = 2 * time.monotonic() - asked_at
        else:
            self.standing.end()
            self._overtook_at = asked_at
        self._remember(wants, claims, asked_at)
        self._received(claims, asked_at)

    async def _rest(self) -> None:
        if self._quiet:
            self._make_offer()
        pause = max(0.0, self._next - time.monotonic()) or self._poll
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), pause)

    def _make_offer(self) -> None:
        """Let a claim go with whatever transaction brings something, instead of after it."""
        self._stand_by()
        may = self._runs and self._open and not self._suspended and not self._under_way and self._offer is None
        if self._offering is not None and may and (wants := self._wants(riding=False)):
            offer = self._offering.offer(self._worker(), wants)
            self._offer = offer, wants
            loop = asyncio.get_running_loop()

            def answered(answer: Future[list[ClaimedTask]]) -> None:
                if not answer.cancelled():
                    with contextlib.suppress(RuntimeError):  # the loop is closed, and the offer forgotten
                        loop.call_soon_threadsafe(self._came_along, offer, wants)

            offer.answer.add_done_callback(answered)

    def turned(self) -> None:
        """The loop turns: what is taken along would be started soon."""
        if self._offer is not None:
            self._offer[0].renew()
        self._turned_at = time.monotonic()
        self.standing.renew()

    def _stand_by(self) -> None:
        """Let an enqueue hand over its task. Only while nothing runs here that could block the loop: word of the task
        would wait for it, while others may be idle, and no supervisor sees what has not arrived."""
        if self._idle is None or not (self.standing.possible and self._runs and self._open) or self._suspended:
            return
        if self._idle():
            free: list[Pool] = [pool for pool, room in self._free.items() if pool in _BUFFERED and room() > 0]
            self.standing.begin(self._queues, free)

    def _handed(self, claim: ClaimedTask) -> None:
        # Nobody knows how long word of it lay here while the loop stood still: no longer than since it last turned.
        self._received([claim], min(time.monotonic(), self._turned_at))

    def _doubt(self) -> None:
        self.uncertain = True

    def _withdrawn(self) -> bool:
        """Nothing is offered any more; False when that is too late."""
        if self._offer is not None and not self._offer[0].withdraw():
            return False
        self._offer = None
        return True

    def _came_along(self, offer: Offer, wants: Sequence[Want]) -> None:
        if self._offer is None or self._offer[0] is not offer or offer.taken_at is None:
            return
        self._offer = None
        claims = None if offer.answer.exception() is not None else offer.answer.result()
        self.end(wants, claims, asked_at=offer.taken_at)
        if claims and not self._may_have_more():
            self._quiet = True
            self._make_offer()
        else:
            self._wake.set()

    def _slow_down(self) -> None:
        self._pause = min(self._poll, max(_FIRST_PAUSE, self._pause * 2))
        self._next = time.monotonic() + self._pause * (0.5 + self._rng.random() / 2)

    def _may_have_more(self) -> bool:
        """Whether a queue that has room was not seen to be empty."""
        return any(
            self._buffer.queue(pool, queue).live
            for pool in self._free
            if self._room(pool) > 0
            for queue in self._queues
        )

    def _wants(self, *, riding: bool) -> list[Want]:
        wants: list[Want] = []
        self._asked_all = bool(self._queues)
        for pool in self._free:
            room = self._room(pool, riding=riding)
            if room > 0:
                wants += self._pool_wants(pool, room)
            else:
                wants += self._owed(pool)
                self._asked_all = False
        return wants

    def _owed(self, pool: Pool) -> list[Want]:
        """The buffer is full enough, but of one lane only while it is the other's turn."""
        return [
            want
            for queue in self._queues
            if (buffer := self._buffer.queue(pool, queue)) and buffer.owes()
            for want in buffer.wants(pool, 0)
        ]

    def _room(self, pool: Pool, *, riding: bool = False) -> int:
        """Tasks to ask for; 0 while the buffer is full enough, so that claims come in batches."""
        free = self._free[pool]()
        ahead = 0
        if pool in _BUFFERED:
            seconds = min(_LONGEST_AHEAD, max(_AHEAD, _TRIPS_AHEAD * self._trip))
            ahead = min(_DEEPEST, int(self.throughput[pool].rate(time.monotonic()) * seconds))
        buffered = self._buffer.count(pool)
        target = min(_DEEPEST, free + ahead)
        enough = target * 3 // 4 if riding else target // 2
        return min(_CLAIM, target - buffered) if buffered <= enough and buffered < target else 0

    def _pool_wants(self, pool: Pool, room: int) -> list[Want]:
        """Queues that had work share the room; the others are asked for a little, in case they have some now."""
        buffers = [self._buffer.queue(pool, queue) for queue in self._queues]
        live = [buffer for buffer in buffers if buffer.live] or buffers
        wants: list[Want] = []
        share = max(1, room // max(1, len(live)))
        for buffer in buffers:
            wants += buffer.wants(pool, share if buffer in live else 1)
            buffer.hinted = buffer.new = False  # what is announced from here on, this claim may miss
        return wants

    def _remember(self, wants: Sequence[Want], claims: Sequence[ClaimedTask], asked_at: float) -> None:
        delivered = Counter(map(_PLACE, claims))  # a thousand come at once
        for want in wants:
            lane = self._buffer.queue(want.pool, want.queue).lanes[want.lane]
            if delivered[want.queue, want.pool, int(want.lane)] >= want.n:
                lane.more = True
            elif want.lane is not Lane.PRIMARY or asked_at >= self._overtook_at:
                lane.more = False
            # Else new work has come since it was asked: a claim beside it, which knew more, has brought some.
