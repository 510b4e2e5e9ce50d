"""What an older version left behind: new code upgrades an SQLite file by itself, and says what to do on PostgreSQL."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from headrace.core.breaker import BreakerChange, BreakerStatus
from headrace.core.errors import SchemaError
from headrace.core.schedule import NewSchedule
from headrace.core.task import NewTask
from headrace.store import migrations
from headrace.store.base import StoreOptions
from headrace.store.connect import connect, sqlite_path
from tests.migrations.shape import engine_for, objects, shape

OLDER = "0001"
_TASK = """INSERT INTO {tasks} (id, name, kind, queue, pool, state, arguments, codec, options,
                                created_at, enqueued_at, eligible_at, order_at, ready_at)
           VALUES (7, 'kept', 'function', 'default', 'coroutine', 'pending', '{{}}', 'json/1', '{{}}',
                   {now}, {now}, {now}, {now}, {now})"""


@pytest.fixture
def older_url(store_url: str) -> str:
    """A ledger of the first schema, with a task in it."""
    migrations.upgrade(store_url, name="headrace", revision=OLDER)
    engine = engine_for(store_url)
    sqlite = engine.dialect.name == "sqlite"
    with engine.begin() as connection:
        sql = _TASK.format(tasks="headrace_tasks" if sqlite else "headrace.tasks", now="1" if sqlite else "now()")
        connection.execute(text(sql))
    engine.dispose()
    return store_url


async def _use(url: str) -> list[str]:
    """Whatever needs the newest schema; the names of the tasks that are there."""
    store = connect(url)
    await store.open()
    try:
        assert [record.id for record in (await store.get([7])).values()] == [7]
        await store.put_schedules([NewSchedule(name="s", cadence="c", task=NewTask(name="t"))])
        assert len((await store.due_schedules()).due) == 1
        assert await store.check() == []
        return [record.name for record in (await store.get([7])).values()]
    finally:
        await store.close()


def test_an_upgrade_keeps_what_is_there_and_arrives_at_the_newest_shape(older_url: str) -> None:
    before = objects(older_url)
    migrations.upgrade(older_url, name="headrace")

    assert objects(older_url) > before
    assert migrations.current(older_url, name="headrace") == migrations.heads()[0] != OLDER
    assert asyncio.run(_use(older_url)) == ["kept"]
    newest = shape(older_url, "headrace")

    # Back: only what the newer version brought goes, with what it held.
    migrations.downgrade(older_url, OLDER, name="headrace")
    assert objects(older_url) == before
    migrations.upgrade(older_url, name="headrace")
    assert shape(older_url, "headrace") == newest
    engine = engine_for(older_url)
    sqlite = engine.dialect.name == "sqlite"
    with engine.connect() as connection:
        tasks, schedules = (
            ("headrace_tasks", "headrace_schedules") if sqlite else ("headrace.tasks", "headrace.schedules")
        )
        assert connection.scalars(text(f"SELECT name FROM {tasks}")).all() == ["kept"]
        assert connection.scalars(text(f"SELECT name FROM {schedules}")).all() == []
    engine.dispose()


def test_breakers_that_are_there_begin_their_history_with_what_they_are(store_url: str) -> None:
    migrations.upgrade(store_url, name="headrace", revision="0004")
    engine = engine_for(store_url)
    sqlite = engine.dialect.name == "sqlite"
    table, at = (
        ("headrace_breakers", "1000000") if sqlite else ("headrace.breakers", "timestamptz 'epoch' + interval '1 s'")
    )
    columns = "service, status, forced, calls, failures, revision, changed_at, changed_by"
    with engine.begin() as connection:
        connection.execute(
            text(f"INSERT INTO {table} ({columns}) VALUES ('mail', 'open', true, 9, 8, 41, {at}, 'ann')")
        )
    engine.dispose()
    migrations.upgrade(store_url, name="headrace")

    async def look() -> tuple[list[BreakerChange], list[BreakerChange]]:
        store = connect(store_url)
        await store.open()
        try:
            before = await store.breaker_changes("mail")
            await store.reset_breaker("mail", by="bob")
            return before, await store.breaker_changes("mail")
        finally:
            await store.close()

    [kept], after = asyncio.run(look())
    assert (kept.revision, kept.status, kept.forced, kept.changed_by) == (41, BreakerStatus.OPEN, True, "ann")
    assert (kept.calls, kept.failures, kept.changed_at) == (9, 8, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    assert [change.revision for change in after] == [42, 41]


def test_its_first_use_upgrades_a_file_and_a_server_is_upgraded_by_its_owner(older_url: str) -> None:
    if older_url.startswith("sqlite:"):
        assert asyncio.run(_use(older_url)) == ["kept"]
    else:
        with pytest.raises(SchemaError, match=f"schema {OLDER} .*older.*headrace db upgrade"):
            asyncio.run(_use(older_url))
        migrations.upgrade(older_url, name="headrace")
        assert asyncio.run(_use(older_url)) == ["kept"]
    assert migrations.current(older_url, name="headrace") == migrations.heads()[0]


@pytest.fixture
def older_file(sqlite_url: str) -> str:
    migrations.upgrade(sqlite_url, name="headrace", revision=OLDER)
    connection = sqlite3.connect(sqlite_path(sqlite_url))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(_TASK.format(tasks="headrace_tasks", now="1"))
    connection.commit()
    connection.close()
    return sqlite_url


def test_many_that_open_an_older_file_at_once_upgrade_it_once(older_file: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        for found in [threads.submit(lambda: asyncio.run(_use(older_file))) for _ in range(6)]:
            assert found.result(timeout=60) == ["kept"]
    assert migrations.current(older_file, name="headrace") == migrations.heads()[0]


def test_an_older_process_goes_on_while_the_file_is_upgraded(older_file: str) -> None:
    """Migrations add: the statements of a connection that was open before find what they need."""
    older = sqlite3.connect(sqlite_path(older_file), isolation_level=None)
    older.execute("INSERT INTO headrace_queues (name, paused) VALUES ('a', 1)")
    reading = older.execute("SELECT name FROM headrace_tasks")
    assert reading.fetchall() == [("kept",)]

    assert asyncio.run(_use(older_file)) == ["kept"]

    older.execute("INSERT INTO headrace_queues (name, paused) VALUES ('b', 1)")
    assert older.execute("SELECT name FROM headrace_queues ORDER BY name").fetchall() == [("a",), ("b",)]
    older.close()


async def test_a_file_that_must_not_be_changed_is_refused_in_one_sentence(older_file: str) -> None:
    store = connect(older_file, StoreOptions(migrate=False))
    with pytest.raises(
        SchemaError, match=rf"schema {OLDER} .* needs {migrations.heads()[0]}; run: headrace db upgrade"
    ):
        await store.open()
    assert migrations.current(older_file, name="headrace") == OLDER
    # It can be asked, and upgraded, without being open.
    assert await store.schema_revision() == OLDER
    await store.upgrade()
    await store.open()
    await store.close()


async def test_a_newer_schema_is_refused(store_url: str) -> None:
    await migrations.async_upgrade(store_url, name="headrace")
    engine = engine_for(store_url)
    table = "headrace_meta" if engine.dialect.name == "sqlite" else "headrace.meta"
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {table} SET value = '9999' WHERE key = 'schema'"))
    engine.dispose()
    with pytest.raises(SchemaError, match=r"schema 9999, which is newer than this code .*: upgrade headrace"):
        await connect(store_url).open()
