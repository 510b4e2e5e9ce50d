"""/tasks/{id}/explain, /clear and /reenqueue: why it waits, and once more with all that follows, or as a copy."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Request, Response

from headrace.app import App
from headrace.client.reasons import Explanation, explained_by
from headrace.core.accounts import Role, Scope
from headrace.core.task import TaskRecord
from headrace.server.access import TheApp, permit
from headrace.server.auditing import audited
from headrace.server.auth.caller import Caller
from headrace.server.copying import copied
from headrace.server.finding import controlled_task, seen_task
from headrace.server.models.base import PathId
from headrace.server.models.counts import Count
from headrace.server.models.tasks import (
    ActShown,
    Cleared,
    ClearedShown,
    ClearRequest,
    ExplanationShown,
    ReasonShown,
    Reenqueue,
    Submitted,
)
from headrace.server.problems import Problem
from headrace.server.seeing import Seeing
from headrace.server.submitting import IdempotencyKey, own_key, owned, submit
from headrace.store.base import Store

router = APIRouter(prefix="/tasks", tags=["tasks"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
Submitter = Annotated[Caller, Depends(permit(Scope.SUBMIT, role=Role.USER))]
Controller = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.USER))]
_LISTED = 1000  # of what a dry run would clear


@router.get("/{id}/explain")
async def explain_task(id: PathId, app: TheApp, caller: Reader) -> ExplanationShown:
    """Why it is where it is, and what to do about it: as `headrace explain` says it."""
    record = await seen_task(app, caller, id)
    known = frozenset(name for task in app.registry.values() for name in (task.name, *task.aliases))

    async def look(store: Store) -> Explanation:
        return await explained_by(store, record, known=known, shown=app.redaction.text, may_see=caller.may_see)

    found = await app.engine.run(look)
    reasons = [
        ReasonShown(
            what=app.redaction.text(reason.what),
            mend=reason.mend,
            act=None if reason.act is None else ActShown.model_validate(reason.act),
        )
        for reason in found.reasons
    ]
    return ExplanationShown(id=id, name=found.name, state=found.state, reasons=reasons)


@router.post("/{id}/clear")
async def clear_task(
    id: PathId, app: TheApp, caller: Controller, given: Annotated[ClearRequest | None, Body()] = None
) -> Cleared:
    """Run a task that ended once more, and everything that waits for it, whatever became of that. 409 while one of
    them is in a worker's hands."""
    record = await controlled_task(app, caller, id)
    if given is not None and given.dry_run:
        return await _would_clear(app, record)
    async with audited(app, caller, "tasks.clear", f"task/{id}"):
        ids = await app.jobs.aclear(id)
    return Cleared(dry_run=False, count=Count(n=len(ids), more=False), ids=ids, items=[])


async def _would_clear(app: App, record: TaskRecord) -> Cleared:
    if not record.state.terminal:
        raise Problem(409, "Task has not ended", f"task {record.id} is {record.state}; cancel it first, or let it end")
    below = await app.engine.run(lambda store: store.below(record.id, limit=_LISTED + 1))
    if held := next((each for each in below if each.state.held), None):
        raise Problem(
            409,
            "Task is held",
            f"task {held.id} waits for task {record.id} and is {held.state}: let it end, or cancel it",
        )
    listed, seeing = below[:_LISTED], Seeing(app)
    items = [
        ClearedShown(id=each.id, name=each.name, label=seeing.text(each.label), state=each.state) for each in listed
    ]
    return Cleared(dry_run=True, count=Count.of(len(below), _LISTED), ids=[each.id for each in listed], items=items)


@router.post("/{id}/reenqueue", status_code=201, responses={200: {"model": Submitted, "description": "It was there"}})
async def reenqueue_task(
    id: PathId,
    request: Request,
    response: Response,
    app: TheApp,
    caller: Submitter,
    given: Annotated[Reenqueue | None, Body()] = None,
    key: IdempotencyKey = None,
) -> Submitted:
    """Submit it as a new task, with what is given changed. The copy says in `metadata.reenqueued_from` where it is
    from; it is of no job."""
    record = await controlled_task(app, caller, id)
    gates = await app.engine.run(lambda store: store.gates(id))
    own = None if key is None else own_key(caller, key)
    new = owned(caller, copied(app, record, given or Reenqueue(), gates=gates, key=own))
    async with audited(app, caller, "tasks.reenqueue", f"task/{id}"):
        (made,) = await submit(app, caller, [new])
    response.headers["Location"] = f"{request.url.path.partition('/tasks/')[0]}/tasks/{made.id}"
    if not made.created:
        response.status_code = 200
    return made
