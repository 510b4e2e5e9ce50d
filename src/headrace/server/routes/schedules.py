"""/schedules: what is enqueued by itself. They belong to nobody: users do not see them, operators change them.

What a schedule enqueues waits for nobody's approval. So who makes it run (creates, changes, resumes or runs it) must be
one who may run its task directly; to pause or remove it any operator may.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Query, Request, Response

from headrace.app import App
from headrace.client.options import OptionArguments
from headrace.client.schedules import Changes, ScheduleView
from headrace.core.accounts import Role, Scope
from headrace.core.payload import loads
from headrace.core.schedule import ScheduleRun
from headrace.core.task import NewTask
from headrace.server.access import Overseer, TheApp, permit
from headrace.server.auditing import audited
from headrace.server.auth.caller import Caller
from headrace.server.models.base import PathName
from headrace.server.models.schedules import (
    NewScheduleRequest,
    RunPage,
    RunShown,
    ScheduleChange,
    ScheduleDetail,
    ScheduleShown,
    Triggered,
)
from headrace.server.paging import Cursor, Limit, full, instant_cursor, instant_place, link_next
from headrace.server.seeing import Seeing
from headrace.server.submitting import require_direct
from headrace.server.withheld import refuse_redacted

router = APIRouter(prefix="/schedules", tags=["schedules"])

Operator = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.OPERATOR))]
Fires = Annotated[int, Query(ge=0, le=100, description="How many of its next fires are told")]
Runs = Annotated[int, Query(ge=0, le=20, description="How many of the last runs of each are told")]
_SHOWN_RUNS = 20


@router.get("")
async def list_schedules(app: TheApp, caller: Overseer, fires: Fires = 5, runs: Runs = 3) -> list[ScheduleShown]:
    """Every schedule, by name, with its next fires and its last runs."""
    views = await app.schedules.alist()
    ids = [view.record.id for view in views]
    last = await app.engine.run(lambda store: store.last_runs(ids, each=runs)) if runs else {}
    return [ScheduleShown(**_shown(app, view, fires=fires, runs=last.get(view.record.id, ()))) for view in views]


@router.post("", status_code=201)
async def create_schedule(
    given: NewScheduleRequest, request: Request, response: Response, app: TheApp, caller: Operator
) -> ScheduleDetail:
    """Make a schedule of a registered task. It fires from now on. 409 when the name is taken."""
    from headrace.scheduling.declaration import Schedule

    when = _when(given)
    assert when is not None
    schedule = Schedule(
        when,
        tz=given.tz,
        name=given.name,
        catch_up=given.catch_up,
        grace=given.grace,
        overlap=given.overlap,
        jitter=given.jitter,
        paused=given.paused,
    )
    _refuse_redacted(given, "give its value")
    wanted = {name: value for name in ("queue", "priority") if (value := getattr(given, name)) is not None}
    task = app.get_task(given.task).using(**cast("OptionArguments", wanted))
    # Refused before it is on the list of what was done.
    require_direct(app, caller, task.prepare(*given.args, **given.kwargs))
    async with audited(app, caller, "schedules.create", f"schedule/{given.name}", {"task": task.name}):
        made = await app.schedules.aadd(task, schedule, *given.args, **given.kwargs)
    response.headers["Location"] = f"{request.url.path.rstrip('/')}/{made.name}"
    return ScheduleDetail(**_shown(app, made), runs=[])


@router.get("/{name:path}/runs")
async def list_runs(
    name: PathName,
    request: Request,
    response: Response,
    app: TheApp,
    caller: Overseer,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> RunPage:
    """Its fires, newest first, with what became of each."""
    found = await app.schedules.aruns(name, limit=limit, before=instant_place(cursor))
    next = instant_cursor(found[-1].tick) if full(found, limit) else None
    link_next(request, response, next)
    return RunPage(items=[RunShown.model_validate(run) for run in found], next=next)


@router.post("/{name:path}/pause")
async def pause_schedule(name: PathName, app: TheApp, caller: Operator) -> ScheduleShown:
    """No tick of it fires until it is resumed."""
    async with audited(app, caller, "schedules.pause", f"schedule/{name}"):
        return ScheduleShown(**_shown(app, await app.schedules.apause(name)))


@router.post("/{name:path}/resume")
async def resume_schedule(name: PathName, app: TheApp, caller: Operator) -> ScheduleShown:
    """Ticks from now on fire again; those of the pause never do."""
    read = await _direct(app, caller, name)
    async with audited(app, caller, "schedules.resume", f"schedule/{name}"):
        return ScheduleShown(**_shown(app, await app.schedules.aresume(name, expected=read)))


@router.post("/{name:path}/run", status_code=202)
@router.post("/{name:path}/trigger", status_code=202)
@router.post("/{name:path}/trigger/", status_code=202)
async def trigger_schedule(
    name: PathName, request: Request, response: Response, app: TheApp, caller: Operator
) -> Triggered:
    """Enqueue its task now, paused or not. The ticks go on as if nothing had happened."""
    read = await _direct(app, caller, name)
    async with audited(app, caller, "schedules.run", f"schedule/{name}"):
        handle = await app.schedules.arun_now(name, expected=read)
    prefix = request.url.path.partition("/schedules/")[0]
    response.headers["Location"] = f"{prefix}/tasks/{handle.id}"
    return Triggered(task=handle.id)


@router.get("/{name:path}")
async def get_schedule(name: PathName, app: TheApp, caller: Overseer, fires: Fires = 5) -> ScheduleDetail:
    """A schedule with its next fires and its last runs."""
    view = await app.schedules.aget(name)
    return await _detail(app, view, fires=fires)


@router.patch("/{name:path}")
async def change_schedule(name: PathName, given: ScheduleChange, app: TheApp, caller: Operator) -> ScheduleDetail:
    """Change what is given and keep the rest. A new cadence counts from now."""
    before = (await app.schedules.aget(name)).record
    task = None
    if given.task is not None:
        _refuse_redacted(given, "give its value, or leave `task` out, and the call stays as it is")
        chosen = app.get_task(given.task).using(**_chosen(app, before.task))
        task = chosen.prepare(*given.args, **given.kwargs)
    require_direct(app, caller, before.task if task is None else task)
    read = before.id, before.revision
    rules = {
        rule: value
        for rule in ("tz", "catch_up", "grace", "overlap", "jitter")
        if (value := getattr(given, rule)) is not None
    }
    # Without the call, as where it is made: what stands at a place has no name to know a secret by.
    said = given.model_dump(mode="json", exclude={"args", "kwargs"})
    async with audited(app, caller, "schedules.change", f"schedule/{name}", said):
        changed = await app.schedules.aset(name, when=_when(given), task=task, expected=read, **cast("Changes", rules))
    return await _detail(app, changed)


@router.delete("/{name:path}", status_code=204)
async def remove_schedule(name: PathName, app: TheApp, caller: Operator) -> None:
    """It, and the list of its runs; tasks that it has enqueued stay."""
    async with audited(app, caller, "schedules.remove", f"schedule/{name}"):
        await app.schedules.aremove(name)


async def _direct(app: App, caller: Caller, name: str) -> tuple[int, int]:
    """The id and the revision of the schedule whose task the caller may run: what is done by its name a moment later
    must be done to that one. Raises Problem(403)."""
    record = (await app.schedules.aget(name)).record
    require_direct(app, caller, record.task)
    return record.id, record.revision


def _chosen(app: App, before: NewTask) -> OptionArguments:
    """The queue and the priority that a schedule has of its own: others than those of its task. All that it has, where
    this server does not know its task."""
    own = app.registry.get(before.name)
    chosen: OptionArguments = {}
    if own is None or before.queue != own.options.queue:
        chosen["queue"] = before.queue
    if own is None or before.priority != own.options.priority:
        chosen["priority"] = before.priority
    return chosen


def _refuse_redacted(given: NewScheduleRequest | ScheduleChange, instead: str) -> None:
    refuse_redacted({"args": given.args, "kwargs": given.kwargs}, title="Bad schedule", instead=instead)


def _when(given: NewScheduleRequest | ScheduleChange) -> Any:
    return given.cron or given.at or (None if given.every is None else timedelta(seconds=given.every))


async def _detail(app: App, view: ScheduleView, *, fires: int = 5) -> ScheduleDetail:
    runs = await app.schedules.aruns(view.name, limit=_SHOWN_RUNS)
    return ScheduleDetail(
        **_shown(app, view, fires=fires, runs=runs[:3]), runs=[RunShown.model_validate(run) for run in runs]
    )


def _shown(app: App, view: ScheduleView, *, fires: int = 5, runs: Sequence[ScheduleRun] = ()) -> dict[str, Any]:
    record = view.record
    return {
        "name": record.name,
        "task": view.task,
        "when": view.describe(),
        "cadence": loads(record.cadence),
        "catch_up": record.catch_up,
        "grace": record.grace,
        "overlap": record.overlap,
        "jitter": record.jitter,
        "paused": record.paused,
        "declared_by": record.declared_by,
        "revision": record.revision,
        "problem": view.problem,
        "next_at": record.next_at,
        "upcoming": view.upcoming(fires) if fires else [],
        "last_runs": [RunShown.model_validate(run) for run in runs],
        "arguments": Seeing(app).arguments(record.task.arguments, record.task.codec),
        "queue": record.task.queue,
        "created_at": record.created_at,
        "changed_at": record.changed_at,
    }
