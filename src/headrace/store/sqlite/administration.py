"""The file and its schema: what `open` insists on, upgrades, and the proof of the ledger's invariants."""

import contextlib
import re
import sqlite3
from functools import cache
from importlib import resources
from pathlib import Path

from headrace._version import __version__
from headrace.core.errors import SchemaError, StoreError
from headrace.store.base import StoreFacts, StoreOptions, Violation
from headrace.store.queries import for_app
from headrace.store.sqlite.connection import MEMORY, Database, Part, Transaction, Work
from headrace.store.sqlite.mounts import NETWORK, file_system

_SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")  # as the pragma counts them
_HAS_SCHEMA = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"


def check_location(path: str) -> None:
    """Refuse a place where a database cannot be, before anything is made there."""
    if path == MEMORY:
        return
    folder = Path(path).parent
    if not folder.is_dir():
        raise StoreError(f"the folder {folder} of the database {path} does not exist; make it first")
    if Path(path).is_dir():
        raise StoreError(f"{path} is a folder; name a file in it")
    kind = file_system(folder.resolve())
    if kind in NETWORK:
        raise StoreError(
            f"{path} lies on a network file system ({kind}), where SQLite's locks do not hold and tasks would be lost; "
            "put it on a local disk, or use PostgreSQL"
        )


def use_wal(connection: sqlite3.Connection, path: str) -> None:
    """Kept in the file: set before the first schema, because a change needs a moment without any transaction."""
    if path != MEMORY:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA journal_size_limit = 67108864")


def is_made(path: str, name: str) -> bool:
    """Whether `prepare` would only read: the file has its mode and the newest schema."""
    if path == MEMORY or not Path(path).exists():
        return False
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=0)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal" or connection.execute(_HAS_SCHEMA, (f"{name}_meta",)).fetchone() is None:
                return False
            return not _is_older(_meta(connection, name).get("schema"))
    except sqlite3.Error:
        return False  # whatever it is, `prepare` meets it again and tells


def prepare(connection: sqlite3.Connection, path: str, options: StoreOptions) -> None:
    """A new writing connection, under the lock between processes where the file needs a change: the schema is made or
    upgraded once, a newer one is refused. Migrations only add, so whoever has the file open goes on.
    """
    use_wal(connection, path)
    if connection.execute(_HAS_SCHEMA, (f"{options.name}_meta",)).fetchone() is None:
        if not options.migrate:
            raise SchemaError(f"{path} has no schema of the app {options.name!r}; run: headrace db upgrade")
        _upgrade(connection, options.name)
    meta = _meta(connection, options.name)
    if _is_older(meta.get("schema")):
        if not options.migrate:
            raise SchemaError(
                f"{path} has the schema {meta['schema']} and this code ({__version__}) needs {newest_revision()}; "
                "run: headrace db upgrade"
            )
        _upgrade(connection, options.name)
        meta = _meta(connection, options.name)
    schema, min_code = meta.get("schema"), meta.get("min_code", "0")
    if schema is not None and schema not in known_revisions():
        raise SchemaError(
            f"{path} has the schema {schema}, which is newer than this code ({__version__}): upgrade headrace"
        )
    if _version(min_code) > _version(__version__):
        raise SchemaError(f"{path} needs headrace {min_code} or newer; this is {__version__}")


def _meta(connection: sqlite3.Connection, name: str) -> dict[str, str]:
    sql = for_app("SELECT key, value FROM headrace_meta WHERE key IN ('schema', 'min_code')", name)
    return dict(connection.execute(sql).fetchall())


def _is_older(schema: str | None) -> bool:
    return schema is not None and schema != newest_revision() and schema in known_revisions()


def newest_revision() -> str:
    return max(known_revisions())


@cache
def known_revisions() -> set[str]:
    """From the names of the migrations' files: importing Alembic would cost every process a quarter of a second."""
    files = resources.files("headrace.store").joinpath("migrations", "versions").iterdir()
    return {file.name.partition("_")[0] for file in files if file.name.endswith(".py")}


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])


def _upgrade(connection: sqlite3.Connection, name: str, revision: str = "head") -> None:
    from headrace.store import migrations

    migrations.upgrade(connection, name=name, revision=revision)


class Administering(Part):
    async def upgrade(self, *, revision: str = "head") -> None:
        name = self.database.options.name
        await self._administer(lambda transaction: _upgrade(transaction.connection, name, revision))

    async def downgrade(self, revision: str) -> None:
        from headrace.store import migrations

        name = self.database.options.name
        await self._administer(lambda transaction: migrations.downgrade(transaction.connection, revision, name=name))

    async def schema_revision(self) -> str | None:
        from headrace.store import migrations

        name = self.database.options.name
        return await self._administer(lambda transaction: migrations.current(transaction.connection, name=name))

    async def _administer[T](self, work: Work[T]) -> T:
        """On the open store, or else on a connection of its own that does not insist on a schema."""
        if self.database.is_open:
            return await self.database.alone(work)
        check_location(self.database.path)
        bare = Database(self.database.path, self.database.options)
        bare.prepare = lambda connection: use_wal(connection, self.database.path)
        await bare.open()
        try:
            return await bare.alone(work)
        finally:
            await bare.close()

    async def facts(self) -> StoreFacts:
        def read(transaction: Transaction) -> StoreFacts:
            def pragma(name: str) -> int | str:
                return transaction.connection.execute(f"PRAGMA {name}").fetchone()[0]

            synchronous = _SYNCHRONOUS[int(pragma("synchronous"))]
            return StoreFacts(
                product="SQLite",
                version=sqlite3.sqlite_version_info,
                durable=synchronous in ("FULL", "EXTRA"),
                durability=f"journal_mode={pragma('journal_mode')} synchronous={synchronous}",
                size=int(pragma("page_count")) * int(pragma("page_size")),
            )

        return await self.database.read(read)

    async def check(self) -> list[Violation]:
        from headrace.store.checker import check_sqlite

        return await self.database.read(
            lambda transaction: check_sqlite(transaction.connection, self.database.options.name)
        )
