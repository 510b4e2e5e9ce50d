"""/tasks: submit, look, act.

Submissions are not in the audit log: the task itself says who submitted it, and when.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query, Request, Response

from headrace.client.bulk import cancel_all, concerned, delete_all, retry_all
from headrace.client.results import result_text
from headrace.client.searching import Search
from headrace.core.accounts import Role, Scope
from headrace.core.payload import loads
from headrace.core.states import LIVE, TERMINAL, TaskState
from headrace.core.task import NewTask, TaskRecord
from headrace.server.access import TheApp, permit
from headrace.server.auditing import ANYONE_NAME, audited
from headrace.server.auth.approving import asked_role, may_decide
from headrace.server.auth.caller import Caller
from headrace.server.finding import controlled_job, controlled_task, seen_owner, seen_task
from headrace.server.lives import life_of
from headrace.server.models.base import LARGEST, PathId
from headrace.server.models.tasks import (
    AttemptShown,
    Batch,
    BatchSubmitted,
    BulkAnswer,
    CancelAnswered,
    CancelRequest,
    Criteria,
    Decision,
    Retried,
    Submission,
    Submitted,
    TaskDetail,
    TaskPage,
    TaskResult,
)
from headrace.server.paging import Cursor, Limit, encode, id_place, link_next
from headrace.server.problems import Problem, ProblemDocument, named_by
from headrace.server.removing import delete_one
from headrace.server.searching import Word, Words, acted, counted, found_page, sought
from headrace.server.seeing import Seeing
from headrace.server.submitting import IdempotencyKey, prepared, submit
from headrace.server.words import states_of
from headrace.store.base import CancelAnswer

router = APIRouter(prefix="/tasks", tags=["tasks"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
Submitter = Annotated[Caller, Depends(permit(Scope.SUBMIT, role=Role.USER))]
Controller = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.USER))]
Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]
Reveal = Annotated[bool, Query(description="With its secrets: for who controls the task, and it is noted")]
GONE: dict[int | str, dict[str, Any]] = {410: {"model": ProblemDocument, "description": "Its time is over"}}


@router.post("", status_code=201, responses={200: {"model": Submitted, "description": "It was there"}})
async def submit_task(
    given: Submission, request: Request, response: Response, app: TheApp, caller: Submitter, key: IdempotencyKey = None
) -> Submitted:
    """Submit a registered task by its name, or a command. Its arguments are checked before anything is written."""
    if given.job is not None:
        await controlled_job(app, caller, given.job)
    new = prepared(app, caller, given, key=key)
    (made,) = await submit(app, caller, [new])
    response.headers["Location"] = f"{request.url.path.rstrip('/')}/{made.id}"
    if not made.created:
        response.status_code = 200
    return made


@router.post("/batch", status_code=201)
async def submit_batch(given: Batch, app: TheApp, caller: Submitter) -> BatchSubmitted:
    """Submit up to 1,000 tasks, all of them or none. A refusal names the one that it is about by its place."""
    tasks: list[NewTask] = []
    jobs = set[int]()
    for place, task in enumerate(given.tasks):
        with named_by(f"/tasks/{place}"):
            if task.job is not None and task.job not in jobs:
                await controlled_job(app, caller, task.job)
                jobs.add(task.job)
            tasks.append(prepared(app, caller, task))
    return BatchSubmitted(items=await submit(app, caller, tasks, below="/tasks"))


@router.get("")
async def list_tasks(
    request: Request,
    response: Response,
    app: TheApp,
    caller: Reader,
    status: Annotated[Words, Query(description="States; ACTIVE and DLQ as well", examples=[["failed"]])] = [],  # noqa: B006
    queue: Words = [],  # noqa: B006
    name: Annotated[Words, Query(description="With * at the end: what begins so")] = [],  # noqa: B006
    error: Annotated[Words, Query(description="Of ended tasks: the class, or a part of class or message")] = [],  # noqa: B006
    tag: Words = [],  # noqa: B006
    text: Annotated[
        Word, Query(description="Words: in id, name, label, queue, state, tags, worker, owner, error")
    ] = None,
    id: Annotated[list[Annotated[int, Query(ge=1, le=LARGEST)]], Query(max_length=500)] = [],  # noqa: B006
    job: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
    worker: Word = None,
    dead_letter: bool | None = None,
    owner: Word = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> TaskPage:
    """Tasks, newest first: live ones by their creation, ended ones by their end. A user's own.

    `status`, `queue`, `name`, `job`, `owner`, `dead_letter` and `id` are served by an index. By the other filters tasks
    are looked at one by one, for a short time: `searched` says how far that came, and `next` goes on from there.
    """
    states, dead = states_of(status)
    wanted = sought(
        app,
        states=states,
        queues=queue,
        names=name,
        errors=error,
        tags=tag,
        text=text,
        ids=id,
        job=job,
        worker=worker,
        dead_letter=dead if dead is not None else dead_letter,
        owner=seen_owner(caller, owner),
    )
    return await found_page(app, wanted, request, response, limit=limit, cursor=cursor)


@router.post("/retry")
async def retry_tasks(given: Criteria, app: TheApp, caller: Operator) -> BulkAnswer:
    """Run every task once more that the filter takes: those that failed, unless it says otherwise."""
    wanted = _sought(app, given, "retried", among=TERMINAL, unless_said=(TaskState.FAILED,))
    if given.dry_run:
        return await counted(app, wanted)
    async with audited(app, caller, "tasks.retry", "task/*", given.model_dump(mode="json")):
        return acted(await retry_all(app.engine, wanted))


@router.post("/cancel")
async def cancel_tasks(given: Criteria, app: TheApp, caller: Operator) -> BulkAnswer:
    """Cancel every task that the filter takes and that has not ended."""
    wanted = _sought(app, given, "cancelled", among=LIVE)
    if given.dry_run:
        return await counted(app, wanted)
    async with audited(app, caller, "tasks.cancel", "task/*", given.model_dump(mode="json")):
        return acted(await cancel_all(app.engine, wanted))


@router.post("/delete")
async def delete_tasks(given: Criteria, app: TheApp, caller: Operator) -> BulkAnswer:
    """Remove every task that the filter takes and that nobody holds or needs."""
    wanted = _sought(app, given, "deleted", among=TaskState)
    if given.dry_run:
        return await counted(app, wanted)
    async with audited(app, caller, "tasks.delete", "task/*", given.model_dump(mode="json")):
        return acted(await delete_all(app.engine, wanted))


@router.get("/{id}")
async def get_task(id: PathId, app: TheApp, caller: Reader) -> TaskDetail:
    """A task with its executions, and what it has to do with others; its arguments without their secrets."""
    record = await seen_task(app, caller, id)
    return await _detail(app, record)


@router.get("/{id}/attempts")
async def list_attempts(
    id: PathId,
    request: Request,
    response: Response,
    app: TheApp,
    caller: Reader,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> list[AttemptShown]:
    """Every execution of the task, and every report that was refused, by claim: the last ones. The header `Link` leads
    to those before them."""
    await seen_task(app, caller, id)
    before = id_place(cursor)
    found = await app.engine.follow(lambda ledger: ledger.attempts(id, limit=limit + 1, before=before))
    page = found[-limit:]
    link_next(request, response, encode(page[0].claim_no) if len(found) > limit else None)
    seeing = Seeing(app)
    return [seeing.attempt(attempt) for attempt in page]


@router.get("/{id}/result", responses=GONE)
async def get_result(
    id: PathId,
    app: TheApp,
    caller: Reader,
    reveal: Reveal = False,
) -> TaskResult:
    """What the task returned. 409 until it has ended, 410 for a result whose time is over."""
    record = await seen_task(app, caller, id)
    if not record.state.terminal:
        raise Problem(409, "Not done", f"task {id} is {record.state}; it has no result yet", state=record.state.value)
    seeing = Seeing(app)
    value = None
    if record.state is TaskState.COMPLETED:
        value = loads(await result_text(app.engine, record))
        if not reveal:
            value = seeing.value(value)
        elif Scope.CONTROL not in caller.scopes or not caller.may_control(record.owner):
            raise Problem(403, "Forbidden", "a result with its secrets is for who controls the task")
        else:
            async with audited(app, caller, "tasks.reveal", f"task/{id}"):
                pass
    return TaskResult(
        id=id,
        state=record.state,
        value=value,
        error=seeing.error(record.error_class, record.error_message),
        expires_at=record.result_expires_at,
    )


@router.delete("/{id}", status_code=204)
async def delete_task(id: PathId, app: TheApp, caller: Controller) -> None:
    """Remove a task with everything that belongs to it. 409 while a worker holds it, or another task needs it."""
    await controlled_task(app, caller, id)
    async with audited(app, caller, "tasks.delete", f"task/{id}"):
        await delete_one(app, id)


@router.post("/{id}/retry")
async def retry_task(id: PathId, app: TheApp, caller: Controller) -> Retried:
    """Run a task that ended once more, with a fresh budget of attempts."""
    record = await controlled_task(app, caller, id)
    async with audited(app, caller, "tasks.retry", f"task/{id}"):
        again = await app.tasks.aretry(id)
        if not again:
            now = await app.tasks.aget(id)
            raise Problem(
                409, "Task cannot be retried", f"task {id} is {now.state}; only what has ended runs again",
                state=now.state.value, before=record.state.value,
            )  # fmt: skip
    return Retried(ids=again)


@router.post("/{id}/cancel")
async def cancel_task(
    id: PathId,
    app: TheApp,
    caller: Controller,
    given: Annotated[CancelRequest | None, Body()] = None,
) -> CancelAnswered:
    """End a task that nobody holds; tell the worker of one that runs to stop it."""
    await controlled_task(app, caller, id)
    reason = "user" if given is None else given.reason
    async with audited(app, caller, "tasks.cancel", f"task/{id}", {"reason": reason}):
        answer = (await app.tasks.acancel(id, reason=reason))[id]
        if answer is CancelAnswer.TOO_LATE:
            raise Problem(409, "Task has ended", f"task {id} had ended before; nothing changed")
        if answer is CancelAnswer.UNKNOWN:
            raise Problem(404, "Task not found", f"no task {id}")
    return CancelAnswered(id=id, answer="cancelled" if answer is CancelAnswer.CANCELLED else "cancelling")


@router.post("/{id}/approve")
async def approve_task(
    id: PathId, app: TheApp, caller: Operator, given: Annotated[Decision | None, Body()] = None
) -> TaskDetail:
    """Let a task go on that waits for somebody's word. 409 when it does not wait (any more)."""
    return await _decide(app, caller, id, given, approved=True)


@router.post("/{id}/reject")
async def reject_task(
    id: PathId, app: TheApp, caller: Operator, given: Annotated[Decision | None, Body()] = None
) -> TaskDetail:
    """Refuse a task that waits for somebody's word: it has ended."""
    return await _decide(app, caller, id, given, approved=False)


async def _decide(app: TheApp, caller: Caller, id: int, given: Decision | None, *, approved: bool) -> TaskDetail:
    record = await controlled_task(app, caller, id)
    wanted = asked_role(record.options)
    if not may_decide(caller, wanted):
        raise Problem(403, "Forbidden", f"task {id} is decided by who has the role {wanted!r}")
    note = None if given is None else given.note
    decide, act = (app.tasks.aapprove, "tasks.approve") if approved else (app.tasks.areject, "tasks.reject")
    async with audited(app, caller, act, f"task/{id}", {"note": note}):
        decided = await decide(id, by=caller.name or ANYONE_NAME, role=wanted or caller.role.value, note=note)
    return await _detail(app, decided)


async def _detail(app: TheApp, record: TaskRecord) -> TaskDetail:
    return Seeing(app).detail(await life_of(app, record))


def _sought(
    app: TheApp,
    given: Criteria,
    done: str,
    *,
    among: Iterable[TaskState],
    unless_said: Iterable[TaskState] | None = None,
) -> Search:
    states, dead = states_of(given.status)
    return sought(
        app,
        states=concerned(done, states, among=among, unless_said=unless_said),
        queues=given.queue,
        names=given.name,
        errors=given.error,
        tags=given.tag,
        text=given.text,
        ids=given.id,
        job=given.job,
        worker=given.worker,
        dead_letter=given.dead_letter if dead is None else dead,
        owner=given.owner,
        until=given.until,
        limit=given.limit,
    )
