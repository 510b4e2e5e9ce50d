"""The cost of an end with dependents, in buffers touched: it does not grow with the job, the graph or the past."""

import asyncio

import asyncpg

from headrace.core.lanes import Lane
from headrace.core.task import After, NewJob, NewTask, Want
from headrace.store.postgres import PostgresStore
from headrace.store.postgres.reports import report_columns
from headrace.store.queries import load_queries
from tests.store.test_postgres_connection import done, opened
from tests.store.test_postgres_plans import OTHERS, buffers

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
    arguments = ("w", *report_columns([done(claim)]))
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


async def test_what_ends_is_found_by_its_ids_after_statistics_of_an_empty_history(postgres_url: str) -> None:
    """A plan that is made while history is empty is kept while it fills: to read all of it would have seemed cheaper
    than to look up ten ids (110 ms a batch with 45,000 ended tasks of a job, not 2)."""
    n = 2_000
    pairs = [
        task
        for place in range(0, n, 2)
        for task in (NewTask(name="t"), NewTask(name="t", after=(After(task=place, local=True),)))
    ]
    async with opened(postgres_url) as store:
        connection = await asyncpg.connect(postgres_url)
        await store.create_job(NewJob(name="j", tasks=pairs))
        await connection.execute("VACUUM ANALYZE")
        # A few at first: the plans that are kept are made while history is one page.
        for many in (*(1 for _ in range(10)), *(50 for _ in range(n // 50 + 2))):
            claims = await store.claim("w", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=many)])
            await store.finish("w", [done(claim) for claim in claims])
        await store.close()
        async with asyncio.timeout(20):  # a backend reports when it ends
            while await connection.fetchval(OTHERS):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        read = await connection.fetchval("SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'history'")
        ended = await connection.fetchval("SELECT count(*) FROM headrace.history")
        await connection.close()
        assert ended == n
        assert read < 10 * n  # each a few times; it was 64,000 when readers went through all that has ended
