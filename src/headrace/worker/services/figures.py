"""Depths and workers for metrics: one process of all counts them, within a small part of its time."""

import time
from collections.abc import Callable
from datetime import datetime

from headrace.core.lanes import retry_ratio
from headrace.core.task import WorkerRecord
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.telemetry.figures import Figures
from headrace.worker.rescuing import ALIVE

_ROLE = "figures"
_INTERVAL = 2.0
_MOST_QUEUES = 1000
_SHARE = 0.02  # of the time, at most


class FigureKeeper(Service):
    """Whoever leads looks at the ledger; the others show nothing, so that a sum over all of them is right."""

    name = "figures"

    def __init__(
        self,
        *,
        store: Store,
        identity: str,
        ratio: Callable[[int], float] = retry_ratio,
        interval: float = _INTERVAL,
    ) -> None:
        super().__init__(Pace(interval=interval, jitter=0.0))
        self._store = store
        self._identity = identity
        self._ratio = ratio
        self._figures: Figures | None = None
        self._leads_until = 0.0
        self._seen: dict[str, None] = {}

    @property
    def figures(self) -> Figures | None:
        """None from the moment on at which another may lead."""
        return self._figures if time.monotonic() < self._leads_until else None

    async def run_once(self) -> float | None:
        began = time.monotonic()
        lease = 5 * self.pace.longest
        if not await self._store.lead(_ROLE, self._identity, lease=lease):
            self._leads_until = 0.0
            return None
        self._leads_until = began + lease
        queues = {queue.name: dict(queue.depths) for queue in await self._store.queues()}
        # An empty queue is at zero, not gone: a gap in its curve says that nobody looked.
        if len(self._seen) < _MOST_QUEUES:
            self._seen |= dict.fromkeys(queues)
        queues = {**{name: {} for name in self._seen}, **queues}
        workers = await self._store.workers(states=ALIVE)
        now = await self._store.now()
        self._figures = Figures(
            depths=queues,
            retry_ratios={name: self._ratio(depths.get("retry", 0)) for name, depths in queues.items()},
            dead_letters=await self._store.dead_letter_depth(),
            workers=sum(worker.state != "stopping" and _beats(worker, now) for worker in workers),
            heartbeat_ages={worker.id: max(0.0, (now - worker.last_heartbeat).total_seconds()) for worker in workers},
            seen=began,
        )
        return min(lease / 2, max(self.pace.interval, (time.monotonic() - began) / _SHARE))

    async def resign(self) -> None:
        """Let another lead at once."""
        if self._leads_until:
            self._leads_until = 0.0
            await self._store.lead(_ROLE, self._identity, lease=0.0)


def _beats(worker: WorkerRecord, now: datetime) -> bool:
    return (now - worker.last_heartbeat).total_seconds() <= worker.lease
