"""Jobs and tasks as the specification names their parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from headrace.core import payload
from headrace.core.states import JobState, TaskState
from headrace.core.task import JobRecord, TaskRecord
from headrace.orchestration.context import current_app


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job and how far it is."""

    id: int
    name: str
    description: str | None
    status: JobState
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    total_tasks: int
    completed_tasks: int
    failed_tasks: int
    cancelled_tasks: int

    @property
    def progress(self) -> float:
        """Completed tasks of all, from 0 to 1; a job without tasks has nothing left to do."""
        return self.completed_tasks / self.total_tasks if self.total_tasks else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a job."""

    id: int
    job_id: int | None
    entrypoint: str
    kwargs: Mapping[str, Any]
    status: TaskState
    result: Any
    result_table_id: str | None
    error_message: str | None
    retry_count: int
    max_retries: int
    worker_id: str | None
    created_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None


def job_of(record: JobRecord) -> Job:
    return Job(
        id=record.id,
        name=record.name,
        description=record.description,
        status=record.state,
        created_at=record.created_at,
        started_at=record.started_at,
        completed_at=record.completed_at,
        total_tasks=record.total,
        completed_tasks=record.completed,
        failed_tasks=record.failed,
        cancelled_tasks=record.cancelled,
    )


def task_of(record: TaskRecord) -> Task:
    codec = current_app().codecs.get(record.codec)
    result: Any = None if record.result is None else payload.loads(codec.decode(record.result))
    table_id = cast("dict[str, Any]", result).get("table_id") if isinstance(result, dict) else None
    return Task(
        id=record.id,
        job_id=record.job,
        entrypoint=record.name,
        kwargs=payload.loads(codec.decode(record.arguments)),
        status=record.state,
        result=result,
        result_table_id=None if table_id is None else str(table_id),
        error_message=record.error_message,
        # Charged executions beyond the first; a task that waits for its first has none.
        retry_count=max(0, record.attempt - 1),
        max_retries=record.max_attempts - 1,
        worker_id=record.worker,
        created_at=record.created_at,
        claimed_at=record.claimed_at,
        started_at=record.started_at,
        completed_at=record.finished_at,
    )
