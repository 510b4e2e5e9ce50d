"""A whole job in narrow rows, for whoever looks at it."""

from collections.abc import Mapping, Sequence

from headrace.core.grouping import Bone, Joint
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import JobHooks, Outlined
from headrace.store.base import Span
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

    async def bones(self, job: int, *, limit: int) -> Sequence[Bone]:
        [columns] = await self._database.fetch(self._queries["bones"], job, limit, repeatable=True)
        return list(zip(*columns, strict=True))

    async def joints(self, job: int, *, limit: int) -> Sequence[Joint]:
        [columns] = await self._database.fetch(self._queries["joints"], job, limit, repeatable=True)
        return list(zip(*columns, strict=True))

    async def labels(self, tasks: Sequence[int]) -> dict[int, str]:
        return dict(await self._database.fetch(self._queries["labels"], list(tasks), repeatable=True))

    async def spans(self, tasks: Sequence[int]) -> dict[int, list[Span]]:
        found: dict[int, list[Span]] = {}
        for task, claim_no, state, *rest in await self._database.fetch(
            self._queries["spans"], list(tasks), repeatable=True
        ):
            found.setdefault(task, []).append(Span(claim_no, AttemptState(state), *rest))
        return found

    async def hooks_of_job(self, job: int) -> JobHooks:
        rows = await self._database.fetch(self._queries["hooks_of_job"], job, repeatable=True)
        if not rows:
            return JobHooks()
        on_success, on_failure, enqueued = rows[0]
        return JobHooks(on_success=on_success, on_failure=on_failure, enqueued=enqueued)
