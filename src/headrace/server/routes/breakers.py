"""/breakers: services that are spared for a while."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Body, Depends

from headrace.app import App
from headrace.core.accounts import AuditRecord, Role, Scope
from headrace.core.breaker import BreakerRecord, BreakerStatus
from headrace.server.access import TheApp, permit
from headrace.server.auditing import ANYONE_NAME, audited
from headrace.server.auth.caller import Caller
from headrace.server.models.base import PathName
from headrace.server.models.breakers import BreakerChange, BreakerHistory, BreakerShown, OpenRequest
from headrace.server.problems import Problem
from headrace.store.base import Store

router = APIRouter(prefix="/breakers", tags=["breakers"])
_CHANGES = 100
_WITHIN = timedelta(seconds=10)

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]


@router.get("")
async def list_breakers(app: TheApp, caller: Reader) -> list[BreakerShown]:
    """Every breaker that ever opened or was touched by hand, by service."""
    found = await app.engine.run(lambda store: store.breakers())
    return [BreakerShown.model_validate(breaker) for breaker in found]


@router.get("/{service:path}/history")
async def list_changes(service: PathName, app: TheApp, caller: Reader) -> BreakerHistory:
    """What was done to it by hand over the API, and its last change, the newest first. Changes that it made by itself
    are not kept, but for the last one: it says so."""
    known = await _known(app, service)

    async def look(store: Store) -> list[AuditRecord]:
        return await store.audit(actor=None, act=None, subject=f"breaker/{service}", before=None, limit=_CHANGES)

    return BreakerHistory(items=changes_of(known, await app.engine.run(look)), complete=False)


@router.post("/{service:path}/reset")
async def reset_breaker(service: PathName, app: TheApp, caller: Operator) -> BreakerShown:
    """Close it by hand, with fresh counts; every process sees it within seconds. 404 for one that never opened."""
    await _known(app, service)
    async with audited(app, caller, "breakers.reset", f"breaker/{service}"):
        made = await app.engine.run(lambda store: store.reset_breaker(service, by=caller.name or ANYONE_NAME))
    return BreakerShown.model_validate(made)


@router.post("/{service:path}/open")
async def open_breaker(
    service: PathName,
    app: TheApp,
    caller: Operator,
    given: Annotated[OpenRequest | None, Body()] = None,
) -> BreakerShown:
    """Open it by hand: for a time, then it is probed; without one until it is reset."""
    timeout = None if given is None else given.timeout
    async with audited(app, caller, "breakers.open", f"breaker/{service}", {"timeout": timeout}):
        made = await app.engine.run(
            lambda store: store.open_breaker(
                service,
                by=caller.name or ANYONE_NAME,
                timeout=app.settings.circuit_timeout if timeout is None else timeout,
                forced=timeout is None,
            )
        )
    return BreakerShown.model_validate(made)


async def _known(app: App, service: str) -> BreakerRecord:
    found = await app.engine.run(lambda store: store.breakers())
    breaker = next((each for each in found if each.service == service), None)
    if breaker is None:
        raise Problem(404, "Not Found", f"no breaker {service!r} has ever opened, or was touched by hand")
    return breaker


def changes_of(breaker: BreakerRecord, acts: Sequence[AuditRecord]) -> list[BreakerChange]:
    """The acts as the audit log has them, and the last change where none of them made it."""
    found = [
        BreakerChange(
            at=entry.at,
            act="opened" if entry.act.endswith("open") else "reset",
            by=entry.actor,
            source="audit",
            outcome=entry.outcome,
        )
        for entry in acts
    ]
    by_hand = any(change.by == breaker.changed_by and _near(change.at, breaker.changed_at) for change in found)
    if not by_hand:
        act = "closed" if breaker.status is BreakerStatus.CLOSED else "opened"
        last = BreakerChange(at=breaker.changed_at, act=act, by=breaker.changed_by, source="ledger", outcome="done")
        found.append(last)
    return sorted(found, key=lambda change: change.at, reverse=True)


def _near(one: datetime, other: datetime) -> bool:
    """An act is on the list before it is done."""
    return timedelta(0) <= other - one < _WITHIN
