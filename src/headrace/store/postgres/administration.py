"""Schema: upgrade, downgrade, and whether this code may run on what is there."""

import re
from collections.abc import Mapping
from importlib.resources import files

from headrace._version import __version__
from headrace.core.errors import SchemaError
from headrace.store.base import StoreFacts, Violation
from headrace.store.postgres.connection import Connection, Database


class Administration:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    # The migrations are imported where they are used: Alembic costs every process a quarter of a second.

    async def upgrade(self, *, revision: str = "head") -> None:
        from headrace.store import migrations

        await migrations.async_upgrade(self._database.dsn, name=self._database.name, revision=revision)

    async def downgrade(self, revision: str) -> None:
        from headrace.store import migrations

        await migrations.async_downgrade(self._database.dsn, revision, name=self._database.name)

    async def schema_revision(self) -> str | None:
        from headrace.store import migrations

        return await migrations.async_current(self._database.dsn, name=self._database.name)

    async def facts(self) -> StoreFacts:
        [row] = await self._database.fetch(self._queries["facts"], repeatable=True)
        return StoreFacts(
            product="PostgreSQL",
            version=divmod(row["version"], 10_000),
            durable=row["fsync"] == "on" and row["synchronous_commit"] != "off",
            durability=f"fsync={row['fsync']} synchronous_commit={row['synchronous_commit']}",
            size=row["size"],
            connections=row["connections"],
            most_connections=row["most_connections"],
        )

    async def check(self) -> list[Violation]:
        from headrace.store.checker import check_rows, statements

        queries = statements("postgresql", self._database.name)

        async def read(connection: Connection) -> list[Violation]:
            # One snapshot of all tables; the transaction was begun by the first statement.
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            return check_rows({table: await connection.fetch(sql) for table, sql in queries.items()})

        return await self._database.run(read, repeatable=True)

    async def require_schema(self) -> None:
        """Refuse a database without our schema, or with one that this code does not know."""
        name, place = self._database.name, self._database.masked
        [row] = await self._database.fetch(self._queries["has_schema"], repeatable=True)
        if not row[0]:
            raise SchemaError(
                f"{place} has no schema {name!r}; run `headrace db upgrade -d` with this URL, or with module:app, first"
            )
        meta: dict[str, str] = dict(await self._database.fetch(self._queries["meta"], repeatable=True))
        schema, min_code = meta.get("schema"), meta.get("min_code", "0")
        if schema is not None and schema not in known_revisions():
            raise SchemaError(
                f"{place} has the schema {schema}, which is newer than this code ({__version__}): upgrade headrace"
            )
        if schema is not None and schema != max(known_revisions()):
            raise SchemaError(
                f"{place} has the schema {schema} of an older version, and this code ({__version__}) needs "
                f"{max(known_revisions())}; run `headrace db upgrade -d` with this URL, or with module:app, first"
            )
        if _version(min_code) > _version(__version__):
            raise SchemaError(f"{place} needs headrace {min_code} or newer; this is {__version__}")


def known_revisions() -> set[str]:
    """From the names of the migrations' files."""
    versions = files("headrace.store").joinpath("migrations", "versions")
    return {file.name.partition("_")[0] for file in versions.iterdir() if file.name.endswith(".py")}


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])
