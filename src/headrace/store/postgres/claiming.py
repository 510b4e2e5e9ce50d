"""Claim, start and what a running task writes of itself."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.core.task import ClaimedTask, Ref, Want
from headrace.store.base import Started
from headrace.store.postgres.connection import Database, Rows
from headrace.store.postgres.wakeups import Waker

# Other processes may enqueue something that is due sooner than what this one knows of.
_LOOK_AGAIN = 0.25
PROMOTE_LIMIT = 500


class Claiming:
    def __init__(self, database: Database, queries: Mapping[str, str], waker: Waker) -> None:
        self._database = database
        self._queries = queries
        self._waker = waker
        self._next_due = 0.0

    async def claim(self, worker: str, wants: Sequence[Want]) -> list[ClaimedTask]:
        if not any(want.n > 0 for want in wants):
            return []
        await self.promote_when_due()
        rows = await self._database.fetch(self._queries["claim"], worker, *want_columns(wants), verb="claim")
        return claimed_tasks(rows)

    async def promote_when_due(self) -> None:
        if asyncio.get_running_loop().time() >= self._next_due:
            await self.promote()

    async def promote(self, *, limit: int = PROMOTE_LIMIT) -> float | None:
        [row] = await self._database.fetch(self._queries["promote"], limit, repeatable=True)
        wait: float | None = 0.0 if row["promoted"] >= limit else row["next_in"]
        pause = _LOOK_AGAIN if wait is None else min(wait, _LOOK_AGAIN)
        self._next_due = asyncio.get_running_loop().time() + pause
        if row["queues"]:
            await self._waker.wake(row["queues"])
        return wait

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
        return answer

    async def record_handle(self, worker: str, ref: Ref, handle: str) -> bool:
        return bool(
            await self._database.fetch(self._queries["record_handle"], worker, ref.id, ref.claim_no, handle, repeatable=True)
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


def want_columns(wants: Sequence[Want]) -> tuple[list[str], list[str], list[int], list[int]]:
    asked = [want for want in wants if want.n > 0]
    return (
        [want.queue for want in asked],
        [want.pool for want in asked],
        [int(want.lane) for want in asked],
        [want.n for want in asked],
    )


def claimed_tasks(rows: Rows | Sequence[Sequence[Any]]) -> list[ClaimedTask]:
    return [ClaimedTask._make(row) for row in rows]
