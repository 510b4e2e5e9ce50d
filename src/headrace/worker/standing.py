"""An idle worker stands by: an enqueue may hand it the next task. That waits for its loop, while others may be idle, so
whoever calls this knows that the loop turns.
"""

import asyncio
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


class Standing:
    """Whether it stands by, in the ledger as it should be; one change at a time is on its way there."""

    def __init__(
        self,
        *,
        store: Store,
        worker: Callable[[], str],
        received: Callable[[ClaimedTask], None],
        missed: Callable[[], None],
    ) -> None:
        self._store = store if isinstance(store, HandingOver) else None
        self._worker = worker
        self._received = received
        self._missed = missed
        self._place: tuple[Sequence[str], Sequence[Pool]] | None = None  # where it should
        self._stands = False
        self._renewed = 0.0
        self._taken = 0
        # Where words do not arrive (a pooler that forgets who listens), tasks are found by looking, later than a claim
        # would have found them: it tries again, ever more rarely.
        self._not_before, self._pause = 0.0, _SHORTEST_PAUSE
        self._change: asyncio.Task[None] | None = None
        # What was handed over may also be found by a look at the ledger, before or after word of it comes.
        self._seen: dict[Ref, None] = {}

    @property
    def possible(self) -> bool:
        return self._store is not None

    def begin(self, queues: Sequence[str], pools: Sequence[Pool]) -> None:
        """There is nothing to do."""
        if self._place is None and queues and pools and time.monotonic() >= self._not_before:
            self._place = tuple(queues), tuple(pools)
            self._apply()

    def end(self) -> None:
        """There is. The ledger is told before this returns, if it can be: what begins to run now may block the loop."""
        if self._place is not None:
            self._place = None
            self._apply()

    def renew(self) -> None:
        """The loop turns."""
        if self._stands and self._change is None and time.monotonic() - self._renewed >= _RENEW:
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
        """What arrives from now on is nobody's; it goes back with all that the worker holds."""
        self.end()
        while self._change is not None:
            _, late = await asyncio.wait({self._change}, timeout=_PATIENCE)
            for change in late:  # the store is away; whoever deregisters the worker ends this, too
                change.cancel()
        if self._store is not None:
            self._store.leave(self._worker())

    def _take(self, claim: ClaimedTask) -> None:
        self._taken += 1
        self._pause = _SHORTEST_PAUSE
        self._stands, self._place = False, None
        if self.is_new(claim):
            self._received(claim)

    def _apply(self) -> None:
        if self._change is None and self._store is not None:
            self._start(self._settle(self._store))

    def _start(self, change: Coroutine[Any, Any, None]) -> None:
        task = asyncio.Task(change, loop=asyncio.get_running_loop(), eager_start=True, name="headrace.standing")
        if not task.done():
            self._change = task
            task.add_done_callback(self._changed)

    def _changed(self, _: asyncio.Task[None]) -> None:
        self._change = None
        if self._stands != (self._place is not None):
            self._apply()

    async def _settle(self, store: HandingOver) -> None:
        try:
            if self._place is None:
                self._stands = False
                await store.stand_down(self._worker())
            else:
                taken, self._renewed = self._taken, time.monotonic()
                stands = await store.stand_by(self._worker(), *self._place, self._take)
                if not stands:
                    self._place = None
                self._stands = stands and taken == self._taken  # word of a task may come before this answer
        except StoreError:
            # It was in doubt whether it stands, and is so for no longer than it is believed.
            self._stands, self._place = False, None

    async def _ask(self) -> None:
        assert self._store is not None
        taken, self._renewed = self._taken, time.monotonic()
        try:
            stands = await self._store.still_stands(self._worker())
        except StoreError:
            stands = False
        if not stands and taken == self._taken:
            self._stands, self._place = False, None
            self._not_before = time.monotonic() + self._pause
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause)
            self._missed()
