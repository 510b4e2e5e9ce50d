"""A whole job in narrow rows, for whoever looks at it."""

from headrace.core.states import TaskState
from headrace.core.task import JobHooks, Outlined
from headrace.store.sqlite.connection import Part


class Outlining(Part):
    async def outline(self, job: int, *, after: int = 0, limit: int = 10_000) -> list[Outlined]:
        parameters = {"job": job, "after": after, "limit": limit}
        rows = await self.database.read(lambda transaction: transaction.rows("outline", parameters))
        return [
            Outlined(id, name, label, TaskState(state), reason, bool(critical), *rest)
            for id, name, label, state, reason, critical, *rest in rows
        ]

    async def tally(self, job: int) -> list[tuple[str, TaskState, int]]:
        rows = await self.database.read(lambda transaction: transaction.rows("tally", {"job": job}))
        return [(name, TaskState(state), n) for name, state, n in rows]

    async def hooks_of_job(self, job: int) -> JobHooks:
        row = await self.database.read(lambda transaction: transaction.row("hooks_of_job", (job,)))
        if row is None:
            return JobHooks()
        on_success, on_failure, enqueued = row
        return JobHooks(on_success=on_success, on_failure=on_failure, enqueued=bool(enqueued))
