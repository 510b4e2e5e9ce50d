"""In your own transaction: the task appears if and only if you commit, through every driver, on both stores."""

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from headrace import App, Retry
from headrace.core.errors import DuplicateTask, ForeignConnection, NotFound, OptionError, RunningLoop, WrongState
from headrace.store.connect import sqlite_path


@contextlib.contextmanager
def sqlalchemy_engine(url: str, driver: str = "psycopg") -> Iterator[sqlalchemy.Engine]:
    address = url if url.startswith("sqlite") else url.replace("postgresql://", f"postgresql+{driver}://")
    engine = sqlalchemy.create_engine(address)
    try:
        yield engine
    finally:
        engine.dispose()


@contextlib.asynccontextmanager
async def async_engine(url: str, driver: str = "asyncpg"):
    scheme = "sqlite+aiosqlite://" if url.startswith("sqlite") else f"postgresql+{driver}://"
    engine = create_async_engine(url.replace(url.partition("://")[0] + "://", scheme))
    try:
        yield engine
    finally:
        await engine.dispose()


# Each opens one connection in a transaction; leaving with commit=False rolls back.


@contextlib.contextmanager
def session(url: str, *, commit: bool) -> Iterator[Session]:
    with sqlalchemy_engine(url) as engine, Session(engine) as made:
        yield made
        (made.commit if commit else made.rollback)()


@contextlib.contextmanager
def scoped(url: str, *, commit: bool) -> Iterator[Any]:
    with sqlalchemy_engine(url) as engine:
        made = scoped_session(sessionmaker(engine))
        try:
            yield made
            (made.commit if commit else made.rollback)()
        finally:
            made.remove()


@contextlib.contextmanager
def connection(url: str, *, commit: bool) -> Iterator[sqlalchemy.Connection]:
    with sqlalchemy_engine(url) as engine, engine.connect() as made:
        yield made
        (made.commit if commit else made.rollback)()


@contextlib.contextmanager
def driver(url: str, *, commit: bool) -> Iterator[Any]:
    opened = sqlite3.connect(sqlite_path(url)) if url.startswith("sqlite") else psycopg.connect(url)
    with contextlib.closing(opened) as made:
        made.row_factory = sqlite3.Row if isinstance(made, sqlite3.Connection) else psycopg.rows.dict_row
        yield made
        (made.commit if commit else made.rollback)()


@contextlib.asynccontextmanager
async def async_session(url: str, *, commit: bool) -> AsyncIterator[AsyncSession]:
    async with async_engine(url) as engine, AsyncSession(engine) as made:
        yield made
        await (made.commit if commit else made.rollback)()


@contextlib.asynccontextmanager
async def async_psycopg_session(url: str, *, commit: bool) -> AsyncIterator[AsyncSession]:
    driver = "psycopg"
    async with async_engine(url, driver) as engine, AsyncSession(engine) as made:
        yield made
        await (made.commit if commit else made.rollback)()


@contextlib.asynccontextmanager
async def async_connection(url: str, *, commit: bool) -> AsyncIterator[AsyncConnection]:
    async with async_engine(url) as engine, engine.connect() as made:
        yield made
        await (made.commit if commit else made.rollback)()


@contextlib.asynccontextmanager
async def asyncpg_connection(url: str, *, commit: bool) -> AsyncIterator[Any]:
    made = await asyncpg.connect(url)
    try:
        transaction = made.transaction()
        await transaction.start()
        yield made
        await (transaction.commit if commit else transaction.rollback)()
    finally:
        await made.close()


@contextlib.asynccontextmanager
async def asyncpg_pooled(url: str, *, commit: bool) -> AsyncIterator[Any]:
    async with asyncpg.create_pool(url, min_size=1) as pool, pool.acquire() as made:
        transaction = made.transaction()
        await transaction.start()
        yield made
        await (transaction.commit if commit else transaction.rollback)()


@contextlib.asynccontextmanager
async def psycopg_async(url: str, *, commit: bool) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url) as made:
        yield made
        await (made.commit if commit else made.rollback)()


SYNC = [session, scoped, connection, driver]
ASYNC = [async_session, async_connection]
POSTGRES_ASYNC = [asyncpg_connection, asyncpg_pooled, psycopg_async, async_psycopg_session]


def define(app: App, **options: Any):
    @app.task(name="welcome", **options)
    async def welcome(user_id: int) -> str:
        return f"hello {user_id}"

    return welcome


def written(app: App) -> list[str]:
    return sorted(record.arguments for record in app.tasks.list())


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("opened", SYNC)
def test_sync_connections(app: App, store_url: str, opened: Callable[..., Any], commit: bool):
    welcome = define(app)
    with opened(store_url, commit=commit) as made:
        one = welcome.using(connection=made).enqueue(1)
        with app.transaction(made):
            two, three = welcome.enqueue_many([{"user_id": 2}, {"user_id": 3}])
        assert written(app) == []
    assert written(app) == (['{"user_id":1}', '{"user_id":2}', '{"user_id":3}'] if commit else [])
    assert len({one.id, two.id, three.id}) == 3
    if commit:
        assert one.state() == "pending"
    else:
        with pytest.raises(NotFound, match="not committed"):
            one.state()


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("opened", ASYNC)
async def test_async_connections(app: App, store_url: str, opened: Callable[..., Any], commit: bool):
    await _check_async(app, store_url, opened, commit)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("opened", POSTGRES_ASYNC)
async def test_async_connections_of_postgres_drivers(postgres_url: str, opened: Callable[..., Any], commit: bool):
    app = App(postgres_url)
    await _check_async(app, postgres_url, opened, commit)
    await app.aclose()


async def _check_async(app: App, url: str, opened: Callable[..., Any], commit: bool) -> None:
    welcome = define(app)
    async with opened(url, commit=commit) as made:
        one = await welcome.using(connection=made).aenqueue(1)
        async with app.transaction(made):
            await welcome.aenqueue_many([{"user_id": 2}, {"user_id": 3}])
        assert await app.tasks.alist() == []
    found = sorted(record.arguments for record in await app.tasks.alist())
    assert found == (['{"user_id":1}', '{"user_id":2}', '{"user_id":3}'] if commit else [])
    if commit:
        assert await one.astate() == "pending"


@pytest.mark.parametrize("opened", SYNC)
def test_the_rows_of_the_user_and_the_task_are_one(app: App, store_url: str, opened: Callable[..., Any]):
    """A crash of the program between the two: neither is there."""
    welcome = define(app)
    app.tasks.list()  # an SQLite file gets its schema at the first use, which a transaction of the user's would hold up
    with driver(store_url, commit=True) as made:
        made.execute("CREATE TABLE people (id integer primary key)")
    with contextlib.suppress(ZeroDivisionError), opened(store_url, commit=True) as made:
        insert = "INSERT INTO people VALUES (1)"
        made.execute(insert if opened is driver else sqlalchemy.text(insert))
        welcome.using(connection=made).enqueue(1)
        raise ZeroDivisionError
    assert written(app) == []
    with driver(store_url, commit=True) as made:
        assert made.execute("SELECT * FROM people").fetchall() == []


@pytest.mark.parametrize("opened", SYNC)
def test_an_app_that_is_first_used_inside_a_transaction(app: App, store_url: str, opened: Callable[..., Any]):
    """The schema is there; that the user has written already does not hold up the opening of the store."""
    app.tasks.list()
    with driver(store_url, commit=True) as made:
        made.execute("CREATE TABLE people (id integer primary key)")
    fresh = App(store_url)
    with opened(store_url, commit=True) as made:
        insert = "INSERT INTO people VALUES (1)"
        made.execute(insert if opened is driver else sqlalchemy.text(insert))
        define(fresh).using(connection=made).enqueue(1)
    fresh.close()
    assert written(app) == ['{"user_id":1}']


def test_a_process_that_dies_before_its_commit_leaves_nothing(app: App, store_url: str):
    define(app)
    app.tasks.list()
    program = f"""
import os, sys
sys.path.insert(0, {os.getcwd()!r})
from headrace import App
from tests.client.test_transactions import define, driver
app = App({store_url!r})
with driver({store_url!r}, commit=True) as made:
    define(app).using(connection=made).enqueue(1)
    print("written", flush=True)
    os._exit(9)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (9, "written")
    assert written(app) == []


def test_commands_and_keys_in_a_transaction(app: App, store_url: str):
    welcome = define(app, unique="user-{user_id}")
    with driver(store_url, commit=True) as made, app.transaction(made):
        command = app.commands.submit(["true"])
        first = welcome.enqueue(1)
        again = welcome.enqueue(1)
        assert (again.id, again.created) == (first.id, False)
    assert app.tasks.get(command.id).kind == "command"
    with driver(store_url, commit=False) as made, pytest.raises(DuplicateTask) as refused:
        welcome.using(connection=made, on_conflict="reject").enqueue(1)
    assert refused.value.task_id == first.id


@pytest.mark.parametrize("opened", [session, connection])
def test_what_the_server_refuses_is_our_error(app: App, store_url: str, opened: Callable[..., Any]):
    welcome = define(app, unique="user-{user_id}")
    first = welcome.enqueue(1)
    with opened(store_url, commit=False) as made, pytest.raises(DuplicateTask) as refused:
        welcome.using(connection=made, on_conflict="reject").enqueue(1)
    assert refused.value.task_id == first.id
    with opened(store_url, commit=False) as made, pytest.raises(NotFound, match="77"):
        welcome.using(connection=made, job=77).enqueue(2)


@pytest.mark.parametrize("opened", [asyncpg_connection, async_psycopg_session, async_session, psycopg_async])
async def test_what_the_server_refuses_is_our_error_async(postgres_url: str, opened: Callable[..., Any]):
    app = App(postgres_url)
    welcome = define(app, unique="user-{user_id}")
    first = await welcome.aenqueue(1)
    with pytest.raises(DuplicateTask) as refused:
        async with opened(postgres_url, commit=False) as made:
            await welcome.using(connection=made, on_conflict="reject").aenqueue(1)
    assert refused.value.task_id == first.id
    with pytest.raises(NotFound, match="77"):
        async with opened(postgres_url, commit=False) as made:
            await welcome.using(connection=made, job=77).aenqueue(2)
    await app.aclose()


def test_adding_to_a_job_in_a_transaction(app: App, store_url: str):
    welcome = define(app)
    job = app.jobs.create("one", [welcome.prepare(1)])
    with driver(store_url, commit=True) as made, app.transaction(made):
        (added,) = app.jobs.add(job.id, welcome.prepare(2))
    assert app.tasks.get(added.id).job == job.id
    app.jobs.cancel(job.id)
    with driver(store_url, commit=False) as made, app.transaction(made), pytest.raises(WrongState):
        app.jobs.add(job.id, welcome.prepare(3))


@pytest.mark.parametrize("opened", SYNC)
def test_another_sqlite_file_is_refused_before_a_write(sqlite_app: App, tmp_path: Path, opened: Callable[..., Any]):
    welcome = define(sqlite_app)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    for url in (other, "sqlite://"):
        if url == "sqlite://" and opened is not driver:
            continue
        with opened(url, commit=False) as made, pytest.raises(ForeignConnection, match="nothing was written"):
            welcome.using(connection=made).enqueue(1)
    assert written(sqlite_app) == []


def test_the_same_file_under_another_path_is_accepted(sqlite_app: App, sqlite_url: str, tmp_path: Path):
    welcome = define(sqlite_app)
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    path = tmp_path / "link" / "headrace.db"
    sqlite_app.tasks.list()
    with driver(f"sqlite:///{path}", commit=True) as made:
        welcome.using(connection=made).enqueue(1)
    assert len(written(sqlite_app)) == 1


@pytest.mark.parametrize("opened", SYNC)
def test_another_postgres_database_is_refused_before_a_write(postgres_url: str, postgres_server, opened):
    app = App(postgres_url)
    welcome = define(app)
    with opened(postgres_server.url(), commit=False) as made, pytest.raises(ForeignConnection, match="postgres"):
        welcome.using(connection=made).enqueue(1)
    assert written(app) == []
    app.close()


def test_another_kind_of_database_is_refused_before_a_write(sqlite_app: App, sqlite_url: str, postgres_url: str):
    with driver(postgres_url, commit=False) as made, pytest.raises(ForeignConnection, match="sqlite"):
        define(sqlite_app).using(connection=made).enqueue(1)
    app = App(postgres_url)
    with driver(sqlite_url, commit=False) as made, pytest.raises(ForeignConnection, match="postgresql"):
        define(app).using(connection=made).enqueue(1)
    assert written(sqlite_app) == []
    assert written(app) == []
    app.close()


def test_what_is_no_connection_is_refused(sqlite_app: App):
    welcome = define(sqlite_app)
    for thing in ("postgresql://x", object(), 7):
        with pytest.raises(OptionError, match="not a connection that headrace knows"):
            welcome.using(connection=thing).enqueue(1)
        with pytest.raises(OptionError), sqlite_app.transaction(thing):
            pass


async def test_a_blocking_enqueue_on_an_async_connection_names_the_async_form(app: App, store_url: str):
    welcome = define(app)
    async with async_session(store_url, commit=True) as made:
        await app.tasks.alist()
        with pytest.raises(RunningLoop, match="aenqueue"):
            welcome.using(connection=made).enqueue(1)
        # SQLAlchemy's bridge to sync code has a sync session in hand: that works.
        await made.run_sync(lambda session: welcome.using(connection=session).enqueue(2))
    assert [record.arguments for record in await app.tasks.alist()] == ['{"user_id":2}']


def test_a_connection_that_commits_each_statement(app: App, store_url: str):
    """There is no transaction to join: the enqueue is one of its own, and whole."""
    welcome = define(app)
    app.tasks.list()
    if store_url.startswith("sqlite"):
        made: Any = sqlite3.connect(sqlite_path(store_url), isolation_level=None)
    else:
        made = psycopg.connect(store_url, autocommit=True)
    with contextlib.closing(made):
        welcome.using(connection=made).enqueue(1)
        assert written(app) == ['{"user_id":1}']
        with pytest.raises(NotFound):
            welcome.using(connection=made, job=77).enqueue(2)
        assert written(app) == ['{"user_id":1}']
        made.execute("BEGIN")
        welcome.using(connection=made).enqueue(3)
        assert written(app) == ['{"user_id":1}']
        made.execute("ROLLBACK")
    assert written(app) == ['{"user_id":1}']


def test_a_block_belongs_to_its_context_and_its_app(sqlite_app: App, sqlite_url: str):
    welcome = define(sqlite_app)
    other = App(sqlite_url, name="other")
    other.tasks.list()
    theirs = define(other)
    with driver(sqlite_url, commit=False) as made:
        with sqlite_app.transaction(made):
            theirs.enqueue(1)
        welcome.enqueue(2)
    assert written(other) == ['{"user_id":1}']
    assert written(sqlite_app) == ['{"user_id":2}']
    other.close()


async def test_a_committed_session_wakes_the_workers(app: App, store_url: str):
    """SQLAlchemy says when it has committed: a listener hears of the queue without polling."""
    welcome = define(app, queue="mail", retry=Retry(max_attempts=1))
    store = app.new_store()
    await store.open()
    try:
        async with store.listen("worker", ["mail"]) as hints:
            with session(store_url, commit=True) as made:
                await welcome.using(connection=made).aenqueue(1)
            async with asyncio.timeout(20):
                async for hint in hints:
                    if hint == "mail":
                        break
    finally:
        await store.close()
    assert len(await app.tasks.alist()) == 1


def test_no_driver_is_imported_for_another_kind_of_connection(sqlite_url: str):
    program = f"""
import sqlite3, sys
from headrace import App
app = App({sqlite_url!r})
@app.task(name="x")
def x() -> None: ...
app.tasks.list()
before = set(sys.modules)
made = sqlite3.connect({sqlite_path(sqlite_url)!r})
x.using(connection=made).enqueue()
made.commit()
print(",".join(sorted({{"psycopg", "asyncpg"}} & set(sys.modules))))
assert len(app.tasks.list()) == 1
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
