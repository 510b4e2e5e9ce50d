"""Where tasks are when the ledger has moved to another database (`headrace db move`)."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from headrace.core.lanes import Lane
from headrace.core.states import JobState, TaskState
from headrace.core.task import JobRecord, TaskRecord
from headrace.store.base import Trace
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.inspection import get, instant


def trace(transaction: Transaction, ids: Sequence[int]) -> Trace:
    rows = transaction.rows("moved_to")
    if not rows:
        return Trace(here=get(transaction, ids), on_their_way={}, jobs_on_their_way={}, moved_to=None)
    records, jobs = _on_their_way(value for (value,) in transaction.rows("outgoing"))
    return Trace(
        here=get(transaction, ids),
        on_their_way={id: records[id] for id in ids if id in records},
        jobs_on_their_way=jobs,
        moved_to=rows[0][0],
    )


def _on_their_way(texts: Iterable[str]) -> tuple[dict[int, TaskRecord], dict[int, JobRecord]]:
    # Imported here: it brings SQLAlchemy, and only who looks for a task that has moved needs it.
    from headrace.store.moving.parcels import Parcel

    tasks: dict[int, TaskRecord] = {}
    jobs: dict[int, JobRecord] = {}
    for text in texts:
        parcel = Parcel.from_text(text)
        for table in ("tasks", "history"):
            tasks.update((values["id"], _task(values)) for values in parcel.named(table))
        counts = {values["job"]: values for values in parcel.named("job_counts")}
        for addition in parcel.named("job_additions"):
            if addition["job"] in counts:
                counts[addition["job"]]["total"] += addition["n"]
        jobs.update((values["id"], _job({**counts[values["id"]], **values})) for values in parcel.named("jobs"))
    return tasks, jobs


def _task(values: dict[str, Any]) -> TaskRecord:
    fields = _fields(TaskRecord, values)
    state = TaskState(values["state"])
    fields.update(lane=Lane(values["lane"]), state=state, dead_letter=bool(values["dead_letter"] and state == "failed"))
    return TaskRecord(**fields)


def _job(values: dict[str, Any]) -> JobRecord:
    # None of its tasks is held: it would not be on its way.
    fields = _fields(JobRecord, values)
    fields.update(state=JobState(values["state"]), running=0)
    return JobRecord(**fields)


def _fields(record: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    return {
        field.name: instant(values.get(field.name)) if field.name.endswith("_at") else values.get(field.name)
        for field in dataclasses.fields(record)
    }


class Tracing(Part):
    async def trace(self, ids: Sequence[int]) -> Trace:
        return await self.database.read(lambda transaction: trace(transaction, ids))
