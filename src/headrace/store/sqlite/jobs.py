"""Jobs: made with their tasks, read with their counts, cancelled and run again as one."""

from collections.abc import Iterable, Sequence

import orjson

from headrace.core.errors import NotFound, WrongState
from headrace.core.states import JobState, Reason
from headrace.core.task import Enqueued, JobRecord, NewJob
from headrace.store.base import JobEndListener
from headrace.store.hooks import new_task_to_json, owned
from headrace.store.instants import from_micros
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.graphs import write_tasks
from headrace.store.sqlite.inspection import instant
from headrace.store.sqlite.job_counting import end_job, fold_additions
from headrace.store.sqlite.retrying import retry
from headrace.store.texts import is_storable


def create_job(transaction: Transaction, job: NewJob) -> tuple[int, Sequence[Enqueued]]:
    n = len(job.tasks)
    row = transaction.row("take_ids", (1 + n,))
    assert row is not None
    id = row[0] - 1 - n
    parameters = {
        "job": id,
        "name": job.name,
        "description": job.description,
        "timeout": job.timeout,
        "now": transaction.now,
        "on_success": new_task_to_json(owned(job.on_success, job.owner)),
        "on_failure": new_task_to_json(owned(job.on_failure, job.owner)),
        "metadata": job.metadata,
        "owner": job.owner,
    }
    transaction.run("insert_job", parameters)
    transaction.run("insert_job_counts", (id,))
    transaction.changed_jobs.add(id)
    return id, write_tasks(transaction, id, job.tasks, first=id + 1, owner=job.owner)


def get_job(transaction: Transaction, job: int) -> JobRecord | None:
    row = transaction.row("get_job", (job,))
    return None if row is None else _job_record(row)


def list_jobs(
    transaction: Transaction, states: Sequence[JobState], owner: str | None, limit: int, before: int | None
) -> list[JobRecord]:
    wanted = orjson.dumps(list(states)).decode() if states else None
    query = "list_job_ids" if owner is None else "list_job_ids_of_owner"
    ids = transaction.rows(query, {"states": wanted, "owner": owner, "before": before, "limit": limit})
    return _existing_jobs(transaction, [id for (id,) in ids])


def _existing_jobs(transaction: Transaction, ids: Iterable[int]) -> list[JobRecord]:
    found = (get_job(transaction, id) for id in ids)
    return [record for record in found if record is not None]


def cancel_job(transaction: Transaction, job: int) -> JobRecord:
    _existing(transaction, job)
    if not end_job(transaction, job, JobState.CANCELLED, Reason.USER, Reason.JOB_CANCELLED):
        raise WrongState(f"job {job} is already {_existing(transaction, job).state}; there is nothing to cancel")
    return _existing(transaction, job)


def retry_failed(transaction: Transaction, job: int) -> list[int]:
    state = _existing(transaction, job).state
    if state not in (JobState.FAILED, JobState.CANCELLED):
        raise WrongState(f"job {job} is {state}; only a failed or cancelled job has tasks to run again")
    if stopping := transaction.row("stopping_task_of_job", (job,)):
        # Its end belongs to the run that is over, and would be taken for one of the new run.
        raise WrongState(f"job {job} is {state} and still stopping: task {stopping[0]} has not ended yet; try again")
    fold_additions(transaction, job)
    wanted = {"job": job, "cancelled": state == JobState.CANCELLED}
    return retry(transaction, [id for (id,) in transaction.rows("tasks_to_rerun", wanted)])


def _existing(transaction: Transaction, job: int) -> JobRecord:
    record = get_job(transaction, job)
    if record is None:
        raise NotFound(f"job {job} does not exist")
    return record


def _job_record(row: Row) -> JobRecord:
    id, name, description, state, reason, run_no, created_at, started_at, completed_at, deadline_at, *rest = row
    total, completed, failed, cancelled, running, metadata, owner = rest
    return JobRecord(
        id=id,
        name=name,
        description=description,
        state=JobState(state),
        reason=reason,
        run_no=run_no,
        created_at=from_micros(created_at),
        started_at=instant(started_at),
        completed_at=instant(completed_at),
        deadline_at=instant(deadline_at),
        total=total,
        completed=completed,
        failed=failed,
        cancelled=cancelled,
        running=running,
        metadata=metadata,
        owner=owner,
    )


class JobKeeping(Part):
    def watch_job_ends(self, listener: JobEndListener) -> None:
        self.database.job_ended = listener

    async def create_job(self, job: NewJob) -> tuple[int, Sequence[Enqueued]]:
        return await self.database.write(lambda transaction: create_job(transaction, job))

    async def get_job(self, job: int) -> JobRecord | None:
        return await self.database.read(lambda transaction: get_job(transaction, job))

    async def get_jobs(self, jobs: Sequence[int]) -> list[JobRecord]:
        newest_first = sorted(set(jobs), reverse=True)
        return await self.database.read(lambda transaction: _existing_jobs(transaction, newest_first))

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
        return await self.database.read(lambda transaction: list_jobs(transaction, states, owner, limit, before))

    async def cancel_job(self, job: int) -> JobRecord:
        return await self.database.write(lambda transaction: cancel_job(transaction, job))

    async def retry_failed(self, job: int) -> list[int]:
        return await self.database.write(lambda transaction: retry_failed(transaction, job))
