"""PgQueuer on asyncpg and uvloop, its fastest driver."""

import contextlib
from collections.abc import AsyncGenerator

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.queries import Queries

from bench import record
from bench.adapters import OPTIONS, URL, Client, chunks


async def setup() -> None:
    connection = await asyncpg.connect(URL)
    await Queries.from_asyncpg_connection(connection).install()
    await connection.close()


@contextlib.asynccontextmanager
async def client() -> AsyncGenerator[Client]:
    connection = await asyncpg.connect(URL)
    queries = Queries.from_asyncpg_connection(connection)

    async def one(sent: float) -> None:
        await queries.enqueue("noop", repr(sent).encode(), 0)

    async def bulk(n: int) -> None:
        for size in chunks(n):
            await queries.enqueue(["noop"] * size, [b"0.0"] * size, [0] * size)

    yield Client(one, bulk)
    await connection.close()


async def _work() -> None:
    queue = PgQueuer.from_asyncpg_connection(await asyncpg.connect(URL))

    @queue.entrypoint("noop")
    async def noop(job: object) -> None:
        record.hit(float(job.payload))

    await queue.run(batch_size=OPTIONS["batch"])


def worker() -> None:
    uvloop.run(_work())
