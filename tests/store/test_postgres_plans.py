"""The cost of a claim, in buffers touched: noise of the machine does not change it, a wrong plan does."""

import asyncio
import re

import asyncpg

from headrace.core.lanes import Lane
from headrace.core.task import NewTask, Ref, Want
from headrace.store.base import Started
from tests.store.test_postgres_connection import done, opened

_CLAIM = "SELECT * FROM headrace.claim_v1('w', '{default}', '{coroutine}', '{0}', '{10}')"
OTHERS = """SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"""


async def buffers(connection: asyncpg.Connection, query: str, *arguments: object) -> int:
    """Pages read or hit; the work is undone."""
    transaction = connection.transaction()
    await transaction.start()
    explained = await connection.fetch(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) {query}", *arguments)
    lines = [row[0] for row in explained]
    await transaction.rollback()
    counts = re.search(r"Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?", "\n".join(lines))
    assert counts is not None, lines
    return sum(int(count or 0) for count in counts.groups())


async def fill(connection: asyncpg.Connection, n: int, *, delay: str = "0") -> None:
    await connection.execute(
        f"""INSERT INTO headrace.tasks (id, name, kind, queue, pool, state, arguments, codec, version, options,
                                        created_at, enqueued_at, eligible_at, order_at, ready_at)
            SELECT nextval('headrace.ids'), 't', 'function', 'default', 'coroutine', 'pending', '{{}}', 'json/1', 1,
                   '{{}}', now(), now(), now() + interval '{delay}', now() + interval '{delay}',
                   CASE WHEN interval '{delay}' = '0' THEN now() END
            FROM generate_series(1, {n})"""
    )


async def test_a_claim_costs_the_same_behind_any_backlog(postgres_url: str) -> None:
    """It reads the index in order, also when its plan was made on a small table."""
    async with opened(postgres_url) as store:
        await store.enqueue([NewTask(name="t") for _ in range(20)])
        connection = await asyncpg.connect(postgres_url)
        # More than five times: from then on the server keeps a plan, made while the table was small.
        small = [await buffers(connection, _CLAIM) for _ in range(8)][-1]
        await fill(connection, 30_000)
        await fill(connection, 30_000, delay="1 hour")
        large = [await buffers(connection, _CLAIM) for _ in range(3)][-1]
        await connection.close()
        assert large < small + 150, f"{small} pages with 20 tasks, {large} with 60,000"


async def test_the_live_table_has_few_indexes(postgres_url: str) -> None:
    """Every index is rewritten at every transition: a new one needs a reason and a measurement. (The tenth is that of
    what is to be cancelled, which hardly ever has an entry.)"""
    async with opened(postgres_url):
        connection = await asyncpg.connect(postgres_url)
        n = await connection.fetchval(
            "SELECT count(*) FROM pg_indexes WHERE schemaname = 'headrace' AND tablename = 'tasks'"
        )
        await connection.close()
        assert n <= 10


async def test_a_finish_finds_its_tasks_by_their_ids_whatever_the_statistics_say(postgres_url: str) -> None:
    """Statistics from an idle hour say that a worker holds hardly a task. A join that began with what the worker holds
    would compare each of 500 reports with each of 500 tasks, at every finish until the next ANALYZE."""
    async with opened(postgres_url) as store:
        connection = await asyncpg.connect(postgres_url)
        await fill(connection, 3_000)
        await connection.execute("ANALYZE headrace.tasks")
        want = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=500)]
        for _ in range(6):
            tasks = await store.claim("w", want)
            assert len(tasks) == 500
            refs = [Ref(task.id, task.claim_no) for task in tasks]
            assert set((await store.start("w", refs[:250])).values()) == {Started.STARTED}
            assert len((await store.finish("w", [done(task) for task in tasks])).accepted) == 500
        await store.close()
        async with asyncio.timeout(20):  # a backend reports when it ends
            while await connection.fetchval(OTHERS):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        scans = await connection.fetchrow(
            "SELECT sum(idx_scan) FILTER (WHERE indexrelname = 'headrace_tasks_worker') AS by_worker,"
            " sum(idx_scan) FILTER (WHERE indexrelname = 'tasks_pkey') AS by_id FROM pg_stat_user_indexes"
        )
        await connection.close()
        assert scans["by_worker"] == 0
        assert scans["by_id"] >= 3_000


async def test_tasks_are_found_by_their_ids_after_statistics_of_an_empty_table(postgres_url: str) -> None:
    """A queue that ran dry is analysed, and then a burst comes: by the statistics the table has no row, and to read all
    of it in the order of its ids would seem cheaper than to look up ten (2,100 us a task, not 40, with 20,000)."""
    async with opened(postgres_url) as store:
        connection = await asyncpg.connect(postgres_url)
        await fill(connection, 5_000)
        await connection.execute("DELETE FROM headrace.tasks")
        await connection.execute("ANALYZE headrace.tasks")
        await fill(connection, 10_000)
        want = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=500)]
        claims = await store.claim("w", want)
        for _ in range(6):
            refs = [Ref(task.id, task.claim_no) for task in claims]
            assert set((await store.start("w", refs[:250])).values()) == {Started.STARTED}
            claims = (await store.finish("w", [done(task) for task in claims], wants=want)).claimed
            assert len(claims) == 500
        await store.close()
        async with asyncio.timeout(20):  # a backend reports when it ends
            while await connection.fetchval(OTHERS):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        read = await connection.fetchval(
            "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'tasks_pkey'"
        )
        await connection.close()
        assert read < 20_000  # each of 3,500 tasks a few times; all of the table would be 10,000 at every turn
