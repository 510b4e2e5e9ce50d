"""/events: say that something happened."""

from typing import Annotated

from fastapi import APIRouter, Depends

from headrace.core.accounts import Role, Scope
from headrace.server.access import TheApp, permit
from headrace.server.auditing import audited
from headrace.server.auth.caller import Caller
from headrace.server.models.events import EventSent, NewEvent

router = APIRouter(prefix="/events", tags=["events"])

# Whoever waits for an event takes its payload, whosever task it is.
Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]


@router.post("", status_code=201)
async def send_event(given: NewEvent, app: TheApp, caller: Operator) -> EventSent:
    """Tasks that wait for it go on with the payload. It may come before anyone waits."""
    async with audited(app, caller, "events.send", f"event/{given.event}", {"key": given.key}):
        return EventSent(id=await app.asend(given.event, given.key, given.payload))
