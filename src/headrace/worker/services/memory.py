"""Looks at how much memory worker processes have in use, and has those replaced that have too much."""

import logging
from collections.abc import Callable, Sequence

from headrace.core.memory import shown_memory
from headrace.executors.slots import READY, SlotTable
from headrace.runtime.memory import resident
from headrace.runtime.service import Pace, Service
from headrace.worker.supervised import WorkerProcess

logger = logging.getLogger("headrace.worker")


class MemoryWatch(Service):
    """A process that had too much in use before its first task is left alone: the next would have it, too."""

    name = "memory watch"

    def __init__(
        self, *, limit: int, table: SlotTable, processes: Callable[[], Sequence[WorkerProcess]], may: Callable[[], bool]
    ) -> None:
        super().__init__(Pace(interval=0.25, jitter=0.1))
        self._limit = limit
        self._table = table
        self._processes = processes
        self._may = may
        self._warned = False

    async def run_once(self) -> None:
        for process in self._processes():
            if process.alive and not process.outgrown.is_set() and self._table.stage(process.index) == READY:
                self._look_at(process, resident(process.pid) or 0)

    def _look_at(self, process: WorkerProcess, used: int) -> None:
        if used <= self._limit:
            return
        limit, need = shown_memory(self._limit), self._table.need(process.index)
        if need > self._limit:
            if not self._warned:
                self._warned = True
                logger.warning(
                    "max_memory %s is less than the %s that a worker process needs before its first task: "
                    "worker processes are not replaced", limit, shown_memory(need),
                )  # fmt: skip
        elif self._may():
            logger.info("worker %s has %s in use, over %s: it is replaced", process.id, shown_memory(used), limit)
            process.outgrown.set()
