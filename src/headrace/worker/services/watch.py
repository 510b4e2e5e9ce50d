"""Looks at worker processes from outside: are they busy, stopped, does their loop turn?"""

import time
from collections.abc import Awaitable, Callable, Sequence

from headrace.executors.slots import SlotTable
from headrace.executors.watchdog import Watchdog
from headrace.runtime.service import Pace, Service
from headrace.worker.supervised import WorkerProcess

_STALL = 1.0


class Limits(Service):
    """Keeps the limits of time and memory: a signal at the soft one, a verdict and a kill at a hard one."""

    name = "limits"

    def __init__(self, *, table: SlotTable, kill_memory: int | None = None) -> None:
        super().__init__(Pace(interval=0.05, jitter=0.0))
        self._watchdog = Watchdog(table, kill_memory=kill_memory)

    async def run_once(self) -> None:
        self._watchdog.run_once()


class ProcessWatch(Service):
    name = "process watch"

    def __init__(
        self,
        *,
        processes: Callable[[], Sequence[WorkerProcess]],
        table: SlotTable,
        lease: float,
        stalled: Callable[[WorkerProcess, float], Awaitable[None]],
    ) -> None:
        super().__init__(Pace(interval=0.1, jitter=0.0))
        self._processes = processes
        self._table = table
        self._lease = lease
        self._stalled = stalled

    async def run_once(self) -> None:
        now = time.monotonic()
        busy = {slot.worker for slot in self._table.occupied()}
        for process in self._processes():
            if not process.alive:
                continue
            if process.index in busy:
                process.last_busy = now
            self._look_for_stop(process, now)
            await self._look_for_stall(process, now)

    def _look_for_stop(self, process: WorkerProcess, now: float) -> None:
        """A stopped process keeps its lease only until it runs out; after that it is useless and is replaced."""
        if not process.is_stopped():
            process.stopped_since = None
        elif process.stopped_since is None:
            process.stopped_since = now
        elif now - process.stopped_since > self._lease * 1.5:
            process.kill(spared=False)

    async def _look_for_stall(self, process: WorkerProcess, now: float) -> None:
        silent = now - self._table.last_tick(process.index)
        if process.leased and silent > _STALL and now - process.stall_released > _STALL:
            process.stall_released = now
            await self._stalled(process, silent)
