"""Durable steps."""

from collections.abc import Mapping

from headrace.core.task import Ref
from headrace.store.postgres.connection import Database


class Checkpoints:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def save_checkpoint(self, worker: str, ref: Ref, name: str, value: str) -> str | None:
        rows = await self._database.fetch(
            self._queries["save_checkpoint"], worker, ref.id, ref.claim_no, name, value, repeatable=True
        )
        return rows[0][0] if rows else None

    async def checkpoints(self, task: int) -> dict[str, str]:
        rows = await self._database.fetch(self._queries["checkpoints"], task, repeatable=True)
        return {row["name"]: row["value"] for row in rows}
