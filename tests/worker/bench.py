"""A store with its schema and a way to run workers on it inside the test."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from headrace.store.base import Store, StoreOptions
from headrace.store.connect import connect
from headrace.worker.options import WorkerOptions
from headrace.worker.worker import Worker
from tests.worker.application import Functions

LEASE = 1.5


class Bench:
    """One app, its store, and workers that run beside the test."""

    def __init__(self, url: str) -> None:
        self.app = Functions(url)
        self.store: Store = connect(url, StoreOptions(lease=LEASE))

    def options(self, **changes: object) -> WorkerOptions:
        given = {"children": 0, "lease": LEASE, "grace": 5.0, "poll": 0.2, **changes}
        return WorkerOptions(**given)  # pyright: ignore[reportArgumentType]

    async def burst(self, **changes: object) -> Worker:
        """Run a worker until nothing is left that is due."""
        worker = Worker(self.app, store=self.store, options=self.options(burst=True, **changes))
        await asyncio.wait_for(worker.run(), 60)
        return worker

    @contextlib.asynccontextmanager
    async def running(self, **changes: object) -> AsyncIterator[Worker]:
        """A worker that is drained at the end of the block."""
        worker = Worker(self.app, store=self.store, options=self.options(**changes))
        task = asyncio.create_task(worker.run())
        try:
            await asyncio.wait({task, asyncio.create_task(worker.started())}, return_when=asyncio.FIRST_COMPLETED)
            yield worker
        finally:
            worker.stop()
            await asyncio.wait_for(task, 30)

    async def enqueue(self, name: str, arguments: dict[str, object] | None = None, **options: object) -> int:
        (answer,) = await self.store.enqueue([self.app.task(name, arguments, **options)])
        return answer.id

    async def state(self, task: int) -> str:
        return (await self.store.get([task]))[task].state

    async def record(self, task: int):
        return (await self.store.get([task]))[task]


@contextlib.asynccontextmanager
async def opened(bench: Bench) -> AsyncIterator[Store]:
    """The store, open, for the time of a test."""
    await bench.store.open()
    try:
        yield bench.store
    finally:
        await bench.store.close()
