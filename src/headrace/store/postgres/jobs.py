"""Jobs: many tasks, one fate."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.core.errors import NotFound, WrongState
from headrace.core.states import JobState
from headrace.core.task import Enqueued, JobRecord, NewJob
from headrace.store.base import JobEndListener
from headrace.store.hooks import new_task_to_json
from headrace.store.postgres.connection import Connection, Database
from headrace.store.postgres.enqueueing import Enqueueing, document, ready_queues
from headrace.store.postgres.job_ends import JobEnds


class Jobs:
    def __init__(self, database: Database, queries: Mapping[str, str], enqueueing: Enqueueing) -> None:
        self._database = database
        self._queries = queries
        self._enqueueing = enqueueing
        self._job_ends = JobEnds(database, queries)

    def watch_job_ends(self, listener: JobEndListener) -> None:
        self._database.job_ended = listener

    async def create_job(self, job: NewJob) -> tuple[int, list[Enqueued]]:
        number, *ids = await self._enqueueing.take_ids(1 + len(job.tasks))
        tasks = [replace(task, job=number) for task in job.tasks]
        repeats = self._enqueueing.repeats
        tries = 0

        async def write(connection: Connection) -> list[Enqueued]:
            nonlocal tries
            text = document(tasks, ids=ids, repeats=repeats, own=True, repeated=tries > 0, notify=ready_queues(tasks))
            tries += 1
            await connection.execute(
                self._queries["create_job"],
                number,
                job.name,
                job.description,
                job.timeout,
                new_task_to_json(job.on_success),
                new_task_to_json(job.on_failure),
                job.metadata,
            )
            await connection.execute(self._queries["create_job_counts"], number)
            return await self._enqueueing.write(connection, text) if tasks else []

        return number, await self._database.run(write, repeatable=True)

    async def get_job(self, job: int) -> JobRecord | None:
        rows = await self._database.fetch(self._queries["get_jobs"], job, [], None, 1, repeatable=True)
        return _record(rows[0]) if rows else None

    async def list_jobs(
        self, *, states: Sequence[JobState] = (), limit: int = 100, before: int | None = None
    ) -> list[JobRecord]:
        names = [state.value for state in states]
        rows = await self._database.fetch(self._queries["get_jobs"], None, names, before, limit, repeatable=True)
        return [_record(row) for row in rows]

    async def cancel_job(self, job: int) -> JobRecord:
        [row] = await self._database.fetch(self._queries["close_job"], job, "cancelled", "user")
        record = await self.get_job(job)
        if record is None:
            raise NotFound(f"no job {job}; nothing was cancelled")
        if not row[0]:
            raise WrongState(f"job {job} is already {record.state}; nothing was cancelled")
        await self._job_ends.tell_of(job)
        return record


def _record(row: Mapping[str, Any]) -> JobRecord:
    fields: dict[str, Any] = {**row, "state": JobState(row["state"])}
    return JobRecord(**fields)
