"""Migrations arrive at exactly the schema, leave nothing behind, and can be run by many at once, on both databases."""

import asyncio
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text
from sqlalchemy.schema import CreateSchema

from headrace import _version
from headrace.core.errors import SettingsError
from headrace.store import migrations
from headrace.store.schema import build
from tests.migrations.shape import engine_for, objects, shape


def _create_fresh(url: str, name: str) -> None:
    """The schema without migrations, from the metadata alone."""
    engine = engine_for(url)
    with engine.begin() as connection:
        if engine.dialect.name != "sqlite":
            connection.execute(CreateSchema(name))
        build(engine.dialect.name, name).create_all(connection)
    engine.dispose()


def _meta(url: str, name: str) -> dict[str, str]:
    engine = engine_for(url)
    table = f"{name}_meta" if engine.dialect.name == "sqlite" else f"{name}.meta"
    with engine.connect() as connection:
        rows = dict(tuple(row) for row in connection.execute(text(f"SELECT key, value FROM {table}")))
    engine.dispose()
    return rows


@pytest.fixture
def another_url(store_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A second empty database of the same kind."""
    if store_url.startswith("sqlite:"):
        yield f"sqlite:///{tmp_path / 'another.db'}"
        return
    server = request.getfixturevalue("postgres_server")
    database = f"{store_url.rsplit('/', 1)[1]}_another"
    yield server.create_database(database)
    server.drop_database(database)


@pytest.mark.parametrize("name", ["headrace", "billing"])
def test_a_migrated_database_equals_a_fresh_one(store_url: str, another_url: str, name: str) -> None:
    migrations.upgrade(store_url, name=name)
    _create_fresh(another_url, name)

    migrated, fresh = shape(store_url, name), shape(another_url, name)

    assert migrated.keys() == fresh.keys()
    for part in fresh:
        assert migrated[part] == fresh[part], part


def test_the_comparison_sees_a_difference(store_url: str, another_url: str) -> None:
    """Guards the test above: a dropped index, and only that, makes the shapes differ."""
    for url in (store_url, another_url):
        migrations.upgrade(url, name="headrace")
    engine = engine_for(store_url)
    index = "headrace_tasks_ready" if engine.dialect.name == "sqlite" else "headrace.headrace_tasks_ready"
    with engine.begin() as connection:
        connection.execute(text(f"DROP INDEX {index}"))
    engine.dispose()

    assert shape(store_url, "headrace") != shape(another_url, "headrace")


@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based index:UserWarning")
@pytest.mark.parametrize("name", ["headrace", "billing"])
def test_alembic_finds_no_drift_between_the_schema_and_a_migrated_database(store_url: str, name: str) -> None:
    migrations.upgrade(store_url, name=name)
    engine = engine_for(store_url)
    dialect = engine.dialect.name
    sqlite = dialect == "sqlite"
    table, schema = migrations.version_table(dialect, name)

    def ours(object_name: str | None, kind: str, parents: object) -> bool:
        if kind == "schema":
            return object_name in (None, name)
        # SQLAlchemy cannot read DESC back from SQLite; the test of equal shapes covers that index to the letter.
        # A server role called like the app has our schema as its default, and then Alembic's table in view.
        return object_name not in (("headrace_tasks_ready", "billing_tasks_ready") if sqlite else ("alembic_version",))

    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "include_schemas": schema is not None,
                "include_name": ours,
                "version_table": table,
                "version_table_schema": schema,
            },
        )
        difference = compare_metadata(context, build(dialect, name))
    engine.dispose()

    assert difference == []


def test_two_apps_live_beside_each_other_and_leave_nothing_behind(store_url: str) -> None:
    before = objects(store_url)
    migrations.upgrade(store_url, name="headrace")
    alone = objects(store_url)
    first = shape(store_url, "headrace")
    migrations.upgrade(store_url, name="billing")

    assert migrations.current(store_url, name="headrace") == migrations.current(store_url, name="billing")
    migrations.downgrade(store_url, "base", name="billing")
    assert objects(store_url) == alone
    assert shape(store_url, "headrace") == first
    assert migrations.current(store_url, name="billing") is None

    migrations.downgrade(store_url, "base", name="headrace")
    assert objects(store_url) == before

    migrations.upgrade(store_url, name="headrace")
    assert objects(store_url) == alone
    assert shape(store_url, "headrace") == first


def test_upgrading_twice_keeps_what_is_there(store_url: str) -> None:
    migrations.upgrade(store_url, name="headrace")
    table = "headrace_queues" if store_url.startswith("sqlite:") else "headrace.queues"
    engine = engine_for(store_url)
    with engine.begin() as connection:
        connection.execute(text(f"INSERT INTO {table} (name, paused) VALUES ('mail', true)"))

    migrations.upgrade(store_url, name="headrace")

    with engine.connect() as connection:
        assert connection.scalars(text(f"SELECT name FROM {table}")).all() == ["mail"]
    engine.dispose()


def test_meta_says_which_schema_and_which_code(store_url: str) -> None:
    assert migrations.current(store_url, name="headrace") is None
    migrations.upgrade(store_url, name="headrace")

    (head,) = migrations.heads()
    meta = _meta(store_url, "headrace")
    assert meta["schema"] == head == migrations.current(store_url, name="headrace")
    assert _numbers(meta["min_code"]) <= _numbers(_version.__version__)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def test_many_upgrades_at_once_make_one_schema(store_url: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(migrations.upgrade, store_url, name="headrace") for _ in range(6)]:
            done.result()

    assert migrations.current(store_url, name="headrace") == migrations.heads()[0]
    assert len(_meta(store_url, "headrace")) == 2


async def test_an_event_loop_may_upgrade(store_url: str) -> None:
    """Both forms: the coroutine, which leaves the loop turning, and the blocking one on a thread with a loop."""
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    await migrations.async_upgrade(store_url, name="headrace")
    turning.cancel()
    assert turns > 1
    assert await migrations.async_current(store_url, name="headrace") == migrations.heads()[0]

    migrations.upgrade(store_url, name="billing")
    assert migrations.current(store_url, name="billing") == migrations.heads()[0]
    await migrations.async_downgrade(store_url, "base", name="billing")
    assert migrations.current(store_url, name="billing") is None


def test_a_failing_upgrade_changes_nothing(store_url: str) -> None:
    """A table that is in the way: the whole upgrade rolls back, DDL included."""
    engine = engine_for(store_url)
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.execute(text("CREATE TABLE headrace_meta (x integer)"))
        else:
            connection.execute(text("CREATE SCHEMA headrace"))
            connection.execute(text("CREATE TABLE headrace.meta (x integer)"))
    engine.dispose()
    before = objects(store_url)

    with pytest.raises(Exception, match="already exists"):
        migrations.upgrade(store_url, name="headrace")

    assert objects(store_url) == before


def test_a_database_in_memory_is_upgraded_on_its_connection() -> None:
    connection = sqlite3.connect(":memory:")
    migrations.upgrade(connection, name="headrace")

    assert migrations.current(connection, name="headrace") == migrations.heads()[0]
    assert connection.execute("SELECT count(*) FROM headrace_tasks").fetchone() == (0,)
    with pytest.raises(SettingsError, match="in memory"):
        migrations.upgrade("sqlite:///:memory:", name="headrace")
    connection.close()


@pytest.mark.requirement("A23")
def test_workers_are_found_by_state_host_and_heartbeat(sqlite_url: str) -> None:
    """A23 (the indexes): each of the three columns has its own."""
    migrations.upgrade(sqlite_url, name="headrace")
    engine = engine_for(sqlite_url)
    indexes = inspect(engine).get_indexes("headrace_workers")
    engine.dispose()
    assert {("state",), ("hostname",), ("last_heartbeat",)} <= {tuple(index["column_names"]) for index in indexes}
