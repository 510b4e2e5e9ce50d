"""/dead-letters: what failed for good and is kept. They are tasks: look at one at /tasks/{id}."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from headrace.client.bulk import delete_all, retry_all
from headrace.client.failing import failing
from headrace.client.searching import Search
from headrace.client.seen import retry_seen
from headrace.core.accounts import Role, Scope
from headrace.core.states import TaskState
from headrace.core.task import TaskRecord
from headrace.server.access import TheApp, permit
from headrace.server.auditing import audited
from headrace.server.auth.caller import Caller
from headrace.server.finding import controlled_task, seen_owner
from headrace.server.models.base import PathId
from headrace.server.models.counts import Failures
from headrace.server.models.dead_letters import DeadLetterFilter
from headrace.server.models.tasks import BulkAnswer, Retried, TaskPage
from headrace.server.overview.showing import failures
from headrace.server.paging import Cursor, Limit
from headrace.server.problems import Problem
from headrace.server.removing import delete_one
from headrace.server.searching import Word, Words, acted, counted, found_page, sought

router = APIRouter(prefix="/dead-letters", tags=["dead letters"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
Controller = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.USER))]
Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]
_LOOKED_AT = 10_000  # of the newest, for groups
_GROUPS = 200
_PATIENCE = 1.0  # seconds to put them together


@router.get("")
async def list_dead_letters(
    request: Request,
    response: Response,
    app: TheApp,
    caller: Reader,
    queue: Words = [],  # noqa: B006
    name: Words = [],  # noqa: B006
    owner: Word = None,
    group: Annotated[str | None, Query(pattern=r"^[0-9a-f]{20}$", description="Of one failure: its `key`")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> TaskPage:
    """Dead letters, the last to fail first. A user's own."""
    whose = seen_owner(caller, owner)
    wanted = sought(app, dead_letter=True, queues=queue, names=name, owner=whose, failure=group)
    return await found_page(app, wanted, request, response, limit=limit, cursor=cursor)


@router.get("/groups")
async def group_dead_letters(
    app: TheApp,
    caller: Reader,
    queue: Words = [],  # noqa: B006
    name: Words = [],  # noqa: B006
    owner: Word = None,
) -> Failures:
    """The newest 10,000 by what went wrong: errors that are the same but for numbers, ids and quoted texts are one. A
    user's own."""
    wanted = sought(app, dead_letter=True, queues=queue, names=name, owner=seen_owner(caller, owner))
    found = await app.engine.run(
        lambda store: failing(store, wanted, most=_LOOKED_AT, groups=_GROUPS, seconds=_PATIENCE)
    )
    return failures(found)


@router.post("/replay")
async def replay_dead_letters(given: DeadLetterFilter, app: TheApp, caller: Operator) -> BulkAnswer:
    """Run all of them once more that the filter takes, with a fresh budget. What fails from now on is not taken."""
    wanted = _sought(app, given)
    if given.dry_run:
        return await counted(app, wanted)
    async with audited(app, caller, "dead_letters.replay", "task/*", given.model_dump(mode="json")):
        return acted(await retry_all(app.engine, wanted))


@router.post("/discard")
async def discard_dead_letters(given: DeadLetterFilter, app: TheApp, caller: Operator) -> BulkAnswer:
    """Remove all of them that the filter takes, for good."""
    wanted = _sought(app, given)
    if given.dry_run:
        return await counted(app, wanted)
    async with audited(app, caller, "dead_letters.discard", "task/*", given.model_dump(mode="json")):
        return acted(await delete_all(app.engine, wanted))


@router.post("/{id}/replay")
async def replay_dead_letter(id: PathId, app: TheApp, caller: Controller) -> Retried:
    """Run it once more, with a fresh budget. 409 for one that somebody else has replayed or removed meanwhile."""
    seen = await _dead(app, caller, id)
    async with audited(app, caller, "dead_letters.replay", f"task/{id}"):
        again = await retry_seen(app.engine, seen)
        if not again:
            raise Problem(409, "Not a dead letter", f"task {id} runs again already, is gone, or its key is held")
    return Retried(ids=again)


@router.delete("/{id}", status_code=204)
async def discard_dead_letter(id: PathId, app: TheApp, caller: Controller) -> None:
    """Remove it with everything that belongs to it. 409 for one that somebody has replayed meanwhile."""
    seen = await _dead(app, caller, id)
    async with audited(app, caller, "dead_letters.discard", f"task/{id}"):
        await delete_one(app, id, seen=seen)


async def _dead(app: TheApp, caller: Caller, id: int) -> TaskRecord:
    """As it is now; the act goes by that."""
    record = await controlled_task(app, caller, id)
    if not record.dead_letter:
        raise Problem(409, "Not a dead letter", f"task {id} is {record.state} and no dead letter")
    return record


def _sought(app: TheApp, given: DeadLetterFilter) -> Search:
    return sought(
        app,
        dead_letter=True,
        states=(TaskState.FAILED,),
        queues=given.queue,
        names=given.name,
        owner=given.owner,
        failure=given.group,
        until=given.until,
        limit=given.limit,
    )
