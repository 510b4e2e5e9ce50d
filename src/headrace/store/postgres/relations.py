"""What a task has to do with others."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from headrace.core.limits import Gate, gates_from_json
from headrace.core.states import TaskState
from headrace.core.task import EdgeKind
from headrace.store.postgres.connection import Database
from headrace.store.relations import Below, Relative

_KINDS = tuple(EdgeKind)


class Relations:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def gates(self, task: int) -> tuple[Gate, ...] | None:
        rows = await self._fetch("gates_of_task", task)
        return gates_from_json(rows[0][0]) if rows else None

    async def parents(self, task: int, *, limit: int) -> list[Relative]:
        return [_relative(row) for row in await self._fetch("parents", task, limit)]

    async def children(self, task: int, *, limit: int) -> list[Relative]:
        return [_relative(row) for row in await self._fetch("children", task, limit)]

    async def below(self, task: int, *, limit: int) -> list[Below]:
        rows = await self._fetch("below", task, limit)
        return [Below(id, name, label, TaskState(state)) for id, name, label, state in rows]

    async def fired_by(self, task: int, created_at: datetime) -> str | None:
        rows = await self._fetch("fired_by", task, created_at)
        return rows[0][0] if rows else None

    async def _fetch(self, query: str, *arguments: Any) -> Sequence[Any]:
        return await self._database.fetch(self._queries[query], *arguments, repeatable=True)


def _relative(row: Any) -> Relative:
    id, name, label, state, kind, input = row
    return Relative(id, name, label, TaskState(state), _KINDS[kind], input is not None)
