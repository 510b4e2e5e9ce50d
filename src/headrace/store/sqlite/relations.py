"""What a task has to do with others."""

from datetime import datetime

from headrace.core.limits import Gate, gates_from_json
from headrace.core.states import TaskState
from headrace.core.task import EdgeKind
from headrace.store.instants import to_micros
from headrace.store.relations import Below, Relative
from headrace.store.sqlite.connection import Part, Row

_KINDS = tuple(EdgeKind)
_MINUTE = 60_000_000


class Relating(Part):
    async def gates(self, task: int) -> tuple[Gate, ...] | None:
        row = await self.database.read(lambda transaction: transaction.row("gates_of_task", {"task": task}))
        return None if row is None else gates_from_json(row[0])

    async def parents(self, task: int, *, limit: int) -> list[Relative]:
        return await self._relatives("parents", task, limit)

    async def children(self, task: int, *, limit: int) -> list[Relative]:
        return await self._relatives("children", task, limit)

    async def below(self, task: int, *, limit: int) -> list[Below]:
        parameters = {"task": task, "limit": limit}
        rows = await self.database.read(lambda transaction: transaction.rows("below", parameters))
        return [Below(id, name, label, TaskState(state)) for id, name, label, state in rows]

    async def fired_by(self, task: int, created_at: datetime) -> str | None:
        at = to_micros(created_at)
        parameters = {"task": task, "since": at - _MINUTE, "until": at + _MINUTE}
        row = await self.database.read(lambda transaction: transaction.row("fired_by", parameters))
        return None if row is None else row[0]

    async def _relatives(self, query: str, task: int, limit: int) -> list[Relative]:
        parameters = {"task": task, "limit": limit}
        rows = await self.database.read(lambda transaction: transaction.rows(query, parameters))
        return [_relative(row) for row in rows]


def _relative(row: Row) -> Relative:
    id, name, label, state, kind, input = row
    return Relative(id, name, label, TaskState(state), _KINDS[kind], input is not None)
