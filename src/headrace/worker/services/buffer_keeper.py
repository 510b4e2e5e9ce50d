"""Keeps the buffer honest: says that the loop turns, gives back what does not start, finds claims nobody knows of."""

import time
from collections.abc import Callable

from headrace.core.task import Ref
from headrace.executors.slots import SlotRange
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.worker.dispatch import Dispatcher

_MOST = 100_000


class BufferKeeper(Service):
    """A claim whose answer was lost with the connection is ours in the ledger and unknown here: it is taken in."""

    name = "buffer keeper"

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        store: Store,
        worker: Callable[[], str],
        slots: SlotRange,
        interval: float = 0.1,
    ) -> None:
        super().__init__(Pace(interval=interval, jitter=0.0))
        self._dispatcher = dispatcher
        self._store = store
        self._worker = worker
        self._slots = slots

    async def run_once(self) -> None:
        self._slots.table.tick(self._slots.worker)
        self._dispatcher.release_stale()
        claimer = self._dispatcher.claimer
        if claimer.uncertain and claimer.pause_for_check():
            try:
                held = await self._store.held(self._worker(), limit=_MOST)
            finally:
                claimer.checked()
            unknown = [claim for claim in held if Ref(claim.id, claim.claim_no) not in self._dispatcher.holding]
            claimer.uncertain = False
            if unknown:
                self._dispatcher.receive(unknown, time.monotonic())
