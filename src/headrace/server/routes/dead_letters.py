"""/dead-letters: what failed for good and is kept. They are tasks: look at one at /tasks/{id}."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from headrace.core.accounts import Role, Scope
from headrace.core.task import TaskFilter
from headrace.server.access import TheApp, permit
from headrace.server.auditing import audited
from headrace.server.auth.caller import Caller
from headrace.server.finding import controlled_task, seen_owner
from headrace.server.models.base import PathId
from headrace.server.models.dead_letters import DeadLetterFilter
from headrace.server.models.tasks import BulkAnswer, Retried, TaskPage
from headrace.server.paging import Cursor, Limit, full, link_next, task_cursor, task_place
from headrace.server.problems import Problem
from headrace.server.removing import delete_one
from headrace.server.seeing import Seeing

router = APIRouter(prefix="/dead-letters", tags=["dead letters"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
Controller = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.USER))]
Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]
Words = Annotated[list[Annotated[str, Query(max_length=300, pattern=r"^[^\x00]*$")]], Query(max_length=100)]


@router.get("")
async def list_dead_letters(
    request: Request,
    response: Response,
    app: TheApp,
    caller: Reader,
    queue: Words = [],  # noqa: B006
    name: Words = [],  # noqa: B006
    owner: Annotated[str | None, Query(min_length=1, max_length=300, pattern=r"^[^\x00]*$")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> TaskPage:
    """Dead letters, the last to fail first. A user's own."""
    criteria = TaskFilter(
        dead_letter=True,
        queues=tuple(queue),
        names=tuple(name),
        owner=seen_owner(caller, owner),
        limit=limit,
        before=task_place(cursor),
    )
    found = await app.engine.run(lambda store: store.list(criteria))
    next = task_cursor(found[-1]) if full(found, limit) else None
    link_next(request, response, next)
    seeing = Seeing(app)
    return TaskPage(items=[seeing.summary(record) for record in found], next=next)


@router.post("/replay")
async def replay_dead_letters(given: DeadLetterFilter, app: TheApp, caller: Operator) -> BulkAnswer:
    """Run all of them once more that the filter takes, with a fresh budget. What fails from now on is not taken."""
    async with audited(app, caller, "dead_letters.replay", "task/*", given.model_dump(mode="json")):
        return BulkAnswer(answers=await app.tasks.aretry_where(**_filters(given)))


@router.post("/discard")
async def discard_dead_letters(given: DeadLetterFilter, app: TheApp, caller: Operator) -> BulkAnswer:
    """Remove all of them that the filter takes, for good."""
    async with audited(app, caller, "dead_letters.discard", "task/*", given.model_dump(mode="json")):
        return BulkAnswer(answers=await app.tasks.adelete_where(**_filters(given)))


@router.post("/{id}/replay")
async def replay_dead_letter(id: PathId, app: TheApp, caller: Controller) -> Retried:
    """Run it once more, with a fresh budget."""
    await _dead(app, caller, id)
    async with audited(app, caller, "dead_letters.replay", f"task/{id}"):
        again = await app.tasks.aretry(id)
        if not again:
            raise Problem(409, "Not a dead letter", f"task {id} runs again already, or its key is held")
    return Retried(ids=again)


@router.delete("/{id}", status_code=204)
async def discard_dead_letter(id: PathId, app: TheApp, caller: Controller) -> None:
    """Remove it with everything that belongs to it."""
    await _dead(app, caller, id)
    async with audited(app, caller, "dead_letters.discard", f"task/{id}"):
        await delete_one(app, id)


async def _dead(app: TheApp, caller: Caller, id: int) -> None:
    record = await controlled_task(app, caller, id)
    if not record.dead_letter:
        raise Problem(409, "Not a dead letter", f"task {id} is {record.state} and no dead letter")


def _filters(given: DeadLetterFilter) -> dict[str, Any]:
    found = {"queues": given.queue, "names": given.name, "owner": given.owner, "limit": given.limit}
    return {"dead_letter": True, **{name: value for name, value in found.items() if value not in (None, [])}}
