"""Threads beyond what every executor does: what cannot be killed is given up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.core.outcome import Cancelled, Completed, Released
from headrace.executors.slots import THREAD
from headrace.executors.thread import ThreadExecutor
from headrace.testing.executor_conformance import Stand
from headrace.testing.executor_conformance.cases import failure_of, value_of

pytestmark = pytest.mark.timeout(60)


@asynccontextmanager
async def threads(directory: Path, *, supervised: bool = False, size: int = 2) -> AsyncIterator[Stand]:
    def make(slots: Any, host: Any) -> ThreadExecutor:
        return ThreadExecutor(threads=size, slots=slots, host=host, supervised=supervised)

    async with Stand.open(make, directory) as stand:
        yield stand


async def test_without_a_supervisor_the_hard_limit_gives_the_thread_up(tmp_path: Path) -> None:
    """Its place stays taken until the thread really ends, so that blocked threads cannot pile up."""
    async with threads(tmp_path) as stand:
        ran = await stand.run("sleep", seconds=0.6, hard=0.1)
        assert failure_of(ran).signature.kind == "timeout"
        assert stand.executor.free() == 1
        await stand.until(lambda: stand.executor.free() == 2)


async def test_with_a_supervisor_the_slot_carries_the_hard_limit(tmp_path: Path) -> None:
    async with threads(tmp_path, supervised=True) as stand:
        _, task = await stand.start("sleep", seconds=0.3, hard=100)
        (slot,) = stand.table.occupied()
        assert slot.kind == THREAD
        assert slot.hard == pytest.approx(slot.entered + 100)
        assert value_of(await task) == "slept"


async def test_stop_interrupts_bytecode_and_gives_up_the_rest(tmp_path: Path) -> None:
    async with threads(tmp_path) as stand:
        spinning, spun = await stand.start("spin")
        await stand.executor.stop(spinning.ref, grace=20)
        assert (await spun).outcome == Cancelled(reason="user")
        blocked, task = await stand.start("sleep", seconds=0.6)
        await stand.executor.stop(blocked.ref, grace=0.1)
        outcome = (await task).outcome
        assert isinstance(outcome, Cancelled)
        assert "given up" in (outcome.message or "")


async def test_an_interrupted_thread_is_fit_for_the_next_task(tmp_path: Path) -> None:
    async with threads(tmp_path, size=1) as stand:
        for _ in range(20):
            assert failure_of(await stand.run("spin", soft=0.02, hard=20)).signature.kind == "soft_timeout"
            assert isinstance((await stand.run("echo")).outcome, Completed)


async def test_no_more_than_its_threads(tmp_path: Path) -> None:
    async with threads(tmp_path, size=1) as stand:
        _, first = await stand.start("sleep", seconds=0.2)
        assert stand.executor.free() == 0
        assert (await stand.run("echo")).outcome == Released()
        assert value_of(await asyncio.wait_for(first, 20)) == "slept"
