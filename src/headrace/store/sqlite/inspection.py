"""Reads: none of them returns a total, and none grows with history."""

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import orjson

from headrace.core.lanes import Lane
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import AttemptRecord, Key, QueueRecord, TaskFilter, TaskRecord
from headrace.store.base import COUNTED_AT_MOST, LogLine, NameCount
from headrace.store.instants import from_micros
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.counting import counts, ended_counts, queue_names, queues
from headrace.store.sqlite.ending import ids_json
from headrace.store.sqlite.listing import list_ids
from headrace.store.texts import is_storable


def instant(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def _fields(record: type[Any]) -> tuple[tuple[str, bool], ...]:
    """The names of a record's columns, and which of them are instants."""
    return tuple((field.name, field.name.endswith("_at")) for field in dataclasses.fields(record))


_TASK_FIELDS = _fields(TaskRecord)
_ATTEMPT_FIELDS = _fields(AttemptRecord)


def _values(row: Row, fields: tuple[tuple[str, bool], ...]) -> dict[str, Any]:
    return {
        name: instant(value) if is_instant else value for (name, is_instant), value in zip(fields, row, strict=True)
    }


def task_record(row: Row) -> TaskRecord:
    values = _values(row, _TASK_FIELDS)
    values["lane"] = Lane(values["lane"])
    values["state"] = TaskState(values["state"])
    values["dead_letter"] = bool(values["dead_letter"])
    values["critical"] = bool(values["critical"])
    return TaskRecord(**values)


def _attempt_record(row: Row) -> AttemptRecord:
    values = _values(row, _ATTEMPT_FIELDS)
    values["state"] = AttemptState(values["state"])
    values["charged"] = bool(values["charged"])
    return AttemptRecord(**values)


def get(transaction: Transaction, ids: Sequence[int]) -> dict[int, TaskRecord]:
    parameters = (ids_json(ids),)
    rows = transaction.rows("get_live", parameters)
    if len(rows) < len(set(ids)):
        rows += transaction.rows("get_done", parameters)
    return {row[0]: task_record(row) for row in rows}


def list_tasks(transaction: Transaction, criteria: TaskFilter) -> list[TaskRecord]:
    ids = list_ids(transaction, criteria)
    records = get(transaction, ids)
    return [records[id] for id in ids]


class Inspecting(Part):
    async def get(self, ids: Sequence[int]) -> dict[int, TaskRecord]:
        return await self.database.read(lambda transaction: get(transaction, ids))

    async def key_holders(self, keys: Sequence[Key]) -> dict[tuple[str, str], int]:
        wanted = orjson.dumps([[key.scope, key.key] for key in keys if is_storable(key.key)]).decode()

        def look(transaction: Transaction) -> dict[tuple[str, str], int]:
            found = transaction.rows("key_holders", (wanted,))
            return {(row[0], row[1]): row[2] for row in found if row[3] is None or row[3] > transaction.now}

        return await self.database.read(look)

    async def attempts(self, task: int, *, limit: int | None = None, before: int | None = None) -> list[AttemptRecord]:
        parameters = {"task": task, "before": before, "limit": -1 if limit is None else limit}
        rows = await self.database.read(lambda transaction: transaction.rows("attempts", parameters))
        return [_attempt_record(row) for row in rows[::-1]]

    async def counts(self) -> dict[str, int]:
        return await self.database.read(counts)

    async def ended_counts(self, *, cap: int = COUNTED_AT_MOST) -> dict[TaskState, int]:
        return await self.database.read(lambda transaction: ended_counts(transaction, cap))

    async def waiting_retries(self, *, cap: int = COUNTED_AT_MOST) -> int:
        rows = await self.database.read(
            lambda transaction: transaction.rows("waiting_retries", {"cap": cap, "now": transaction.now})
        )
        return rows[0][0]

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
        parameters = {
            "task": task,
            "claim_no": claim_no,
            "after": after,
            "seen_claim": claim,
            "seen_seq": seq,
            "limit": limit,
        }
        rows = await self.database.read(lambda transaction: transaction.rows("logs", parameters))
        return [
            LogLine(task=task, claim_no=claim, seq=seq, at=from_micros(at), stream=stream, line=line)
            for task, claim, seq, at, stream, line in rows
        ]

    async def live_names(self, *, limit: int = COUNTED_AT_MOST) -> list[NameCount]:
        rows = await self.database.read(lambda transaction: transaction.rows("live_names", (limit,)))
        return [NameCount(name=name, kind=kind, n=n, oldest=oldest) for name, kind, n, oldest in rows]

    async def gate_holders(self, key: str, *, limit: int = 10) -> list[int]:
        parameters = {"key": key, "order": key.removeprefix("order:"), "limit": limit}
        query = "order_holders" if key.startswith("order:") else "gate_holders"
        rows = await self.database.read(lambda transaction: transaction.rows(query, parameters))
        return [task for (task,) in rows]

    async def now(self) -> datetime:
        return from_micros(self.database.now())

    async def queue_names(self) -> list[str]:
        return await self.database.read(queue_names)

    async def queues(self) -> list[QueueRecord]:
        return await self.database.read(queues)

    async def pause(self, queue: str) -> None:
        await self._set_paused(queue, 1)

    async def resume(self, queue: str) -> None:
        await self._set_paused(queue, 0)

    async def _set_paused(self, queue: str, paused: Literal[0, 1]) -> None:
        def write(transaction: Transaction) -> None:
            transaction.run("set_paused", {"queue": queue, "paused": paused})
            if not paused:
                transaction.wakes.add(queue)

        await self.database.write(write)

    # Last in the class: after it the name no longer means the built-in type.
    async def list(self, criteria: TaskFilter) -> list[TaskRecord]:
        return await self.database.read(lambda transaction: list_tasks(transaction, criteria))
