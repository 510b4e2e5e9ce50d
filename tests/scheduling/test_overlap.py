"""What a real worker runs under each policy for fires that come while an earlier one is unfinished."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from headrace import App, Schedule
from headrace.core.schedule import Overlap
from headrace.testing.clock import FakeClock
from headrace.worker.options import WorkerOptions
from headrace.worker.worker import Worker
from tests.scheduling.firing import Bench
from tests.support.waiting import eventually

MINUTE = timedelta(minutes=1)


class Runs:
    """Tasks that run until they are let go; which run now, and which ever did."""

    def __init__(self) -> None:
        self.running: set[int] = set()
        self.most = 0
        self.seen: list[int] = []
        self.cancelled: list[int] = []
        self.go = asyncio.Event()

    async def __call__(self, task: int) -> None:
        self.running.add(task)
        self.seen.append(task)
        self.most = max(self.most, len(self.running))
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(task)
            raise
        finally:
            self.running.discard(task)


@asynccontextmanager
async def working(url: str, clock: FakeClock, overlap: Overlap) -> AsyncIterator[tuple[Bench, Runs]]:
    from headrace import Context, injected

    app, runs, bench = App(url), Runs(), Bench(url, clock)
    app.engine.clock = clock

    @app.task(name="slow")
    async def slow(context: Context = injected) -> None:
        await runs(context.task_id)

    worker = Worker(app, options=WorkerOptions(children=0, commands=0, scheduler=False, poll=0.1, grace=5.0))
    task = asyncio.create_task(worker.run())
    async with bench.opened():
        await bench.put(Schedule(MINUTE, name="slow", overlap=overlap).stored(slow.prepare()))
        await bench.look()
        await asyncio.wait({task, asyncio.create_task(worker.started())}, return_when=asyncio.FIRST_COMPLETED)
        try:
            yield bench, runs
        finally:
            runs.go.set()
            worker.stop()
            await asyncio.wait_for(task, 60)
            await app.aclose()


async def tick(bench: Bench) -> None:
    await bench.look_at(bench.clock.now() + MINUTE)


async def statuses(bench: Bench) -> list[str]:
    return [str(run.status) for run in await bench.runs("slow")]


async def ended(bench: Bench, *, count: int) -> list[str]:
    async def done() -> list[str]:
        found = await statuses(bench)
        return found if sum(status not in ("pending", "running") for status in found) == count else []

    return await eventually(done, 60)


async def test_skip_leaves_out_what_comes_while_one_runs(store_url: str, clock: FakeClock):
    async with working(store_url, clock, "skip") as (bench, runs):
        await tick(bench)
        await eventually(lambda: len(runs.running) == 1, 60)
        await tick(bench)
        await tick(bench)
        runs.go.set()
        assert await ended(bench, count=3) == ["completed", "skipped", "skipped"]
        await tick(bench)
        assert (await ended(bench, count=4))[-1] == "completed", "and then goes on"
        assert runs.most == 1


async def test_queue_lets_one_wait_and_no_two_run_at_once(store_url: str, clock: FakeClock):
    async with working(store_url, clock, "queue") as (bench, runs):
        await tick(bench)
        await eventually(lambda: len(runs.running) == 1, 60)
        await tick(bench)
        await tick(bench)
        first, second, third = await statuses(bench)
        # A worker that claims the second finds the key taken and puts it back.
        assert (first, second in ("pending", "running"), third) == ("running", True, "skipped")
        runs.go.set()
        assert await ended(bench, count=3) == ["completed", "completed", "skipped"]
        assert (runs.most, len(runs.seen)) == (1, 2)


async def test_replace_stops_what_runs(store_url: str, clock: FakeClock):
    async with working(store_url, clock, "replace") as (bench, runs):
        await tick(bench)
        await eventually(lambda: len(runs.running) == 1, 60)
        (first,) = runs.running
        await tick(bench)
        await eventually(lambda: runs.cancelled == [first], 60)
        await eventually(lambda: len(runs.running) == 1 and first not in runs.running, 60)
        runs.go.set()
        assert await ended(bench, count=2) == ["cancelled", "completed"]


async def test_allow_runs_them_beside_each_other(store_url: str, clock: FakeClock):
    async with working(store_url, clock, "allow") as (bench, runs):
        for _ in range(3):
            await tick(bench)
        await eventually(lambda: len(runs.running) == 3, 60)
        runs.go.set()
        assert await ended(bench, count=3) == ["completed"] * 3
