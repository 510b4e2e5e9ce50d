"""The one who keeps a worker process running, when things end at the worst moment. The processes are real; what they do
is to end.
"""

import asyncio
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headrace.executors.slots import READY, STARTING, SlotTable
from headrace.telemetry.events import Bus, ProcessDied
from headrace.worker.shepherd import Shepherd
from headrace.worker.spawning import Spawned
from headrace.worker.supervised import WorkerProcess
from tests.support.waiting import eventually


@dataclass
class Flock:
    """One process at index 0, which may be replaced by one at index 1."""

    table: SlotTable
    bus: Bus = field(default_factory=Bus)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    started: list[WorkerProcess] = field(default_factory=list[WorkerProcess])
    buried: list[WorkerProcess] = field(default_factory=list[WorkerProcess])
    following_is_ready: bool = True

    async def start(self, index: int) -> WorkerProcess:
        process = WorkerProcess(index=index, id=f"worker {len(self.started)}", process=Spawned())
        self.started.append(process)
        if len(self.started) == 2:  # the first dies while another is started to take its place
            first = self.started[0]
            first.kill(spared=False)
            await eventually(lambda: first in self.buried, 30)
            self.table.enter_stage(index, READY if self.following_is_ready else STARTING)
            if not self.following_is_ready:
                process.kill(spared=False)
        return process

    async def bury(self, process: WorkerProcess) -> None:
        self.buried.append(process)

    def shepherd(self) -> Shepherd:
        return Shepherd(
            start=self.start, bury=self.bury, spare=[1], table=self.table, burst=False, stopping=self.stopping,
            stands_by=lambda: False, give_up=self.stopping.set, bus=self.bus,
        )  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.parametrize("ready", [False, True])
async def test_a_process_that_dies_while_it_is_replaced_takes_nobody_down(tmp_path: Path, ready: bool) -> None:
    """Whether or not the one that was to take its place started, one goes on in the end, and each death is buried."""
    flock = Flock(SlotTable.create(tmp_path / "slots", 2), following_is_ready=ready)
    died: list[Any] = []
    flock.bus.subscribe(died.append, ProcessDied)
    keeping = asyncio.create_task(flock.shepherd().run(0))
    try:
        await eventually(lambda: flock.started, 30)
        flock.started[0].outgrown.set()
        count = 2 if ready else 3
        await eventually(lambda: keeping.done() or len(flock.started) == count, 30)
        assert not keeping.done(), "it keeps one running"
        last = flock.started[-1]
        assert last.alive
        assert last.index == (1 if ready else 0)
        assert [event.exit_code for event in died] == ([] if ready else [-signal.SIGKILL])
        flock.stopping.set()
        last.kill(spared=True)
        assert await asyncio.wait_for(keeping, 30) == 0
        assert set(flock.buried) == set(flock.started)
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        for process in flock.started:
            process.kill(spared=True)
            process.process.close()
