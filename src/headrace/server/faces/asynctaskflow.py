"""The endpoints of AsyncTaskFlow, at its paths and with its words, over the same ledger as everything else.

Ids are UUIDs here: `/api/v1/tasks/{UUID}` is this face, `/api/v1/tasks/17` the native API. Redis is where its
specification keeps tasks; with us that is the database, and so `redis` in `/health` says whether the database answers.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from headrace.app import App
from headrace.client.results import result_text
from headrace.client.seen import retry_seen
from headrace.core.accounts import Role, Scope
from headrace.core.breaker import BreakerStatus
from headrace.core.errors import HeadraceError, UnknownTask
from headrace.core.payload import loads
from headrace.core.states import TaskState
from headrace.core.task import AttemptRecord, TaskFilter, TaskRecord
from headrace.server.access import TheApp, permit
from headrace.server.auditing import audited
from headrace.server.auth.caller import Caller
from headrace.server.faces.asynctaskflow_records import (
    TaskBody,
    Word,
    body_of,
    states_of,
    waits_for_retry,
    word_of,
    words_of,
)
from headrace.server.faces.ids import id_of, uuid_of
from headrace.server.figures import ratio_of
from headrace.server.probes import TheProbes
from headrace.server.problems import Problem
from headrace.server.submitting import owned
from headrace.store.base import COUNTED_AT_MOST, CancelAnswer, Store
from headrace.store.removing import DeleteAnswer

TASK = "summarize"
SERVICE = "openrouter"

router = APIRouter(tags=["AsyncTaskFlow"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
Submitter = Annotated[Caller, Depends(permit(Scope.SUBMIT, role=Role.USER))]
Controller = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.USER))]
Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]
Limit = Annotated[int, Query(ge=1, le=500, description="At most so many, newest first")]

_HEALTH_LIMIT = 2.0  # seconds after which a database that says nothing is not well
_PAGE = 200
_LOOKED_AT = 50  # pages that a list by status looks through at most


class Summarize(BaseModel):
    model_config = ConfigDict(extra="forbid")

    content: Annotated[str, StringConstraints(min_length=1, pattern=r"\S")] = Field(
        examples=["Text to summarize..."], description="At least one character that is no space"
    )


class TaskResponse(BaseModel):
    task_id: UUID
    state: Word


class Requeued(BaseModel):
    """How many tasks went back to their queues."""

    requeued: int = Field(description="All of them")
    pending: int = Field(description="Were PENDING and in no queue")
    active: int = Field(description="Were ACTIVE in the hands of a worker that is gone")
    failed: int = Field(description="Of such a worker, and without an attempt left")


class QueueDepths(BaseModel):
    primary: int
    retry: int
    scheduled: int
    dlq: int


class QueueStatus(BaseModel):
    queues: QueueDepths
    states: dict[Word, int]
    retry_ratio: float = Field(description="The share of retries among the starts of a worker, by the retry depth")
    at_least: list[str] = Field(description=f"Figures that were counted up to {COUNTED_AT_MOST - 1:,} and no further")


class Components(BaseModel):
    redis: bool = Field(description="Whether the database answers")
    workers: bool = Field(description="Whether a worker is active")
    circuit_breaker: dict[str, str] = Field(description="CLOSED, OPEN or HALF_OPEN, by service")


class HealthStatus(BaseModel):
    status: str = Field(pattern="^(healthy|unhealthy)$")
    components: Components
    timestamp: datetime


# --- tasks ------------------------------------------------------------------------------------------------------------


@router.post("/api/v1/tasks/summarize/")
async def create_task(given: Summarize, app: TheApp, caller: Submitter) -> TaskResponse:
    """Submit a text. One transaction writes the task, and nothing else has to happen for a worker to find it."""
    try:
        task = app.get_task(TASK)
    except UnknownTask:
        raise Problem(
            503,
            "No summarize task",
            "this app has no summarize task: call headrace.contrib.summarize.register(app) where its tasks are defined",
        ) from None
    (answer,) = await app.engine.enqueue([owned(caller, task.prepare(content=given.content))])
    return TaskResponse(task_id=uuid_of(answer.id), state=Word.PENDING)


@router.get("/api/v1/tasks/")
async def list_tasks(app: TheApp, caller: Reader, status: Word | None = None, limit: Limit = 100) -> list[TaskBody]:
    """Tasks of any kind, newest first; a user's own. With `status`, those that are shown by this word."""
    owner = caller.only_own

    async def look(store: Store) -> list[_Read]:
        found: list[_Read] = []
        now = await store.now()
        async for page in _pages(store, status, owner, limit):
            for record in page:
                if status is not None and status not in words_of(record, now):
                    continue
                read = _Read(record, await _attempts(store, record), now)
                if status is None or word_of(record, now, read.attempts) is status:
                    found.append(read)
                if len(found) == limit:
                    return found
        return found

    return [await _shown(app, read) for read in await app.engine.run(look)]


@router.post("/api/v1/tasks/requeue-orphaned")
async def requeue_orphaned(app: TheApp, caller: Operator) -> Requeued:
    """Find PENDING tasks that are in no queue and ACTIVE ones of workers that are gone, and queue each once. Workers do
    the same by themselves; a worker that only looks gone is watched for half a lease first."""
    async with audited(app, caller, "tasks.requeue-orphaned", "tasks"):
        pending = await app.engine.run(_unpark)
        rescued = await app.tasks.arequeue_orphaned()
    active = rescued["requeued"]
    return Requeued(requeued=pending + active, pending=pending, active=active, failed=rescued["failed"])


@router.get("/api/v1/tasks/{task_id:uuid}")
async def get_task(task_id: UUID, app: TheApp, caller: Reader) -> TaskBody:
    """One task, of whatever kind."""
    record = await _seen(app, caller, task_id)

    async def look(store: Store) -> _Read:
        return _Read(record, await _attempts(store, record), await store.now())

    return await _shown(app, await app.engine.run(look))


@router.post("/api/v1/tasks/{task_id:uuid}/retry")
async def retry_task(task_id: UUID, app: TheApp, caller: Controller) -> TaskResponse:
    """Run a FAILED or dead task again, from now, with a fresh budget, in the retry lane. Of two at once, one does."""
    record = await _controlled(app, caller, task_id)
    async with audited(app, caller, "tasks.retry", f"task/{record.id}"):
        if not await _retried(app, record):
            raise Problem(400, "Bad Request", "Task cannot be retried")
    return TaskResponse(task_id=task_id, state=Word.PENDING)


@router.delete("/api/v1/tasks/{task_id:uuid}", status_code=204)
async def delete_task(task_id: UUID, app: TheApp, caller: Controller) -> None:
    """Remove a task with everything that belongs to it. 409 while a worker has it: cancel it first."""
    record = await _controlled(app, caller, task_id)
    async with audited(app, caller, "tasks.delete", f"task/{record.id}"):
        match (await app.tasks.adelete(record.id))[record.id]:
            case DeleteAnswer.DELETED:
                return
            case DeleteAnswer.UNKNOWN:
                raise _not_found()
            case DeleteAnswer.HELD:
                raise Problem(
                    409, "Conflict", f"Task is ACTIVE; cancel it first: POST /api/v1/tasks/{record.id}/cancel"
                )
            case DeleteAnswer.NEEDED | DeleteAnswer.CHANGED_MEANWHILE:
                raise Problem(409, "Conflict", "Task is needed by its job, or by another task that has not ended")


# --- queues -----------------------------------------------------------------------------------------------------------


@router.get("/api/v1/queues/status")
async def get_queue_status(app: TheApp, caller: Reader) -> QueueStatus:
    """All queues together: depths, tasks by state, and the share of retries. Counted in indexes, never over tasks."""
    return await app.engine.run(lambda store: _status(app, store))


@router.get("/api/v1/queues/dlq")
async def get_dlq_tasks(app: TheApp, caller: Reader, limit: Limit = 100) -> list[TaskBody]:
    """Dead tasks with their errors, latest first; a user's own."""
    return await list_tasks(app, caller, Word.DLQ, limit)


@router.get("/health", tags=["health"])
async def health_check(app: TheApp, probes: TheProbes) -> HealthStatus:
    """Whether the database answers and a worker is active, by the workers' own heartbeats. Asks nobody, needs no token,
    and answers within two seconds whatever is wrong. `timestamp` says when it was looked at: once a second at most."""
    return await probes.ask("health", lambda: _health(app))


async def _health(app: App) -> HealthStatus:
    breakers: dict[str, str] = {}
    database = workers = False
    try:
        async with asyncio.timeout(_HEALTH_LIMIT):
            health = await app.ahealth_check()
            database, workers = health.checks["database"].healthy, health.checks["workers"].healthy
            if database:
                breakers = await app.engine.run(lambda store: _breakers(app, store))
    except (TimeoutError, HeadraceError, OSError):
        database = workers = False
    return HealthStatus(
        status="healthy" if database and workers else "unhealthy",
        components=Components(redis=database, workers=workers, circuit_breaker=breakers),
        timestamp=datetime.now(UTC),
    )


# --- what they share --------------------------------------------------------------------------------------------------


def _not_found() -> Problem:
    return Problem(404, "Not Found", "Task not found")


async def _seen(app: App, caller: Caller, task_id: UUID) -> TaskRecord:
    id = id_of(task_id)
    found = {} if id is None else await app.engine.follow(lambda ledger: ledger.get([id]))
    record = found.get(id or 0)
    # Another's task is not even said to exist.
    if record is None or not caller.may_see(record.owner):
        raise _not_found()
    return record


async def _controlled(app: App, caller: Caller, task_id: UUID) -> TaskRecord:
    record = await _seen(app, caller, task_id)
    if not caller.may_control(record.owner):
        raise Problem(403, "Forbidden", "this task is not yours")
    return record


class _Read(NamedTuple):
    record: TaskRecord
    attempts: Sequence[AttemptRecord]
    now: datetime


async def _attempts(store: Store, record: TaskRecord) -> Sequence[AttemptRecord]:
    return await store.attempts(record.id) if record.claim_no else ()


async def _shown(app: App, read: _Read) -> TaskBody:
    """Without secrets, whoever asks."""
    record, attempts, now = read
    body = body_of(record, attempts, now=now, content=_content(app, record), result=await _result(app, record))
    hide = app.redaction.text
    history = [entry.model_copy(update={"error": entry.error and hide(entry.error)}) for entry in body.error_history]
    last = body.last_error and hide(body.last_error)
    return body.model_copy(update={"error_history": history, "last_error": last})


def _content(app: App, record: TaskRecord) -> str | None:
    try:
        arguments: Any = loads(app.codecs.get(record.codec).decode(record.arguments))
        given = arguments["content"]
    except (HeadraceError, ValueError, LookupError, TypeError):
        return None  # a task without content, or of a codec that this process has not
    return app.redaction.text(given) if isinstance(given, str) else None


async def _result(app: App, record: TaskRecord) -> Any:
    if record.state is not TaskState.COMPLETED:
        return None
    try:
        return app.redaction.value(loads(await result_text(app.engine, record)), "result")
    except (HeadraceError, OSError):
        return None  # its time is over, or what kept it is away


async def _pages(
    store: Store, status: Word | None, owner: str | None, limit: int
) -> AsyncGenerator[Sequence[TaskRecord]]:
    before: tuple[datetime, int] | None = None
    size = limit if status in (None, Word.DLQ) else _PAGE
    for _ in range(_LOOKED_AT):
        page = await store.list(
            TaskFilter(
                states=() if status is None else states_of(status),
                dead_letter=True if status is Word.DLQ else None,
                owner=owner,
                limit=size,
                before=before,
            )
        )
        yield page
        if len(page) < size:
            return
        before = (page[-1].finished_at or page[-1].created_at, page[-1].id)


async def _retried(app: App, record: TaskRecord) -> bool:
    if record.state is TaskState.COMPLETED:
        return False

    async def look(store: Store) -> bool:
        return waits_for_retry(record, await store.now(), await _attempts(store, record))

    if await app.engine.run(look) and record.job is None:
        # Its run ends here, and the next begins. Whoever is interrupted in between leaves it cancelled: FAILED, and
        # ready to be retried again.
        answers = await app.tasks.acancel(record.id, reason="user")
        if answers[record.id] is not CancelAnswer.CANCELLED:
            return False
        return record.id in await app.tasks.aretry(record.id)
    # What another has run again meanwhile, and what completed by that, is left alone.
    return record.state.terminal and record.id in await retry_seen(app.engine, record)


async def _unpark(store: Store) -> int:
    found = 0
    while n := await store.unpark():
        found += n
    return found


async def _status(app: App, store: Store) -> QueueStatus:
    queues = await store.queues()
    ended = await store.ended_counts()
    retries, dead = await store.waiting_retries(), await store.dead_letter_depth()
    sums = {name: sum(queue.depths[name] for queue in queues) for name in _DEPTHS}
    kept = COUNTED_AT_MOST - 1
    capped = {str(state) for state, n in ended.items() if n > kept} | {name for name, n in sums.items() if n > kept}
    states = {
        Word.PENDING: sums["primary"] + sums["retry"] + sums["scheduled"] - retries + sums["waiting"],
        Word.ACTIVE: sums["claimed"] + sums["running"],
        Word.COMPLETED: ended.get(TaskState.COMPLETED, 0),
        Word.FAILED: retries
        + ended.get(TaskState.FAILED, 0)
        - dead
        + ended.get(TaskState.CANCELLED, 0)
        + ended.get(TaskState.REJECTED, 0),
        Word.DLQ: dead,
    }
    deepest = max((queue.depths["retry"] for queue in queues), default=0)
    return QueueStatus(
        queues=QueueDepths(primary=sums["primary"], retry=sums["retry"], scheduled=sums["scheduled"], dlq=dead),
        states=states,
        retry_ratio=ratio_of(app.settings, deepest),
        at_least=sorted(capped),
    )


_DEPTHS = ("primary", "retry", "scheduled", "waiting", "claimed", "running")


async def _breakers(app: App, store: Store) -> dict[str, str]:
    now = await store.now()
    found = {SERVICE: "CLOSED"} if TASK in app.registry else {}
    for breaker in await store.breakers():
        over = breaker.status is BreakerStatus.OPEN and not breaker.forced and breaker.until and breaker.until <= now
        found[breaker.service] = (BreakerStatus.HALF_OPEN if over else breaker.status).upper()
    return found
