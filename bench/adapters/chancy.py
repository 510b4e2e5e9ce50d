"""Chancy with its asynchronous executor, woken as soon as something is pushed."""

import contextlib
from collections.abc import AsyncGenerator

import uvloop
from chancy import Chancy, Queue, Worker, job

from bench import record
from bench.adapters import OPTIONS, URL, Client


@job(queue="default")
async def noop(*, sent: float) -> None:
    record.hit(sent)


async def setup() -> None:
    queue = Queue(
        "default",
        concurrency=OPTIONS["concurrency"],
        executor="chancy.executors.asyncex.AsyncExecutor",
        eager_polling=True,
    )
    async with Chancy(URL) as chancy:
        await chancy.migrate()
        await chancy.declare(queue, upsert=True)


@contextlib.asynccontextmanager
async def client() -> AsyncGenerator[Client]:
    async with Chancy(URL) as chancy:

        async def one(sent: float) -> None:
            await chancy.push(noop.job.with_kwargs(sent=sent))

        async def bulk(n: int) -> None:
            async for _ in chancy.push_many([noop.job.with_kwargs(sent=0.0) for _ in range(n)]):
                pass

        yield Client(one, bulk)


async def _work() -> None:
    async with Chancy(URL) as chancy, Worker(chancy) as running:
        await running.wait_for_shutdown()


def worker() -> None:
    uvloop.run(_work())
