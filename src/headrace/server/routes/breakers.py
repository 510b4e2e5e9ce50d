"""/breakers: services that are spared for a while."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends

from headrace.app import App
from headrace.core.accounts import AuditRecord, Role, Scope
from headrace.core.breaker import BreakerRecord
from headrace.server.access import TheApp, permit
from headrace.server.auditing import ANYONE_NAME, audited
from headrace.server.auth.caller import Caller
from headrace.server.breaker_history import history_of
from headrace.server.models.base import PathName
from headrace.server.models.breakers import BreakerHistory, BreakerShown, OpenRequest
from headrace.server.problems import Problem
from headrace.store.base import Store

router = APIRouter(prefix="/breakers", tags=["breakers"])
_ACTS = 100

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]


@router.get("")
async def list_breakers(app: TheApp, caller: Reader) -> list[BreakerShown]:
    """Every breaker that ever opened or was touched by hand, by service; for operators also who changed it."""
    found = await app.engine.run(lambda store: store.breakers())
    shown = [BreakerShown.model_validate(breaker) for breaker in found]
    return shown if caller.controls_all else [each.model_copy(update={"changed_by": None}) for each in shown]


@router.get("/{service:path}/history")
async def list_changes(service: PathName, app: TheApp, caller: Reader) -> BreakerHistory:
    """Its last changes, by itself and by hand, the newest first; for operators also by whom, and what was tried."""
    known = await _known(app, service)

    async def look(store: Store) -> BreakerHistory:
        changes = await store.breaker_changes(service)
        acts: list[AuditRecord] = []  # that log is not for everybody who reads
        if caller.controls_all:
            acts = await store.audit(actor=None, act=None, subject=f"breaker/{service}", before=None, limit=_ACTS)
        return history_of(known, changes, acts, now=await store.now())

    found = await app.engine.run(look)
    if caller.controls_all:
        return found
    return found.model_copy(update={"items": [item.model_copy(update={"by": None}) for item in found.items]})


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
