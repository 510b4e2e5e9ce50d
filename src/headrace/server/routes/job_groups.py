"""/jobs/{id}/groups and /gantt: jobs of any size, as groups of tasks that are alike, and as bars over time."""

from bisect import bisect_right
from datetime import UTC, datetime
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from headrace.app import App
from headrace.client.job_graph import node_of
from headrace.core.accounts import Scope
from headrace.core.grouping import Group, Tally
from headrace.core.task import EdgeKind, JobRecord, TaskRecord
from headrace.server.access import TheApp, permit
from headrace.server.auth.caller import Caller
from headrace.server.finding import seen_job
from headrace.server.models.base import LARGEST, PathId
from headrace.server.models.jobs import (
    GanttPage,
    GanttRow,
    GroupEdgeShown,
    GroupShown,
    GroupsShown,
    NodePage,
    SpanShown,
    Took,
)
from headrace.server.paging import Cursor, Limit, decode, encode, id_place, link_next
from headrace.server.pictures import Picture, Pictures
from headrace.server.problems import Problem
from headrace.server.searching import Words
from headrace.server.seeing import Seeing
from headrace.server.words import states_of

router = APIRouter(prefix="/jobs", tags=["jobs"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
_GROUP = r"^g[0-9]{1,16}$"
GroupId = Annotated[str, Path(pattern=_GROUP, description="The id of a group", examples=["g17"])]
_KINDS = tuple(EdgeKind)
_FAILED = 50  # groups that tell an error


@router.get("/{id}/groups")
async def get_groups(id: PathId, request: Request, app: TheApp, caller: Reader) -> GroupsShown:
    """The job as groups: tasks of the same name that wait for the same, with how many are in which state."""
    job, picture = await _pictured(app, request, caller, id)
    groups = picture.structure.groups
    single = [group.members[0] for group in groups if len(group.members) == 1]
    failed = [tally.failed for tally in picture.tallies if tally.failed is not None][:_FAILED]
    labels = await app.engine.run(lambda store: store.labels(single)) if single else {}
    errors = await app.engine.run(lambda store: store.get(failed)) if failed else {}
    seeing = Seeing(app)
    shown = [
        GroupShown(
            id=_group_id(group),
            task=group.name,
            label=seeing.text(labels.get(group.members[0])) if len(group.members) == 1 else None,
            level=group.level,
            count=len(group.members),
            states=tally.states,
            started_at=_instant(tally.began),
            finished_at=_instant(tally.ended),
            took=_took(tally),
            first=group.members[0],
            failed=tally.failed,
            error=seeing.text(_error(errors.get(tally.failed or 0))),
        )
        for group, tally in zip(groups, picture.tallies, strict=True)
    ]
    edges = [
        GroupEdgeShown(group=_group_id(groups[place]), upstream=_group_id(groups[upstream]), kind=_KINDS[kind], count=n)
        for (place, upstream, kind), n in sorted(picture.structure.edges.items())
    ]
    return GroupsShown(
        job=seeing.job(job),
        groups=shown,
        edges=edges,
        merged=picture.structure.is_merged,
        complete=picture.complete,
        as_of=picture.at,
    )


@router.get("/{id}/groups/{group}/tasks")
async def list_members(
    id: PathId,
    group: GroupId,
    request: Request,
    response: Response,
    app: TheApp,
    caller: Reader,
    status: Annotated[Words, Query(description="States, as they were a moment ago", examples=[["failed"]])] = [],  # noqa: B006
    limit: Limit = 100,
    cursor: Cursor = None,
) -> NodePage:
    """The tasks of one group, by id."""
    _, picture = await _pictured(app, request, caller, id)
    after = id_place(cursor) or 0
    states, _ = states_of(status)
    wanted = {state.value for state in states}
    members = picture.members(_place(picture, group), after=after)
    ids = [task for task in members if not wanted or picture.states.get(task) in wanted]
    page = ids[:limit]
    records = await app.engine.run(lambda store: store.get(page)) if page else {}
    next = encode(page[-1]) if len(ids) > limit else None
    link_next(request, response, next)
    seeing = Seeing(app)
    return NodePage(items=[seeing.node(node_of(records[task])) for task in page if task in records], next=next)


@router.get("/{id}/gantt")
async def get_gantt(
    id: PathId,
    request: Request,
    response: Response,
    app: TheApp,
    caller: Reader,
    group: Annotated[str | None, Query(pattern=_GROUP, description="Of this group alone")] = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> GanttPage:
    """Its tasks with every execution, by level, then by id."""
    job, picture = await _pictured(app, request, caller, id)
    groups = picture.structure.groups
    chosen = range(len(groups)) if group is None else [_place(picture, group)]
    rows = sorted((groups[place].level, task, place) for place in chosen for task in groups[place].members)
    begin = 0
    if cursor is not None:
        begin = bisect_right(rows, (*decode(cursor, 2, most=LARGEST), len(groups)))
    page = rows[begin : begin + limit]
    ids = [task for _, task, _ in page]
    records = await app.engine.run(lambda store: store.get(ids)) if ids else {}
    spans = await app.engine.run(lambda store: store.spans(ids)) if ids else {}
    next = encode(page[-1][0], page[-1][1]) if begin + limit < len(rows) else None
    link_next(request, response, next)
    seeing = Seeing(app)
    items = [
        GanttRow(
            id=task,
            name=seeing.text(node_of(records[task]).name) or "",
            task=records[task].name,
            group=_group_id(groups[place]),
            level=level,
            state=records[task].state,
            created_at=records[task].created_at,
            started_at=records[task].started_at,
            finished_at=records[task].finished_at,
            attempts=[SpanShown.model_validate(span) for span in spans.get(task, ())],
        )
        for level, task, place in page
        if task in records
    ]
    return GanttPage(
        items=items, next=next, since=job.started_at or job.created_at, until=job.completed_at or picture.at
    )


async def _pictured(app: App, request: Request, caller: Caller, id: int) -> tuple[JobRecord, Picture]:
    job = await seen_job(app, caller, id)
    return job, await cast("Pictures", request.app.state.pictures).of(job)


def _group_id(group: Group) -> str:
    """By its first task: places move when a job grows, and whoever looks at a group goes on with it by its id."""
    return f"g{group.members[0]}"


def _place(picture: Picture, group: str) -> int:
    """Of the group that has the task, also where another has become its first one: groups are put together anew when
    there are too many."""
    place = picture.structure.place_of.get(int(group[1:]))
    if place is None:
        raise Problem(404, "Not Found", f"the job has no group {group}")
    return place


def _took(tally: Tally) -> Took:
    mean = tally.total / tally.ran if tally.ran else None
    return Took(n=tally.ran, mean=mean, max=tally.longest if tally.ran else None)


def _error(record: TaskRecord | None) -> str | None:
    return None if record is None else node_of(record).error


def _instant(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, tz=UTC)
