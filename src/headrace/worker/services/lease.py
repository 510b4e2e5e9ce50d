"""Renews the leases of a supervisor's worker processes, from outside of them."""

import time
from collections import deque
from collections.abc import Callable, Sequence

from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.worker.services.heartbeat import renew
from headrace.worker.supervised import WorkerProcess

_STATE_EVERY = 1.0


class Leases(Service):
    """Not for a process that is dead or stopped: it cannot do its work, so its tasks must become free.

    A change between idle and active is written at once, at most each second.
    """

    name = "leases"

    def __init__(
        self,
        *,
        store: Store,
        interval: float,
        processes: Callable[[], Sequence[WorkerProcess]],
        beats: deque[float],
        lost: Callable[[WorkerProcess], None],
    ) -> None:
        super().__init__(Pace(interval=min(interval, _STATE_EVERY), jitter=0.05, longest=interval / 2))
        self._store = store
        self._every = interval
        self._processes = processes
        self._beats = beats
        self._lost = lost
        self._last = 0.0
        self._written: dict[str, str] = {}

    async def run_once(self) -> None:
        now = time.monotonic()
        renewed = [
            process for process in self._processes() if process.leased and process.alive and not process.is_stopped()
        ]
        states = {process.id: "active" if now - process.last_busy < _STATE_EVERY else "idle" for process in renewed}
        if now - self._last < self._every * 0.9 and states == self._written:
            return
        if renewed:
            alive = await renew(self._store, states, within=self._every)
        else:
            await self._store.now()  # nobody to renew for, but it shows that the store can be reached
            alive = set[str]()
        self._beats.append(time.monotonic())
        self._last, self._written = now, states
        for process in renewed:
            if process.id not in alive and process.leased:
                self._lost(process)
