"""/events: say that something happened, and look at what did."""

import time
from datetime import datetime
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
from headrace.store.base import EventRecord, EventSkim, Store

router = APIRouter(prefix="/events", tags=["events"])

# Whoever waits for an event takes its payload, whosever task it is.
Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]
_WINDOW = 2000  # events of all names that one query looks at
_PATIENCE = 0.15  # seconds in which a page looks for those of one name

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
    name: Annotated[Word, Query(description="Without a key they are looked for among the last of all names")] = None,
    key: Annotated[Word, Query(description="Of the events of that name")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> EventPage:
    """What was sent and is still kept, the last first. Events belong to nobody: users do not see them.

    Those of a name and a key are served by an index. For a name alone events are looked at one by one, for a short
    time: a page may hold few of them, or none, and `next` goes on from there.
    """
    if key is not None and name is None:
        raise Problem(422, "Bad filter", "a key is one of a name: give name as well")
    before = place_of(cursor)
    if name is None or key is not None:
        found = await app.engine.run(lambda store: store.events(event=name, key=key, before=before, limit=limit))
        place = _place(found[-1]) if full(found, limit) else None
    else:
        found, place = await app.engine.run(lambda store: _of_name(store, name, before, limit))
    next = None if place is None else place_cursor(*place)
    link_next(request, response, next)
    seeing = Seeing(app)
    items = [
        EventShown(
            id=each.id, name=each.name, key=each.key, payload=seeing.json(each.payload), created_at=each.created_at
        )
        for each in found
    ]
    return EventPage(items=items, next=next)


async def _of_name(store: Store, name: str, before: tuple[datetime, int] | None, limit: int) -> EventSkim:
    """As many as there is time for."""
    found: list[EventRecord] = []
    deadline = time.monotonic() + _PATIENCE
    while True:
        rows, before = await store.skim_events(name, before=before, window=_WINDOW)
        found += rows
        if len(found) > limit:
            return EventSkim(found[:limit], _place(found[limit - 1]))
        if before is None or len(found) == limit or time.monotonic() > deadline:
            return EventSkim(found, before)


def _place(event: EventRecord) -> tuple[datetime, int]:
    return event.created_at, event.id
