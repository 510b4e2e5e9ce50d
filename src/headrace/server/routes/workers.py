"""/workers: who works, and on what."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query

from headrace.client.searching import BEGINNING, Search, search
from headrace.core.accounts import Scope
from headrace.core.errors import NotFound
from headrace.core.states import HELD
from headrace.core.task import TaskFilter, WorkerRecord
from headrace.server.access import TheApp, permit
from headrace.server.auth.caller import Caller
from headrace.server.models.base import PathName
from headrace.server.models.counts import MOST_COUNTED, Count
from headrace.server.models.workers import WorkerDetail, WorkerShown
from headrace.server.seeing import Seeing
from headrace.store.base import COUNTED_AT_MOST, Store

router = APIRouter(prefix="/workers", tags=["workers"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
_State = Literal["active", "idle", "stopping", "stopped"]
_SHOWN = 100  # of what one holds
_PATIENCE = 1.0  # seconds


@router.get("")
async def list_workers(
    app: TheApp,
    caller: Reader,
    state: Annotated[list[_State], Query(max_length=10)] = [],  # noqa: B006
) -> list[WorkerShown]:
    """Workers, those that stopped included unless `state` leaves them out."""

    async def look(store: Store) -> list[WorkerShown]:
        workers, now = await store.workers(states=tuple(state)), await store.now()
        holding = await store.holding([worker.id for worker in workers], cap=COUNTED_AT_MOST)
        return [WorkerShown(**_shown(worker, now, holding)) for worker in workers]

    return await app.engine.run(look)


@router.get("/{id}")
async def get_worker(id: PathName, app: TheApp, caller: Reader) -> WorkerDetail:
    """One of them, with what it holds now; of that, a user's own."""

    async def look(store: Store) -> WorkerDetail:
        workers, now = await store.workers(), await store.now()
        worker = next((each for each in workers if each.id == id), None)
        if worker is None:
            raise NotFound(f"no worker {id!r}")
        holding = await store.holding([id], cap=COUNTED_AT_MOST)
        held = Search(criteria=TaskFilter(states=tuple(HELD), worker=id, owner=caller.only_own))
        found = await search(store, held, place=BEGINNING, limit=_SHOWN, seconds=_PATIENCE)
        tasks = [Seeing(app).summary(record) for record in found.records]
        return WorkerDetail(**_shown(worker, now, holding), holding=tasks)

    return await app.engine.run(look)


def _shown(worker: WorkerRecord, now: datetime, holding: Mapping[str, int]) -> dict[str, Any]:
    age = max(0.0, (now - worker.last_heartbeat).total_seconds())
    return {
        **WorkerShown.told(worker),
        "heartbeat_age": age,
        "alive": worker.state != "stopped" and age <= worker.lease,
        "holds": Count.of(holding.get(worker.id, 0), MOST_COUNTED),
    }
