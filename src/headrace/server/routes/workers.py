"""/workers: who works."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from headrace.core.accounts import Scope
from headrace.server.access import TheApp, permit
from headrace.server.auth.caller import Caller
from headrace.server.models.base import PathName
from headrace.server.models.workers import WorkerShown

router = APIRouter(prefix="/workers", tags=["workers"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
_State = Literal["active", "idle", "stopping", "stopped"]


@router.get("")
async def list_workers(
    app: TheApp,
    caller: Reader,
    state: Annotated[list[_State], Query(max_length=10)] = [],  # noqa: B006
) -> list[WorkerShown]:
    """Workers, those that stopped included unless `state` leaves them out."""
    return [WorkerShown.model_validate(worker) for worker in await app.workers.alist(states=state)]


@router.get("/{id}")
async def get_worker(id: PathName, app: TheApp, caller: Reader) -> WorkerShown:
    return WorkerShown.model_validate(await app.workers.aget(id))
