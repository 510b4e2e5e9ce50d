"""/events: say that something happened, and look at what did."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from headrace.core.accounts import Role, Scope
from headrace.server.access import Overseer, TheApp, permit
from headrace.server.auditing import audited
from headrace.server.auth.caller import Caller
from headrace.server.models.events import EventPage, EventSent, EventShown, NewEvent
from headrace.server.paging import Cursor, Limit, full, link_next, place_cursor, place_of
from headrace.server.problems import Problem
from headrace.server.seeing import Seeing

router = APIRouter(prefix="/events", tags=["events"])

# Whoever waits for an event takes its payload, whosever task it is.
Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]
Word = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")]


@router.post("", status_code=201)
async def send_event(given: NewEvent, app: TheApp, caller: Operator) -> EventSent:
    """Tasks that wait for it go on with the payload. It may come before anyone waits."""
    # The key is no secret: it says which of many it was.
    async with audited(app, caller, "events.send", f"event/{given.event}/{given.key}"):
        return EventSent(id=await app.asend(given.event, given.key, given.payload))


@router.get("")
async def list_events(
    request: Request,
    response: Response,
    app: TheApp,
    caller: Overseer,
    name: Word = None,
    key: Annotated[Word, Query(description="Of the events of that name")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> EventPage:
    """What was sent and is still kept, the last first. Events belong to nobody: users do not see them."""
    if key is not None and name is None:
        raise Problem(422, "Bad filter", "a key is one of a name: give name as well")
    before = place_of(cursor)
    found = await app.engine.run(lambda store: store.events(event=name, key=key, before=before, limit=limit))
    next = place_cursor(found[-1].created_at, found[-1].id) if full(found, limit) else None
    link_next(request, response, next)
    seeing = Seeing(app)
    items = [
        EventShown(
            id=each.id, name=each.name, key=each.key, payload=seeing.json(each.payload), created_at=each.created_at
        )
        for each in found
    ]
    return EventPage(items=items, next=next)
