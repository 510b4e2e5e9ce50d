"""Looks at how much memory worker processes have in use, and has those replaced that have too much."""

import logging
import time
from collections.abc import Callable, Sequence

from headrace.core.memory import shown_memory
from headrace.executors.slots import READY, SlotTable
from headrace.runtime.memory import resident
from headrace.runtime.service import Pace, Service
from headrace.worker.supervised import WorkerProcess

_OLD_ENOUGH = 30.0  # seconds: one that took the place of another is not replaced earlier

logger = logging.getLogger("headrace.worker")


class MemoryWatch(Service):
    """A process that had too much in use before its first task is left alone: the next would have it, too. One that has
    it soon after it took the place of another is replaced later: to start them takes more than they do in between.
    """

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
        self._replaced_at: float | None = None  # the first of all

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
        elif self._may() and not self._too_young(process, used):
            logger.info("worker %s has %s in use, over %s: it is replaced", process.id, shown_memory(used), limit)
            self._replaced_at = self._replaced_at or time.monotonic()
            process.outgrown.set()

    def _too_young(self, process: WorkerProcess, used: int) -> bool:
        age = time.monotonic() - process.started
        if self._replaced_at is None or process.started < self._replaced_at or age >= _OLD_ENOUGH:
            return False
        if not self._warned:
            self._warned = True
            logger.warning(
                "max_memory %s is too tight: worker %s has %s in use %.0f s after it took the place of another, and "
                "needs %s before its first task; worker processes are replaced no earlier than %.0f s after their "
                "start; raise max_memory, or run what takes much memory as `def` in children",
                shown_memory(self._limit), process.id, shown_memory(used), age,
                shown_memory(self._table.need(process.index)), _OLD_ENOUGH,
            )  # fmt: skip
        return True
