"""/audit: who did what, and how it ended. For admins."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from headrace.core.accounts import Role, Scope
from headrace.server.access import TheApp, permit
from headrace.server.auth.caller import Caller
from headrace.server.models.audit import AuditPage, AuditShown
from headrace.server.paging import Cursor, Limit, encode, full, id_place, link_next
from headrace.server.seeing import Seeing

router = APIRouter(prefix="/audit", tags=["audit"])

Admin = Annotated[Caller, Depends(permit(Scope.ADMIN, role=Role.ADMIN))]
Word = Annotated[str | None, Query(min_length=1, max_length=300, pattern=r"^[^\x00]*$")]


@router.get("")
async def list_audit(
    request: Request,
    response: Response,
    app: TheApp,
    caller: Admin,
    actor: Word = None,
    act: Word = None,
    subject: Word = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> AuditPage:
    """Newest first."""
    before = id_place(cursor)
    found = await app.engine.run(
        lambda store: store.audit(actor=actor, act=act, subject=subject, before=before, limit=limit)
    )
    next = encode(found[-1].id) if full(found, limit) else None
    link_next(request, response, next)
    seeing = Seeing(app)
    items = [
        AuditShown(
            id=entry.id,
            at=entry.at,
            actor=entry.actor,
            act=entry.act,
            subject=seeing.text(entry.subject) or "",
            detail=seeing.json(entry.detail),
            request=entry.request,
            outcome=seeing.text(entry.outcome),
        )
        for entry in found
    ]
    return AuditPage(items=items, next=next)
