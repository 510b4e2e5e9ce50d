"""/queues: depths and lanes; pause, resume, limit."""

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Request

from headrace.app import App
from headrace.client.options import check_queue
from headrace.core.accounts import Role, Scope
from headrace.core.durations import seconds
from headrace.core.limits import Rate
from headrace.core.task import QueueRecord
from headrace.server.access import TheApp, permit
from headrace.server.auditing import audited
from headrace.server.auth.caller import Caller
from headrace.server.figures import ratio_of
from headrace.server.models.base import PathName
from headrace.server.models.overview import QueueRates
from headrace.server.models.queues import QueueLimit, QueueRate, QueueShown, RateShown
from headrace.server.overview.looking import Overview
from headrace.server.overview.ranges import RANGES, RangeName
from headrace.server.overview.showing import rates

router = APIRouter(prefix="/queues", tags=["queues"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]


@router.get("")
async def list_queues(app: TheApp, caller: Reader) -> list[QueueShown]:
    """Every queue with its depths."""
    return [_shown(app, queue) for queue in await app.queues.alist()]


@router.get("/{name:path}/rates")
async def get_rates(
    name: PathName,
    request: Request,
    caller: Reader,
    range: Annotated[RangeName, Query(description="How far back")] = "1h",
) -> QueueRates:
    """What ended of it (a user's own), by bucket of time, and how deep it was; nothing of one that nobody knows."""
    check_queue(name)
    overview = cast("Overview", request.app.state.overview)
    owner = caller.only_own
    counted = await overview.counted(range, owner)
    depths = await overview.depths(range, name)
    return rates(name, RANGES[range], counted, depths, whose="all" if owner is None else "own")


@router.post("/{name:path}/pause")
async def pause_queue(name: PathName, app: TheApp, caller: Operator) -> QueueShown:
    """No worker claims from it until it is resumed; what runs goes on."""
    check_queue(name)
    async with audited(app, caller, "queues.pause", f"queue/{name}"):
        await app.queues.apause(name)
    return await _now(app, name)


@router.post("/{name:path}/resume")
async def resume_queue(name: PathName, app: TheApp, caller: Operator) -> QueueShown:
    """Workers claim from it again."""
    check_queue(name)
    async with audited(app, caller, "queues.resume", f"queue/{name}"):
        await app.queues.aresume(name)
    return await _now(app, name)


@router.put("/{name:path}/limit")
async def limit_queue(name: PathName, given: QueueLimit, app: TheApp, caller: Operator) -> QueueShown:
    """At most so many of its tasks run at once, over all workers."""
    check_queue(name)
    async with audited(app, caller, "queues.limit", f"queue/{name}", {"n": given.n}):
        await app.engine.run(lambda store: store.limit_queue(name, given.n))
    return await _now(app, name)


@router.put("/{name:path}/rate")
async def rate_queue(name: PathName, given: QueueRate, app: TheApp, caller: Operator) -> QueueShown:
    """At most so many starts of its tasks in a time, over all workers."""
    check_queue(name)
    rate = None if given.n is None else Rate(given.n, given.per, burst=given.burst)
    async with audited(app, caller, "queues.rate", f"queue/{name}", given.model_dump(mode="json")):
        await app.engine.run(lambda store: store.rate_queue(name, rate))
    return await _now(app, name)


async def _now(app: App, name: str) -> QueueShown:
    found = next((queue for queue in await app.queues.alist() if queue.name == name), None)
    return _shown(app, found or QueueRecord(name=name, paused=False))


def _shown(app: App, queue: QueueRecord) -> QueueShown:
    rate = queue.rate
    return QueueShown(
        name=queue.name,
        paused=queue.paused,
        depths=dict(queue.depths),
        retry_ratio=ratio_of(app.settings, queue.depths.get("retry", 0)),
        limit=queue.limit,
        rate=None if rate is None else RateShown(n=rate.n, per=seconds(rate.per, name="per"), burst=rate.burst),
    )
