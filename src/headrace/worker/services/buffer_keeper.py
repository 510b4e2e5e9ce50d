"""Keeps the buffer honest: gives back what does not start, finds claims nobody knows of, says that the loop turns."""

import time
from collections.abc import Callable

from headrace.core.task import Ref
from headrace.executors.slots import SlotRange
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.worker.buffer import best_first
from headrace.worker.dispatch import Dispatcher

_MOST = 100_000
# Seconds after which a claim without an answer is looked for again: the server may have waited (for a lock, its disk, a
# standby) when the line was cut, and commit long after the first look.
_LATE = (1.0, 5.0, 30.0, 120.0)


class Pulse(Service):
    """Says that the loop turns, to the supervisor and to whoever else wants to know. It asks nobody anything: a store
    that is slow or away must not look like a blocked loop, whose tasks the supervisor gives away.
    """

    name = "pulse"

    def __init__(self, *, slots: SlotRange, turned: Callable[[], None], interval: float = 0.1) -> None:
        super().__init__(Pace(interval=interval, jitter=0.0))
        self._slots = slots
        self._turned = turned

    async def run_once(self) -> None:
        self._slots.table.tick(self._slots.worker)
        self._turned()


class BufferKeeper(Service):
    """A claim whose answer was lost with the connection is ours in the ledger and unknown here: it is taken in."""

    name = "buffer keeper"

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        store: Store,
        worker: Callable[[], str],
        interval: float = 0.1,
    ) -> None:
        super().__init__(Pace(interval=interval, jitter=0.0))
        self._dispatcher = dispatcher
        self._store = store
        self._worker = worker
        self._looks: list[float] = []  # when to look again

    async def run_once(self) -> None:
        self._dispatcher.release_stale()
        claimer = self._dispatcher.claimer
        if claimer.uncertain:
            now = time.monotonic()
            self._looks = [now, *(now + pause for pause in _LATE)]
        if self._looks and time.monotonic() >= self._looks[0] and claimer.pause_for_check():
            # What lands while the ledger is read may still be in the answer, and must not be taken in again.
            known = {held.ref for held in self._dispatcher.holding.all()}
            try:
                held = await self._store.held(self._worker(), limit=_MOST)
            finally:
                claimer.checked()
            del self._looks[0]
            unknown = [
                claim for claim in held if Ref(claim.id, claim.claim_no) not in known and claimer.standing.is_new(claim)
            ]
            claimer.uncertain = False
            if unknown:
                claimer.standing.end()
                self._dispatcher.receive(sorted(unknown, key=best_first), time.monotonic())
