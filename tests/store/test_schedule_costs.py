"""What a scheduler asks every second, and what a fire looks at, do not grow with schedules, runs or history."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import asyncpg
from sqlalchemy import text

from headrace.core.schedule import Fire, Firing, NewSchedule
from headrace.core.task import NewTask
from headrace.store.base import StoreOptions
from headrace.store.connect import connect, sqlite_path
from headrace.store.queries import load_queries
from headrace.store.sqlite import SQLiteStore
from headrace.store.sqlite.connection import Transaction
from tests.migrations.shape import engine_for
from tests.store.test_postgres_connection import opened
from tests.store.test_postgres_plans import buffers

SCHEDULES = 3_000
RUNS = 20_000

_SCHEDULES = """
INSERT INTO {schedules} (id, name, cadence, task, catch_up, grace, overlap, jitter, paused, revision, cursor, next_at,
                         created_at, changed_at)
SELECT 1000 + n, 's' || n, 'c', '{{"name":"t"}}', 'coalesce', 60, 'skip', 0, {paused}, 1, {past}, {next}, {past}, {past}
FROM {series}
"""
_RUNS = """
INSERT INTO {runs} (schedule, tick, manual, task, fired_at, open)
SELECT 1002, {past}, {no}, n, {past}, {no} FROM {series}
"""


def fill(url: str) -> None:
    """Schedules that are not due, or paused, and the long past of one."""
    engine = engine_for(url)
    sqlite = engine.dialect.name == "sqlite"

    def statement(sql: str, n: int) -> str:
        if sqlite:
            series = f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {n}) SELECT n FROM s)"
            values = {"past": "1000000 + n", "next": "4000000000000000 + n", "no": "0", "paused": "n % 2"}
        else:
            series = f"generate_series(1, {n}) AS s(n)"
            past = "timestamptz '2020-01-01 00:00+00' + n * interval '1 microsecond'"
            values = {"past": past, "next": f"{past} + interval '70 years'", "no": "false", "paused": "n % 2 = 1"}
        separator = "_" if sqlite else "."
        tables = {"schedules": f"headrace{separator}schedules", "runs": f"headrace{separator}schedule_runs"}
        return sql.format(series=series, **tables, **values)

    with engine.begin() as connection:
        connection.execute(text(statement(_SCHEDULES, SCHEDULES)))
        connection.execute(text(statement(_RUNS, RUNS)))
    engine.dispose()


async def test_a_look_at_what_is_due_and_at_what_is_open_costs_the_same_in_a_full_ledger(postgres_url: str) -> None:
    """In pages: a wrong plan shows, the machine's noise does not. Before any ANALYZE, and after it."""
    async with opened(postgres_url) as store:
        await store.put_schedules([NewSchedule(name="due", cadence="c", task=NewTask(name="t"))])
        queries = load_queries("headrace.store.postgres.sql", "headrace")
        fill(postgres_url)
        connection = await asyncpg.connect(postgres_url)
        # Three pages each, where the whole table has hundreds: of the past that is written, and of the present.
        long_ago, present = datetime(2020, 1, 1, tzinfo=UTC), datetime.now(UTC)
        ticks = [long_ago + n * timedelta(microseconds=2_000) for n in range(1, 6)]
        ticks += [present + n * timedelta(seconds=1) for n in range(5)]
        asked = {
            "due_schedules": (100, list(range(100)), [1] * 100),
            "open_runs": (1002,),
            "has_runs": (1002, ticks),
            "prune_schedule_runs": (1e9, 100),
        }
        for analysed in (False, True):
            if analysed:
                await connection.execute("ANALYZE headrace.schedules; ANALYZE headrace.schedule_runs")
            for query, parameters in asked.items():
                pages = [await buffers(connection, queries[query], *parameters) for _ in range(7)][-1]
                assert pages < 40, f"{query} touched {pages} pages (analysed: {analysed})"
        await connection.close()
        assert [record.name for record in (await store.due_schedules()).due] == ["due"]


async def test_the_look_at_what_is_due_takes_no_lock_on_a_file(sqlite_url: str) -> None:
    """It is asked once a second by every process: it answers while another one writes, and leaves the file as it is."""
    store = connect(sqlite_url, StoreOptions(extra={"lock_timeout": 1.0}))
    await store.open()
    try:
        (record,) = await store.put_schedules([NewSchedule(name="s", cadence="c", task=NewTask(name="t"))])
        fill(sqlite_url)
        with closing(sqlite3.connect(sqlite_path(sqlite_url), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            before = other.execute("PRAGMA data_version").fetchone()
            found = await asyncio.wait_for(store.due_schedules(), 30)
            standing = await asyncio.wait_for(store.declare_schedules("nobody", []), 30)
            assert other.execute("PRAGMA data_version").fetchone() == before
            other.execute("ROLLBACK")
        assert found.due == (record,)
        assert standing == []
    finally:
        await store.close()


async def test_a_fire_on_a_file_looks_at_few_rows(sqlite_url: str) -> None:
    """Counted in steps of SQLite's machine, with twenty thousand runs behind it and with none."""
    store = SQLiteStore(sqlite_path(sqlite_url), StoreOptions())
    await store.open()
    try:
        await store.put_schedules([NewSchedule(name="fresh", cadence="c", task=NewTask(name="t"))])
        fill(sqlite_url)
        fresh, old = await _steps(store, "fresh"), await _steps(store, "s2")
        assert old < 1.5 * fresh + 500, f"{fresh} steps without runs, {old} with {RUNS}"
    finally:
        await store.close()


async def _steps(store: SQLiteStore, name: str) -> int:
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    def watch(transaction: Transaction) -> None:
        transaction.connection.set_progress_handler(count, 1)

    def stop(transaction: Transaction) -> None:
        transaction.connection.set_progress_handler(None, 0)

    record = await store.get_schedule(name)
    assert record is not None
    now = await store.now()
    firing = Firing(
        schedule=record.id,
        revision=record.revision,
        cursor=record.cursor,
        new_cursor=now,
        next_at=now + timedelta(days=1),
        fires=(Fire(tick=now),),
    )
    await store.database.write(watch)
    fired = await store.fire([firing]) if not record.paused else []
    await store.database.write(stop)
    assert [one.verdict for one in fired] == ["enqueue"]
    return steps
