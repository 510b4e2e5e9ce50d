"""Watches how deep the retry lanes are, and which queues there are."""

import time
from collections.abc import Callable, Iterable, Sequence

from headrace.core.lanes import retry_ratio
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.worker.buffer import Buffer


class RetryDepth(Service):
    """Lowers the share of retries while many wait (70/30, 80/20, 90/10)."""

    name = "retry depth"

    def __init__(
        self,
        *,
        store: Store,
        buffer: Buffer,
        queues: Callable[[], Sequence[str]],
        default: float,
        interval: float = 2.0,
    ) -> None:
        super().__init__(Pace(interval=interval, jitter=0.2))
        self._store = store
        self._buffer = buffer
        self._queues = queues
        self._default = default

    async def run_once(self) -> None:
        for queue in self._queues():
            depth = await self._store.retry_depth(queue)
            self._buffer.credit(queue).set_ratio(retry_ratio(depth, default=self._default))


class QueueFinder(Service):
    """Finds the queues of a worker that takes all of them: those in the store and those that the tasks name."""

    name = "queue finder"

    def __init__(
        self, *, store: Store, declared: Iterable[str], found: Callable[[Sequence[str]], None], interval: float = 2.0
    ) -> None:
        super().__init__(Pace(interval=interval, jitter=0.2))
        self._store = store
        self._declared = frozenset(declared)
        self._found = found

    async def run_once(self) -> float:
        began = time.monotonic()
        self._found(sorted(self._declared | {queue.name for queue in await self._store.queues()}))
        # Looking costs what lies in the live table: never more than a fiftieth of the time.
        return max(self.pace.interval, 50 * (time.monotonic() - began))
