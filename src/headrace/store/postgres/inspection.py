"""Reads."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from headrace.core.lanes import Lane
from headrace.core.states import TERMINAL, AttemptState, TaskState
from headrace.core.task import AttemptRecord, Key, Ref, TaskFilter, TaskRecord
from headrace.store.base import COUNTED_AT_MOST, LogLine, NameCount
from headrace.store.postgres.connection import Database, column
from headrace.store.postgres.live import Announcer
from headrace.store.postgres.reports import visible
from headrace.store.texts import is_storable
from headrace.store.watching import job_topic, task_topic


class Inspection:
    def __init__(self, database: Database, queries: Mapping[str, str], announcer: Announcer) -> None:
        self._database = database
        self._queries = queries
        self._announcer = announcer

    async def get(self, ids: Sequence[int]) -> dict[int, TaskRecord]:
        rows = await self._database.fetch(self._queries["get"], list(ids), repeatable=True)
        return {row["id"]: task_record(row) for row in rows}

    async def key_holders(self, keys: Sequence[Key]) -> dict[tuple[str, str], int]:
        wanted = [key for key in keys if is_storable(key.key)]
        columns = [key.scope for key in wanted], [key.key for key in wanted]
        rows = await self._database.fetch(self._queries["key_holders"], *columns, repeatable=True)
        return {(row["scope"], row["key"]): row["task"] for row in rows}

    async def list_tasks(self, criteria: TaskFilter) -> list[TaskRecord]:
        """Live tasks by their creation, ended ones by their end; both kinds together are sorted by that instant."""
        states = criteria.states
        if not is_storable(criteria.owner):
            return []
        live = criteria.dead_letter is not True and (not states or any(s not in TERMINAL for s in states))
        done = not states or any(s in TERMINAL for s in states)
        instant, last = criteria.before or (None, None)
        arguments: tuple[Any, ...] = (
            [s.value for s in states],
            [*criteria.queues],
            [*criteria.names],
            criteria.job,
            criteria.worker,
            instant,
            last,
            criteria.limit,
            criteria.owner,
        )
        found: list[TaskRecord] = []
        if live:
            found += await self._list("list_live", *arguments)
        if done and criteria.job is not None:
            found += await self._list("list_done_of_job", *arguments, criteria.dead_letter)
        elif done and criteria.dead_letter:
            found += await self._list("list_dead_letters", *arguments)
        elif done and criteria.owner is not None:
            found += await self._list("list_done_of_owner", *arguments, criteria.dead_letter)
        elif done:
            found += await self._list(
                "list_done",
                [s.value for s in states or TERMINAL if s.terminal],
                [*criteria.queues],
                [*criteria.names],
                criteria.worker,
                criteria.dead_letter,
                instant,
                last,
                criteria.limit,
            )
        if live and done:
            found.sort(key=lambda task: (task.finished_at or task.created_at, task.id), reverse=True)
        return found[: criteria.limit]

    async def _list(self, query: str, *arguments: Any) -> list[TaskRecord]:
        rows = await self._database.fetch(self._queries[query], *arguments, repeatable=True)
        return [task_record(row) for row in rows]

    async def attempts(self, task: int, *, limit: int | None = None, before: int | None = None) -> list[AttemptRecord]:
        rows = await self._database.fetch(self._queries["attempts"], task, before, limit, repeatable=True)
        return [AttemptRecord(**dict[str, Any]({**row, "state": AttemptState(row["state"])})) for row in rows[::-1]]

    async def counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        live = await self._database.fetch(self._queries["live_counts"], COUNTED_AT_MOST, repeatable=True)
        ended = await self._database.fetch(self._queries["outcome_counts"], repeatable=True)
        for state, n in (*live, *ended):
            counts[state] = counts.get(state, 0) + n
        return counts

    async def ended_counts(self, *, cap: int = COUNTED_AT_MOST) -> dict[TaskState, int]:
        states = [state.value for state in TERMINAL]
        rows = await self._database.fetch(self._queries["ended_counts"], states, cap, repeatable=True)
        return {TaskState(state): n for state, n in rows}

    async def waiting_retries(self, *, cap: int = COUNTED_AT_MOST) -> int:
        [row] = await self._database.fetch(self._queries["waiting_retries"], cap, repeatable=True)
        return row[0]

    async def append_logs(self, lines: Sequence[tuple[Ref, int, str, str]]) -> None:
        [(grown,)] = await self._database.fetch(
            self._queries["append_logs"],
            [ref.id for ref, _, _, _ in lines],
            [ref.claim_no for ref, _, _, _ in lines],
            [seq for _, seq, _, _ in lines],
            [stream for _, _, stream, _ in lines],
            [visible(line) for _, _, _, line in lines],
            repeatable=True,
        )
        self._announcer.note((*map(job_topic, grown), *{task_topic(ref.id) for ref, _, _, _ in lines}))

    async def logs(
        self,
        task: int,
        *,
        claim_no: int | None = None,
        after: int = -1,
        seen: tuple[int, int] | None = None,
        limit: int = 1000,
    ) -> list[LogLine]:
        claim, seq = seen or (-1, -1)
        rows = await self._database.fetch(
            self._queries["logs"], task, claim_no, after, claim, seq, limit, repeatable=True
        )
        return [LogLine(**row) for row in rows]

    async def live_names(self, *, limit: int = COUNTED_AT_MOST) -> list[NameCount]:
        rows = await self._database.fetch(self._queries["live_names"], limit, repeatable=True)
        return [NameCount(**row) for row in rows]

    async def gate_holders(self, key: str, *, limit: int = 10) -> list[int]:
        order = key.removeprefix("order:") if key.startswith("order:") else None
        return column(await self._database.fetch(self._queries["gate_holders"], key, order, limit, repeatable=True))

    async def now(self) -> datetime:
        [row] = await self._database.fetch(self._queries["now"], repeatable=True)
        return row[0]


def task_record(row: Mapping[str, Any]) -> TaskRecord:
    fields: dict[str, Any] = {**row, "lane": Lane(row["lane"]), "state": TaskState(row["state"])}
    return TaskRecord(**fields)
