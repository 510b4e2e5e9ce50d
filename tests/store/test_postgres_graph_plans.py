"""The cost of an end with dependents, in buffers touched: it does not grow with the job, the graph or the past."""

import asyncpg

from headrace.core.lanes import Lane
from headrace.core.task import After, NewJob, NewTask, Want
from headrace.store.postgres import PostgresStore
from headrace.store.postgres.claiming import want_columns
from headrace.store.postgres.low_water import NOTHING
from headrace.store.postgres.reports import report_columns
from headrace.store.queries import load_queries
from tests.store.test_postgres_connection import done, opened
from tests.store.test_postgres_plans import buffers

_FINISH = load_queries("headrace.store.postgres.sql")["finish"]
_LARGE = 8_000


def chain(n: int, *, queue: str) -> NewJob:
    first = NewTask(name="t", queue=queue)
    return NewJob(
        name="j",
        tasks=[
            first,
            *(NewTask(name="t", queue=queue, after=(After(task=place, local=True),)) for place in range(n - 1)),
        ],
    )


async def cost(store: PostgresStore, connection: asyncpg.Connection, n: int) -> int:
    """Of the end of the first of a chain, which frees the second."""
    await store.create_job(chain(n, queue=f"of {n}"))
    [claim] = await store.claim("w", [Want(queue=f"of {n}", pool="coroutine", lane=Lane.PRIMARY, n=1)])
    arguments = ("w", *report_columns([done(claim)]), *want_columns((), NOTHING))
    # More than five times: from then on the server keeps a plan.
    return [await buffers(connection, _FINISH, *arguments) for _ in range(8)][-1]


async def test_an_end_costs_the_same_in_any_graph(postgres_url: str) -> None:
    """Its dependents are looked up by its id, also by plans that were made while the tables were empty."""
    async with opened(postgres_url) as store:
        connection = await asyncpg.connect(postgres_url)
        await connection.execute("ANALYZE headrace.tasks, headrace.history, headrace.dependencies, headrace.barriers")
        small = await cost(store, connection, 20)
        large = await cost(store, connection, _LARGE)
        await connection.execute("ANALYZE headrace.tasks, headrace.history, headrace.dependencies, headrace.barriers")
        analysed = await cost(store, connection, _LARGE + 1)
        await connection.close()
        assert max(large, analysed) < small + 150, f"{small} pages in a graph of 20, {large} and {analysed} of {_LARGE}"
