"""A whole job in narrow rows, for whoever looks at it."""

from collections.abc import Sequence
from typing import cast

from headrace.core.grouping import Bone, Joint
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import JobHooks, Outlined
from headrace.store.base import Span
from headrace.store.sqlite.connection import Part
from headrace.store.sqlite.ending import ids_json
from headrace.store.sqlite.inspection import instant


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

    async def bones(self, job: int, *, limit: int) -> Sequence[Bone]:
        parameters = {"job": job, "limit": limit}
        rows = await self.database.read(lambda transaction: transaction.rows("bones", parameters))
        return cast("list[Bone]", rows)

    async def joints(self, job: int, *, limit: int) -> Sequence[Joint]:
        parameters = {"job": job, "limit": limit}
        rows = await self.database.read(lambda transaction: transaction.rows("joints", parameters))
        return cast("list[Joint]", rows)

    async def labels(self, tasks: Sequence[int]) -> dict[int, str]:
        parameters = {"ids": ids_json(tasks)}
        return dict(await self.database.read(lambda transaction: transaction.rows("labels", parameters)))

    async def spans(self, tasks: Sequence[int]) -> dict[int, list[Span]]:
        parameters = {"ids": ids_json(tasks)}
        found: dict[int, list[Span]] = {}
        for task, claim_no, state, charged, worker, began, ended in await self.database.read(
            lambda transaction: transaction.rows("spans", parameters)
        ):
            span = Span(claim_no, AttemptState(state), bool(charged), worker, instant(began), instant(ended))
            found.setdefault(task, []).append(span)
        return found

    async def hooks_of_job(self, job: int) -> JobHooks:
        row = await self.database.read(lambda transaction: transaction.row("hooks_of_job", (job,)))
        if row is None:
            return JobHooks()
        on_success, on_failure, enqueued = row
        return JobHooks(on_success=on_success, on_failure=on_failure, enqueued=bool(enqueued))
