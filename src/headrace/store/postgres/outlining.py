"""A whole job in narrow rows, for whoever looks at it."""

from collections.abc import Mapping

from headrace.core.states import TaskState
from headrace.core.task import JobHooks, Outlined
from headrace.store.postgres.connection import Database


class Outlines:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def outline(self, job: int, *, after: int = 0, limit: int = 10_000) -> list[Outlined]:
        rows = await self._database.fetch(self._queries["outline"], job, after, limit, repeatable=True)
        return [Outlined(id, name, label, TaskState(state), *rest) for id, name, label, state, *rest in rows]

    async def tally(self, job: int) -> list[tuple[str, TaskState, int]]:
        rows = await self._database.fetch(self._queries["tally"], job, repeatable=True)
        return [(name, TaskState(state), n) for name, state, n in rows]

    async def hooks_of_job(self, job: int) -> JobHooks:
        rows = await self._database.fetch(self._queries["hooks_of_job"], job, repeatable=True)
        if not rows:
            return JobHooks()
        on_success, on_failure, enqueued = rows[0]
        return JobHooks(on_success=on_success, on_failure=on_failure, enqueued=enqueued)
