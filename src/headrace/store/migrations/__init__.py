"""The schema's history (Alembic): how an empty database, or one of an older version, becomes `store.schema`.

`upgrade`, `downgrade` and `current` take a URL and the app's name; an open `sqlite3.Connection` will do as well, for a
database in memory. Every call is one transaction, and calls on one database wait for each other, so that many
processes may start at once. All of them block; from a coroutine use the forms that start with `async_`.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, StaticPool, create_engine, event, inspect, text
from sqlalchemy.schema import DropSchema

from headrace.core.errors import SchemaError, SettingsError
from headrace.store.connect import postgres_dsn, sqlite_path

BASE = "base"
HEAD = "head"

type Target = str | sqlite3.Connection

_BUSY_SECONDS = 60.0


def upgrade(target: Target, *, name: str, revision: str = HEAD) -> None:
    """Bring the app's tables to `revision`; what is there already stays as it is."""
    _run(target, lambda connection: _alembic(command.upgrade, _config(connection, name), revision), name)


def downgrade(target: Target, revision: str, *, name: str) -> None:
    """Take the app's tables back to `revision`; `base` removes them and everything in them."""
    _run(target, lambda connection: _alembic(command.downgrade, _config(connection, name), revision), name)


def drop(url: str, *, name: str) -> None:
    """Remove an app's schema from PostgreSQL with everything in it, and the one of a clock of its tests."""

    def work(connection: Connection) -> None:
        for schema in (name, f"{name}_clock"):
            connection.execute(DropSchema(schema, cascade=True, if_exists=True))

    _run(url, work, name)


def empty(url: str, *, name: str) -> None:
    """Remove everything that an app has in PostgreSQL, but for the tables themselves; for tests."""

    def work(connection: Connection) -> None:
        kept = {"meta", version_table("postgresql", name)[0]}
        found = [f"{name}.{table}" for table in inspect(connection).get_table_names(schema=name) if table not in kept]
        connection.execute(text(f"TRUNCATE {', '.join(found)}"))

    _run(url, work, name)


def current(target: Target, *, name: str) -> str | None:
    """The revision the database has; None where the app has no tables."""
    return _run(target, lambda connection: current_revision(connection, name), name, lock=False)


def heads() -> tuple[str, ...]:
    """The newest revision this code knows."""
    return tuple(ScriptDirectory.from_config(_config(None, "headrace")).get_heads())


async def async_upgrade(target: Target, *, name: str, revision: str = HEAD) -> None:
    await asyncio.to_thread(upgrade, target, name=name, revision=revision)


async def async_downgrade(target: Target, revision: str, *, name: str) -> None:
    await asyncio.to_thread(downgrade, target, revision, name=name)


async def async_current(target: Target, *, name: str) -> str | None:
    return await asyncio.to_thread(current, target, name=name)


def version_table(dialect: str, name: str) -> tuple[str, str | None]:
    """(table, schema) in which Alembic keeps the revision: each app has its own."""
    return (f"{name}_alembic_version", None) if dialect == "sqlite" else ("alembic_version", name)


def current_revision(connection: Connection, name: str) -> str | None:
    table, schema = version_table(connection.dialect.name, name)
    options = {"version_table": table, "version_table_schema": schema}
    return MigrationContext.configure(connection, opts=options).get_current_revision()


def _alembic(act: Callable[[Config, str], None], config: Config, revision: str) -> None:
    try:
        act(config, revision)
    except CommandError as error:
        raise SchemaError(f"revision {revision!r}: {error}; this version knows {', '.join(heads())}") from error


def _config(connection: Connection | None, name: str) -> Config:
    config = Config()
    # Alembic expands % in its options; a path may hold one.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["name"] = name
    return config


def _run[T](target: Target, work: Callable[[Connection], T], name: str, *, lock: bool = True) -> T:
    """Do `work` in one transaction, alone on this database where `lock` says so."""
    if isinstance(target, sqlite3.Connection):
        return _on_open_sqlite(target, work, lock=lock)
    if target.startswith("sqlite:"):
        path = sqlite_path(target)
        if path == ":memory:":
            raise SettingsError("a database in memory lives in its connection: pass that instead of the URL")
        connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            return _on_open_sqlite(connection, work, lock=lock)
        finally:
            connection.close()
    # Imported here: the driver of PostgreSQL is an extra.
    from headrace.store.postgres.migrating import on_connection

    dsn = postgres_dsn(target)
    return _complete(lambda: on_connection(dsn, lambda connection: _locked(connection, work, name, lock=lock)))


def _on_open_sqlite[T](raw: sqlite3.Connection, work: Callable[[Connection], T], *, lock: bool) -> T:
    if raw.in_transaction:
        raise SchemaError("the schema cannot be changed inside an open transaction: commit or roll back first")
    engine = create_engine("sqlite://", creator=lambda: raw, poolclass=StaticPool)

    # The driver's own transactions would leave DDL outside; and an upgrade that began by reading could not wait for
    # another one's lock.
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if lock else "BEGIN")

    event.listen(engine, "begin", begin)
    level, raw.isolation_level = raw.isolation_level, None
    try:
        with engine.begin() as connection:
            return work(connection)
    finally:
        raw.isolation_level = level


def _locked[T](connection: Connection, work: Callable[[Connection], T], name: str, *, lock: bool) -> T:
    if lock:
        # The one advisory lock headrace takes: it ends with this transaction, so a pooler between does not matter.
        connection.execute(
            text("SELECT pg_advisory_xact_lock(hashtextextended(:subject, 0))"), {"subject": f"headrace:{name}"}
        )
    return work(connection)


def _complete[T](work: Callable[[], Coroutine[None, None, T]]) -> T:
    """Run a coroutine to its end, also on a thread whose event loop is busy with the caller."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(asyncio.run(work()))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="headrace-migrations")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]
