"""Where tasks are when the ledger has moved to another database (`headrace db move`)."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from headrace.core.lanes import Lane
from headrace.core.states import TaskState
from headrace.core.task import TaskRecord
from headrace.store.base import Trace
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.inspection import get, instant


def trace(transaction: Transaction, ids: Sequence[int]) -> Trace:
    rows = transaction.rows("moved_to")
    if not rows:
        return Trace(here=get(transaction, ids), on_their_way={}, jobs_on_their_way=frozenset(), moved_to=None)
    records, jobs = _on_their_way(value for (value,) in transaction.rows("outgoing"))
    return Trace(
        here=get(transaction, ids),
        on_their_way={id: records[id] for id in ids if id in records},
        jobs_on_their_way=jobs,
        moved_to=rows[0][0],
    )


def _on_their_way(texts: Iterable[str]) -> tuple[dict[int, TaskRecord], frozenset[int]]:
    # Imported here: it brings SQLAlchemy, and only who looks for a task that has moved needs it.
    from headrace.store.moving.parcels import Parcel
    from headrace.store.moving.tables import layouts

    records: dict[int, TaskRecord] = {}
    jobs: set[int] = set()
    for text in texts:
        parcel = Parcel.from_text(text)
        jobs.update(parcel.column("jobs", "id"))
        for table in ("tasks", "history"):
            columns = layouts()[table].columns
            for row in parcel.rows.get(table, ()):
                record = _record(dict(zip(columns, row, strict=True)))
                records[record.id] = record
    return records, frozenset(jobs)


def _record(values: dict[str, Any]) -> TaskRecord:
    fields: dict[str, Any] = {
        field.name: instant(values.get(field.name)) if field.name.endswith("_at") else values.get(field.name)
        for field in dataclasses.fields(TaskRecord)
    }
    state = TaskState(values["state"])
    fields.update(lane=Lane(values["lane"]), state=state, dead_letter=bool(values["dead_letter"] and state == "failed"))
    return TaskRecord(**fields)


class Tracing(Part):
    async def trace(self, ids: Sequence[int]) -> Trace:
        return await self.database.read(lambda transaction: trace(transaction, ids))
