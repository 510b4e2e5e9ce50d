"""Looking at the queues costs the same behind any backlog; measured in steps and buffers, not in time."""

import contextlib
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg

from headrace.core.task import NewTask
from headrace.store.base import COUNTED_AT_MOST, Store, StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.store.sqlite.connection import Transaction
from tests.store.test_postgres_connection import opened
from tests.store.test_postgres_plans import buffers, fill

_FILL = """
INSERT INTO headrace_tasks (id, name, kind, queue, pool, state, arguments, codec, version, options,
                            created_at, enqueued_at, eligible_at, order_at, ready_at)
WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ?)
SELECT ? + n, 't', 'function', 'default', 'coroutine', 'pending', '{}', 'json/1', 1, '{}', 1, 1, ?, 1, ? FROM s
"""
_FUTURE = 2**60


def _backlog(path: Path, first: int, n: int) -> None:
    """As many that are ready as that are not due yet."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(_FILL, (n, first, 1, 1))
        connection.execute(_FILL, (n, first + n, _FUTURE, None))
        connection.commit()
        connection.execute("ANALYZE")


async def _steps(path: Path, look: Callable[[Store], Awaitable[object]]) -> int:
    """Hundreds of instructions of SQLite's virtual machine on the connection that reads."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    def watch(transaction: Transaction) -> None:
        transaction.connection.set_progress_handler(step, 100)

    store = SQLiteStore(str(path), StoreOptions())
    await store.open()
    try:
        await look(store)  # compiles, and reads the schema
        await store.database.read(watch)
        count = 0
        await look(store)
        return count
    finally:
        await store.close()


async def _names(store: Store) -> None:
    assert "default" in await store.queue_names()


async def _depths(store: Store) -> None:
    (queue,) = await store.queues()
    assert queue.depths["primary"] == queue.depths["scheduled"] == COUNTED_AT_MOST


async def _counts(store: Store) -> None:
    assert await store.counts() == {"pending": COUNTED_AT_MOST}


async def test_sqlite_finds_queues_without_counting_tasks(tmp_path: Path) -> None:
    path = tmp_path / "headrace.db"
    store = SQLiteStore(str(path), StoreOptions())
    await store.open()
    await store.close()
    _backlog(path, 1, 100)
    small = await _steps(path, _names)
    _backlog(path, 10_000, 20_000)
    assert await _steps(path, _names) <= small + 2
    few = {look: await _steps(path, look) for look in (_depths, _counts)}
    assert min(few.values()) > 100, "the steps of the reading connection are counted"
    _backlog(path, 1_000_000, 60_000)
    for look, steps in few.items():
        assert await _steps(path, look) <= steps * 1.1, f"{look.__name__} grows with the backlog"


async def test_postgres_finds_queues_without_counting_tasks(postgres_url: str) -> None:
    names, depths = "SELECT headrace.queue_names_v1()", f"SELECT headrace.depths_v1({COUNTED_AT_MOST})"
    async with opened(postgres_url) as store:
        await store.enqueue([NewTask(name="t") for _ in range(20)])
        connection = await asyncpg.connect(postgres_url)
        try:
            # More than five times: from then on the server keeps a plan, made while the table was small.
            small = [await buffers(connection, names) for _ in range(8)][-1]
            for _ in range(8):
                await buffers(connection, depths)
            await fill(connection, 15_000)
            await fill(connection, 15_000, delay="1 hour")
            await connection.execute("VACUUM ANALYZE headrace.tasks")
            assert [await buffers(connection, names) for _ in range(3)][-1] < small + 20
            few = [await buffers(connection, depths) for _ in range(3)][-1]
            await fill(connection, 30_000)
            await fill(connection, 30_000, delay="1 hour")
            await connection.execute("VACUUM ANALYZE headrace.tasks")
            many = [await buffers(connection, depths) for _ in range(3)][-1]
            assert few > 100
            assert many < few * 1.2, f"{few} pages behind 30,000 tasks, {many} behind 90,000"
        finally:
            await connection.close()
        await _depths(store)
        await _counts(store)
