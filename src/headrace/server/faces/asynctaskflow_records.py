"""What the ledger says in the words of AsyncTaskFlow: five states, one record. Pure.

What the specification has no word for is shown by the nearest: a task that was cancelled, stopped or rejected is
FAILED, one that waits for an approval or for other tasks is PENDING. A retry that waits for its time is FAILED, with
the time in `retry_after`; once it is due it is PENDING. So is one that was put back since, by an open breaker, say:
what it waits for is no failure of its own.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from headrace.core.lanes import Lane
from headrace.core.states import AttemptState, Reason, TaskState
from headrace.core.task import AttemptRecord, TaskRecord
from headrace.server.faces.ids import uuid_of


class Word(StrEnum):
    PENDING = "PENDING"
    ACTIVE = "ACTIVE"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    DLQ = "DLQ"


_WORDS: dict[TaskState, Word] = {
    TaskState.PENDING_APPROVAL: Word.PENDING,
    TaskState.BLOCKED: Word.PENDING,
    TaskState.PENDING: Word.PENDING,
    TaskState.LOST: Word.PENDING,
    TaskState.CLAIMED: Word.ACTIVE,
    TaskState.RUNNING: Word.ACTIVE,
    TaskState.PAUSED: Word.ACTIVE,
    TaskState.CANCELLING: Word.ACTIVE,
    TaskState.COMPLETED: Word.COMPLETED,
    TaskState.FAILED: Word.FAILED,
    TaskState.CANCELLED: Word.FAILED,
    TaskState.REJECTED: Word.FAILED,
}


def word_of(record: TaskRecord, now: datetime, attempts: Sequence[AttemptRecord] = ()) -> Word:
    """`attempts` are needed where `words_of` leaves more than one."""
    if record.dead_letter:
        return Word.DLQ
    if waits_for_retry(record, now, attempts):
        return Word.FAILED
    return _WORDS[record.state]


def words_of(record: TaskRecord, now: datetime) -> frozenset[Word]:
    """Those that may be its own, as far as that can be told without its attempts."""
    if _may_wait_for_retry(record, now) and not _every_claim_failed(record):
        return frozenset({Word.FAILED, Word.PENDING})
    return frozenset({word_of(record, now)})


def waits_for_retry(record: TaskRecord, now: datetime, attempts: Sequence[AttemptRecord]) -> bool:
    """Its last attempt failed, and the time of the next has not come."""
    if not _may_wait_for_retry(record, now):
        return False
    return _every_claim_failed(record) or any(
        attempt.charged and attempt.claim_no == record.claim_no for attempt in attempts
    )


def _may_wait_for_retry(record: TaskRecord, now: datetime) -> bool:
    return (
        record.state is TaskState.PENDING
        and record.lane is Lane.RETRY
        and record.attempt > 0
        and record.eligible_at > now
    )


def _every_claim_failed(record: TaskRecord) -> bool:
    """It was put back by nobody, and is in its first run: nearly all."""
    return record.claim_no <= record.attempt


def states_of(word: Word) -> tuple[TaskState, ...]:
    """The states in which a task that is shown by this word can be."""
    found = {state for state, each in _WORDS.items() if each is word}
    if word is Word.FAILED:
        found.add(TaskState.PENDING)
    if word is Word.DLQ:
        found = {TaskState.FAILED}
    return tuple(sorted(found))


class ErrorEntry(BaseModel):
    """One failed attempt."""

    time: datetime | None
    error: str | None
    type: str | None = Field(examples=["RateLimitError"])
    retry_count: int = Field(description="Retries before this attempt")


class TaskBody(BaseModel):
    """A task. What there is not is null, and never left out."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "task_id": str(uuid_of(17)),
                    "state": "PENDING",
                    "content": "Text to summarize...",
                    "retry_count": 0,
                    "max_retries": 3,
                    "last_error": None,
                    "error_type": None,
                    "retry_after": None,
                    "created_at": "2026-01-10T15:00:00Z",
                    "updated_at": "2026-01-10T15:00:00Z",
                    "completed_at": None,
                    "result": None,
                    "error_history": [],
                }
            ]
        }
    )

    task_id: UUID
    state: Word
    content: str | None = Field(description="What was to be summarised; null for a task that takes no content")
    retry_count: int
    max_retries: int
    last_error: str | None
    error_type: str | None
    retry_after: datetime | None = Field(description="When the retry is due that waits now")
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    result: Any
    error_history: list[ErrorEntry]


_FAILED = frozenset({AttemptState.FAILED, AttemptState.TIMED_OUT, AttemptState.LOST})


def body_of(
    record: TaskRecord, attempts: Sequence[AttemptRecord], *, now: datetime, content: str | None, result: Any
) -> TaskBody:
    errors = [_entry(attempt) for attempt in attempts if attempt.charged and attempt.state in _FAILED]
    last = errors[-1] if errors else None
    return TaskBody(
        task_id=uuid_of(record.id),
        state=word_of(record, now, attempts),
        content=content,
        retry_count=retry_count(record),
        max_retries=record.max_attempts - 1,
        last_error=record.error_message or (last.error if last else None),
        error_type=error_type(record.error_class) or (last.type if last else None),
        retry_after=record.eligible_at if waits_for_retry(record, now, attempts) else None,
        created_at=record.created_at,
        updated_at=_updated_at(record, attempts),
        completed_at=record.finished_at if record.state is TaskState.COMPLETED else None,
        result=result,
        error_history=errors,
    )


def retry_count(record: TaskRecord) -> int:
    """Retries of this run, one that waits or runs included. The first execution is none."""
    # One that grew too old waited for a retry, unless nothing of it ever ran.
    counted = record.attempt - (record.state.terminal and record.reason != Reason.EXPIRED)
    return max(0, min(counted, record.max_attempts - 1))


def error_type(error_class: str | None) -> str | None:
    """The class without its path: `RateLimitError`, as the delay table calls it."""
    return None if error_class is None else error_class.rpartition(".")[2]


def _entry(attempt: AttemptRecord) -> ErrorEntry:
    return ErrorEntry(
        time=attempt.finished_at,
        error=attempt.error_message,
        type=error_type(attempt.error_class),
        retry_count=max(0, (attempt.attempt or 1) - 1),
    )


def _updated_at(record: TaskRecord, attempts: Iterable[AttemptRecord]) -> datetime:
    instants = (
        record.created_at,
        record.enqueued_at,
        record.claimed_at,
        record.started_at,
        record.cancelling_at,
        record.finished_at,
        *(attempt.finished_at for attempt in attempts),
    )
    return max(at.astimezone(UTC) for at in instants if at is not None)
