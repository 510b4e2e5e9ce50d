"""/breakers: services that are spared for a while."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends

from headrace.core.accounts import Role, Scope
from headrace.server.access import TheApp, permit
from headrace.server.auditing import ANYONE_NAME, audited
from headrace.server.auth.caller import Caller
from headrace.server.models.base import PathName
from headrace.server.models.breakers import BreakerShown, OpenRequest

router = APIRouter(prefix="/breakers", tags=["breakers"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]


@router.get("")
async def list_breakers(app: TheApp, caller: Reader) -> list[BreakerShown]:
    """Every breaker that ever opened or was touched by hand, by service."""
    found = await app.engine.run(lambda store: store.breakers())
    return [BreakerShown.model_validate(breaker) for breaker in found]


@router.post("/{service:path}/reset")
async def reset_breaker(service: PathName, app: TheApp, caller: Operator) -> BreakerShown:
    """Close it by hand, with fresh counts; every process sees it within seconds."""
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
