"""Procrastinate on psycopg and uvloop; it keeps finished jobs, as headrace does."""

import contextlib
from collections.abc import AsyncGenerator

import procrastinate
import uvloop

from bench import record
from bench.adapters import OPTIONS, URL, Client, chunks

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL, max_size=20))


@app.task(name="noop")
async def noop(sent: float) -> None:
    record.hit(sent)


async def setup() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


@contextlib.asynccontextmanager
async def client() -> AsyncGenerator[Client]:
    async def one(sent: float) -> None:
        await noop.defer_async(sent=sent)

    async def bulk(n: int) -> None:
        for size in chunks(n):
            await noop.batch_defer_async(*({"sent": 0.0} for _ in range(size)))

    async with app.open_async():
        yield Client(one, bulk)


async def _work() -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=OPTIONS["concurrency"], delete_jobs="never")


def worker() -> None:
    uvloop.run(_work())
