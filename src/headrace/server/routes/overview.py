"""/overview: what the first page shows."""

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Request

from headrace.core.accounts import Scope
from headrace.core.states import LIVE, TaskState
from headrace.server.access import TheApp, permit
from headrace.server.auth.caller import Caller
from headrace.server.models.counts import Count
from headrace.server.models.overview import OverviewShown, WorkerCounts
from headrace.server.overview.looking import Overview
from headrace.server.overview.ranges import RANGES, RangeName
from headrace.server.overview.showing import depth_series, depths, failures, finished, latency

router = APIRouter(prefix="/overview", tags=["overview"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]


@router.get("")
async def get_overview(
    request: Request,
    app: TheApp,
    caller: Reader,
    range: Annotated[RangeName, Query(description="How far back")] = "1h",
) -> OverviewShown:
    """What ended and how fast, what waits where, who works, what fails. A user's own, where it belongs to somebody."""
    overview = cast("Overview", request.app.state.overview)
    owner = caller.only_own
    ended = await overview.ended(range, owner)
    counted = ended.counted
    standing = await overview.standing()
    own = ended.dead_letters
    dead = Count.of(standing.dead_letters if own is None else own.n)
    if own is not None and own.more:
        dead = Count(n=dead.n, more=True)
    return OverviewShown(
        range=range,
        since=counted.buckets[0].at,
        until=counted.at,
        bucket=RANGES[range].bucket,
        as_of=counted.at,
        whose="all" if owner is None else "own",
        finished=finished(counted.buckets, counted.at, complete=counted.complete),
        latency=latency(counted.buckets),
        states={state: Count.of(standing.states.get(state, 0)) for state in TaskState if state in LIVE},
        queues=[depths(app.settings, queue) for queue in standing.queues],
        depths_at=standing.at,
        depths=depth_series(await overview.depths(range)),
        workers=WorkerCounts(**standing.workers._asdict()),
        dead_letters=dead,
        failing=failures(ended.failing),
    )
