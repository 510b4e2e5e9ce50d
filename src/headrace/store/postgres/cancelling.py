"""Cancel: at once where nobody holds the task, by asking its worker where somebody does."""

from collections.abc import Mapping, Sequence

from headrace.core.task import Ref
from headrace.store.base import CancelAnswer
from headrace.store.postgres.connection import Database


class Cancelling:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def cancel(self, ids: Sequence[int], *, reason: str = "user") -> dict[int, CancelAnswer]:
        # Not repeated by itself: the second try would call what the first one ended too late.
        rows = await self._database.fetch(self._queries["cancel"], list(dict.fromkeys(ids)), reason)
        return {row["id"]: CancelAnswer(row["answer"]) for row in rows}

    async def cancelling(self, worker: str) -> list[Ref]:
        rows = await self._database.fetch(self._queries["cancelling"], worker, repeatable=True)
        return [Ref(row["id"], row["claim_no"]) for row in rows]
