"""Claim, start and what a running task writes of itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.core.task import ClaimedTask, Ref, Want
from headrace.store.base import Started
from headrace.store.postgres.claims import HandedClaims
from headrace.store.postgres.connection import Database, Rows
from headrace.store.postgres.live import Announcer
from headrace.store.postgres.low_water import Look, LowWater
from headrace.store.watching import task_topic


class Claiming:
    def __init__(
        self,
        database: Database,
        queries: Mapping[str, str],
        claims: HandedClaims,
        low_water: LowWater,
        announcer: Announcer,
    ) -> None:
        self._database = database
        self._queries = queries
        self._claims = claims
        self._low_water = low_water
        self._announcer = announcer

    async def claim(self, worker: str, wants: Sequence[Want]) -> list[ClaimedTask]:
        asked = [want for want in wants if want.n > 0]
        if not asked:
            return []
        async with self._claims.asking(worker):
            look = self._low_water.begin(worker, asked)
            # Not repeated when the connection is lost: the first try may have claimed.
            rows = await self._database.fetch(self._queries["claim"], worker, *want_columns(asked, look), verb="claim")
        claimed = claimed_tasks(rows)
        self._low_water.end(worker, look, asked, claimed)
        self._claims.hand(worker, claimed)
        self._announcer.note_jobs({task.job for task in claimed})
        return claimed

    async def promote(self, *, limit: int = 500) -> float | None:
        await self._database.fetch(self._queries["promote"], limit, repeatable=True)
        [row] = await self._database.fetch(self._queries["next_due"], repeatable=True)
        return None if row[0] is None else max(0.0, row[0])

    async def start(self, worker: str, refs: Sequence[Ref], *, executor: str | None = None) -> dict[Ref, Started]:
        tasks, claim_nos = [ref.id for ref in refs], [ref.claim_no for ref in refs]
        rows = await self._database.fetch(
            self._queries["start"], worker, tasks, claim_nos, executor, repeatable=True, verb="start"
        )
        started = {Ref(row[0], row[1]) for row in rows}
        answer = dict.fromkeys(refs, Started.STARTED)
        if missing := [ref for ref in refs if ref not in started]:
            rows = await self._database.fetch(
                self._queries["held_states"], worker, [ref.id for ref in missing], repeatable=True
            )
            states = {Ref(row[0], row[1]): row[2] for row in rows}
            for ref in missing:
                answer[ref] = Started.CANCELLING if states.get(ref) == "cancelling" else Started.REFUSED
            self._claims.forget(worker, [ref for ref in missing if answer[ref] is Started.REFUSED])
        return answer

    async def record_handle(self, worker: str, ref: Ref, handle: str) -> bool:
        return bool(
            await self._database.fetch(
                self._queries["record_handle"], worker, ref.id, ref.claim_no, handle, repeatable=True
            )
        )

    async def progress(self, worker: str, values: Sequence[tuple[Ref, str]]) -> None:
        last = dict(values)
        await self._database.fetch(
            self._queries["progress"],
            worker,
            [ref.id for ref in last],
            [ref.claim_no for ref in last],
            list(last.values()),
            repeatable=True,
        )
        self._announcer.note({task_topic(ref.id) for ref in last})


def want_columns(wants: Sequence[Want], look: Look) -> tuple[list[Any], ...]:
    return (
        [want.queue for want in wants],
        [want.pool for want in wants],
        [int(want.lane) for want in wants],
        [want.n for want in wants],
        [part.want for part in look.ranges],
        [part.high for part in look.ranges],
        [part.low for part in look.ranges],
        [part.mark[0] if part.mark else None for part in look.ranges],
        [part.mark[1] if part.mark else None for part in look.ranges],
    )


def claimed_tasks(rows: Rows) -> list[ClaimedTask]:
    return [ClaimedTask._make(row) for row in rows]
