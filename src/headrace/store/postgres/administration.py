"""Schema: upgrade, downgrade, and whether this code may run on what is there."""

from collections.abc import Mapping

from headrace.core.errors import SchemaError
from headrace.store import migrations
from headrace.store.base import Violation
from headrace.store.postgres.connection import Database


class Administration:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def upgrade(self, *, revision: str = "head") -> None:
        await migrations.async_upgrade(self._database.dsn, name=self._database.name, revision=revision)

    async def downgrade(self, revision: str) -> None:
        await migrations.async_downgrade(self._database.dsn, revision, name=self._database.name)

    async def schema_revision(self) -> str | None:
        return await migrations.async_current(self._database.dsn, name=self._database.name)

    async def check(self) -> list[Violation]:
        return []

    async def require_schema(self) -> None:
        """Refuse a database without our schema, or with one that this code does not know."""
        name, place = self._database.name, self._database.masked
        [row] = await self._database.fetch("SELECT to_regclass($1)", f"{name}.meta", repeatable=True)
        if row[0] is None:
            raise SchemaError(f"{place} has no schema {name!r}; run `headrace db upgrade` first")
