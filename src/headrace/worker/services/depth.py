"""Watches how deep the retry lanes are, and which queues there are."""

import time
from collections.abc import Callable, Iterable, Sequence

from headrace.core.lanes import retry_ratio
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.worker.buffer import Buffer
from headrace.worker.options import WorkerOptions

# While some transaction holds an old snapshot the names of queues lie behind all that was claimed since: looking for
# them takes no more than this part of the time, and comes once in half a minute anyway.
_SHARE = 0.02
_LONGEST = 30.0


class RetryDepth(Service):
    """Lowers the share of retries while many wait (70/30, 80/20, 90/10)."""

    name = "retry depth"

    def __init__(
        self,
        *,
        store: Store,
        buffer: Buffer,
        queues: Callable[[], Sequence[str]],
        options: WorkerOptions,
        interval: float = 2.0,
    ) -> None:
        super().__init__(Pace(interval=interval, jitter=0.2))
        self._store = store
        self._buffer = buffer
        self._queues = queues
        self._options = options

    async def run_once(self) -> None:
        for queue in self._queues():
            depth = await self._store.retry_depth(queue, cap=self._options.retry_critical + 1)
            ratio = retry_ratio(
                depth,
                default=self._options.retry_ratio,
                warning=self._options.retry_warning,
                critical=self._options.retry_critical,
            )
            self._buffer.credit(queue).set_ratio(ratio)


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
        asked_at = time.monotonic()
        self._found(sorted(self._declared.union(await self._store.queue_names())))
        took = time.monotonic() - asked_at
        return max(self.pace.interval, min(_LONGEST, took / _SHARE))
