"""An idle worker stands by: an enqueue may hand it the next task. That waits for its loop, while others may be idle, so
whoever calls this knows that nothing blocks it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from headrace.core.errors import StoreError
from headrace.core.task import ClaimedTask, Pool, Ref
from headrace.store.base import Store
from headrace.store.offering import HandingOver

_RENEW = 1.0  # seconds
_REMEMBERED = 1000
_PATIENCE = 1.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 300.0

type _Place = tuple[Sequence[str], Sequence[Pool]]  # queues and pools

_logger = logging.getLogger("headrace.worker")


class Standing:
    """Makes the ledger say what it should, one change at a time, and notices what was handed over without a word."""

    def __init__(
        self,
        *,
        store: Store,
        worker: Callable[[], str],
        received: Callable[[ClaimedTask], None],
        missed: Callable[[], None],
    ) -> None:
        self._store = store if isinstance(store, HandingOver) else None
        self._name = worker
        self._worker: str | None = None  # since it stood by for the first time
        self._received = received
        self._missed = missed
        self._wanted: _Place | None = None  # where it should stand by
        self._place: _Place | None = None  # where it does, as far as is known
        self._renewed = 0.0
        self._taken = 0
        self._overdue = False  # something was handed over, of which no word has come yet
        # Where words do not arrive (a pooler that forgets who listens), tasks are found by looking, later than a claim
        # would have found them: it tries again, ever more rarely.
        self._not_before, self._pause = 0.0, _SHORTEST_PAUSE
        self._change: asyncio.Task[None] | None = None
        # What was handed over may also be found by a look at the ledger, before or after word of it comes.
        self._seen: dict[Ref, None] = {}

    @property
    def possible(self) -> bool:
        return self._store is not None

    @property
    def stands(self) -> bool:
        return self._place is not None

    def begin(self, queues: Sequence[str], pools: Sequence[Pool]) -> None:
        """There is nothing to do."""
        if self._wanted is None and queues and pools and time.monotonic() >= self._not_before:
            self._worker = self._worker or self._name()
            self._wanted = tuple(queues), tuple(pools)
            self._apply()

    def end(self) -> None:
        """There is. The ledger is told before this returns, if it can be: what begins to run now may block the loop."""
        if self._wanted is not None:
            self._wanted = None
            self._apply()

    def renew(self) -> None:
        """The loop turns."""
        if self._place is not None and self._change is None and time.monotonic() - self._renewed >= _RENEW:
            self._start(self._ask())

    def is_new(self, claim: ClaimedTask) -> bool:
        """Whether this claim, which came without being asked for, is heard of for the first time."""
        ref = Ref(claim.id, claim.claim_no)
        if ref in self._seen:
            return False
        self._seen[ref] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return True

    async def close(self) -> None:
        """What arrives from now on goes back as soon as it is missed, or with all that the worker holds."""
        self.end()
        try:
            while self._change is not None:
                _, late = await asyncio.wait({self._change}, timeout=_PATIENCE)
                for change in late:  # the store is away; whoever deregisters the worker ends this, too
                    change.cancel()
        finally:
            self._wanted = self._place = None
            if self._change is not None:
                self._change.cancel()
            if self._store is not None and self._worker is not None:
                self._store.leave(self._worker)

    def _take(self, claim: ClaimedTask) -> None:
        self._taken += 1
        self._pause, self._not_before = _SHORTEST_PAUSE, 0.0
        self._place = self._wanted = None
        if self._overdue:
            # Word of what was missed before, while it stands by for another one already; or nothing was missed, and it
            # is word of that one. In either case it stands by no more, and a look finds what the word is not about.
            self._overdue = False
            self._apply()
            self._missed()
        if self.is_new(claim):
            self._received(claim)

    def _apply(self) -> None:
        if self._change is None and self._store is not None and self._worker is not None:
            self._start(self._settle(self._store, self._worker))

    def _start(self, change: Coroutine[Any, Any, None]) -> None:
        task = asyncio.Task(change, loop=asyncio.get_running_loop(), eager_start=True, name="headrace.standing")
        if not task.done():
            self._change = task
            task.add_done_callback(self._changed)

    def _changed(self, _: asyncio.Task[None]) -> None:
        self._change = None
        if self._place != self._wanted:
            self._apply()

    async def _settle(self, store: HandingOver, worker: str) -> None:
        wanted, stood, taken = self._wanted, self._place is not None, self._taken
        try:
            if wanted is None:
                self._place = None
                if not await store.stand_down(worker) and stood and taken == self._taken:
                    self._lost()
                return
            self._renewed = time.monotonic()
            stands = await store.stand_by(worker, *wanted, self._take)
            if not stands and self._wanted == wanted:
                self._wanted = None
            if taken == self._taken:  # word of a task may come before this answer
                self._place = wanted if stands else None
        except Exception as error:
            self._failed(error)

    async def _ask(self) -> None:
        assert self._store is not None
        assert self._worker is not None
        taken, self._renewed = self._taken, time.monotonic()
        try:
            if not await self._store.still_stands(self._worker) and taken == self._taken:
                self._lost()
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Whether it stands is not known now, and what was handed over meanwhile may have no word."""
        if not isinstance(error, StoreError):
            _logger.warning("cannot stand by for new tasks (%s: %s); they are claimed", type(error).__name__, error)
        self._lost()

    def _lost(self) -> None:
        """Somebody handed something over, or nobody knows: the ledger does."""
        self._place = self._wanted = None
        self._overdue = True
        self._not_before = time.monotonic() + self._pause
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause)
        self._missed()
