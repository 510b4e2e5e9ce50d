"""Jobs: many tasks, one fate."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import batched
from typing import Any

from headrace.core.errors import EnqueueError, NotFound, WrongState
from headrace.core.states import JobState
from headrace.core.task import Enqueued, JobRecord, NewJob, NewTask
from headrace.store.answers import Answers
from headrace.store.base import JobEndListener
from headrace.store.hooks import new_task_to_json, owned
from headrace.store.postgres.connection import Connection, Database
from headrace.store.postgres.edges import edge_columns, job_edges
from headrace.store.postgres.enqueueing import Enqueueing, document, ready_queues
from headrace.store.postgres.job_ends import JobEnds
from headrace.store.postgres.live import Announcer
from headrace.store.texts import is_storable

_BATCH = 1000  # tasks that are written at once
_EDGES = 10_000


class Jobs:
    def __init__(
        self, database: Database, queries: Mapping[str, str], enqueueing: Enqueueing, announcer: Announcer
    ) -> None:
        self._database = database
        self._queries = queries
        self._enqueueing = enqueueing
        self._announcer = announcer
        self._job_ends = JobEnds(database, queries)

    def watch_job_ends(self, listener: JobEndListener) -> None:
        self._database.job_ended = listener

    async def create_job(self, job: NewJob) -> tuple[int, Sequence[Enqueued]]:
        number, *taken = await self._enqueueing.take_ids(1 + len(job.tasks))
        ids = array("q", taken)
        del taken
        repeats = self._enqueueing.repeats
        existing: dict[int, int] = {}  # of keys that were held: place, and the task that holds it

        async def write(connection: Connection) -> None:
            # What writes the same row waits for an earlier try of this, and the row says that all of it was written.
            made = await connection.fetch(
                self._queries["create_job"],
                number,
                job.name,
                job.description,
                job.timeout,
                new_task_to_json(owned(job.on_success, job.owner)),
                new_task_to_json(owned(job.on_failure, job.owner)),
                job.metadata,
                job.owner,
            )
            if not made:
                return
            existing.clear()
            await connection.execute(self._queries["create_job_counts"], number)
            await self._write_tasks(connection, number, job.tasks, ids, existing, repeats)
            await connection.execute(self._queries["note_job"], number)

        await self._database.run(write, repeatable=True)
        self._announcer.note_jobs((number,))
        for place, holder in existing.items():
            ids[place] = holder
        answers = Answers(ids, existing)
        return number, answers if len(answers) > _BATCH else list(answers)

    async def _write_tasks(
        self,
        connection: Connection,
        job: int,
        tasks: Iterable[NewTask],
        ids: "array[int]",
        existing: dict[int, int],
        repeats: int | None,
    ) -> None:
        """Batch by batch: what is in memory at once does not grow with the job."""
        queues: set[str] = set()
        begun = 0
        for batch in batched((replace(task, job=job) for task in tasks), _BATCH):
            numbers = ids[begun : begun + len(batch)]
            if len(numbers) < len(batch):
                break
            text = document(batch, ids=numbers.tolist(), repeats=repeats, own=True, linked=False, created=True)
            for place, answer in enumerate(await self._enqueueing.write(connection, text), begun):
                if not answer.created:
                    existing[place] = answer.id
            for part in batched(job_edges(batch, begun, ids, existing), _EDGES):
                await connection.execute(self._queries["link_job"], *edge_columns(part))
            queues.update(ready_queues(batch))
            begun += len(batch)
        if begun != len(ids):
            raise EnqueueError(f"a job of {len(ids)} tasks gave another number of them; nothing was written")
        await connection.execute(self._queries["notify"], sorted(queues))

    async def get_job(self, job: int) -> JobRecord | None:
        found = await self.get_jobs([job])
        return found[0] if found else None

    async def get_jobs(self, jobs: Sequence[int]) -> list[JobRecord]:
        rows = await self._database.fetch(self._queries["get_jobs"], jobs, (), None, len(jobs), None, repeatable=True)
        return [_record(row) for row in rows]

    async def list_jobs(
        self,
        *,
        states: Sequence[JobState] = (),
        owner: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[JobRecord]:
        if not is_storable(owner):
            return []
        wanted = (None, [state.value for state in states], before, limit, owner)
        rows = await self._database.fetch(self._queries["get_jobs"], *wanted, repeatable=True)
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
