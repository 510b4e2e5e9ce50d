"""Keeps one worker process running: another follows one that died, and one that is to be replaced."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.executors.slots import READY, SlotTable
from headrace.telemetry.events import Bus, ProcessDied
from headrace.worker.process import RETIRE, UNSTARTABLE
from headrace.worker.supervised import WorkerProcess

_QUICK_DEATH = 5.0
_LONGEST_BACKOFF = 10.0
_NOT_AGAIN_FOR = 30.0  # seconds after one could not be replaced
_LOOK_AGAIN = 0.01


class _Begun(NamedTuple):
    """Whoever waits for its end holds it: what has ended is forgotten when the next begins, whoever that is for."""

    process: WorkerProcess
    end: asyncio.Task[int]


@dataclass(slots=True, kw_only=True, eq=False)
class Shepherd:
    """`spare` holds the indexes at which a process may take the place of one that still ends. `stands_by` says that
    another supervisor works until this one is told to begin; `give_up` stops this one.
    """

    start: Callable[[int], Awaitable[WorkerProcess]]
    bury: Callable[[WorkerProcess], Awaitable[None]]
    spare: list[int]
    table: SlotTable
    burst: bool
    stopping: asyncio.Event
    stands_by: Callable[[], bool]
    give_up: Callable[[], None]
    bus: Bus
    _ends: dict[WorkerProcess, asyncio.Task[int]] = field(default_factory=dict[WorkerProcess, asyncio.Task[int]])

    async def run(self, index: int) -> int:
        """The exit code of its last process, which began at this index if none was replaced; all have ended then."""
        try:
            code = await self._keep(index)
            await asyncio.gather(*self._ends.values())
            return code
        finally:
            for end in self._ends.values():
                end.cancel()
            await asyncio.gather(*self._ends.values(), return_exceptions=True)

    async def _begin(self, index: int) -> _Begun:
        process = await self.start(index)
        self._ends = {one: end for one, end in self._ends.items() if not end.done() or end.exception() is not None}
        end = self._ends[process] = asyncio.create_task(self._see_off(process), name="headrace.process.end")
        return _Begun(process, end)

    async def _see_off(self, process: WorkerProcess) -> int:
        code = await process.process.wait()
        process.process.close()
        await self.bury(process)
        if process.replaced:
            self.spare.append(process.index)
        return code

    async def _keep(self, index: int) -> int:
        quick = 0
        process, end = await self._begin(index)
        while True:
            following = await self._unless_outgrown(process, end)
            if following is not None:
                process, end = following
                continue
            code = end.result()
            if self.stands_by() and not self.stopping.is_set():
                self.give_up()  # it has said why; what is at work already goes on
                return 1
            if self.stopping.is_set() or (self.burst and code == 0):
                return 0
            if self.burst and code == UNSTARTABLE:
                return 1  # it has said why; the next would say the same
            self.bus.emit(ProcessDied(worker=process.id, pid=process.pid, exit_code=code))
            quick = quick + 1 if time.monotonic() - process.started < _QUICK_DEATH else 0
            if quick:
                pause = min(_LONGEST_BACKOFF, 0.05 * 2 ** min(quick, 10))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.stopping.wait(), pause)
            if self.stopping.is_set():
                return 0
            process, end = await self._begin(process.index)

    async def _unless_outgrown(self, process: WorkerProcess, end: asyncio.Task[int]) -> _Begun | None:
        """None when the process has ended; otherwise the one that took its place while it ends at its leisure."""
        while True:
            outgrown = asyncio.create_task(process.outgrown.wait())
            await asyncio.wait({end, outgrown}, return_when=asyncio.FIRST_COMPLETED)
            outgrown.cancel()
            if end.done():
                return None
            if self.spare and (following := await self._follow()) is not None:
                process.replaced = True
                process.order(RETIRE)
                if end.done():
                    self.spare.append(process.index)
                return following
            await asyncio.wait({end}, timeout=_NOT_AGAIN_FOR)
            process.outgrown.clear()

    async def _follow(self) -> _Begun | None:
        """Another process that takes tasks; None when it does not start, which it has said, and what runs goes on."""
        following = await self._begin(self.spare.pop())
        index = following.process.index
        await until(lambda: following.end.done() or self.table.stage(index) >= READY)
        if not following.end.done():
            return following
        self.spare.append(index)
        return None


async def until(condition: Callable[[], bool]) -> None:
    """What other processes write into shared memory wakes nobody up."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_AGAIN)
