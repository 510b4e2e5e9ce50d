"""/jobs: sets of tasks with one fate."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from headrace.client.options import UNSET
from headrace.core.accounts import Role, Scope
from headrace.core.states import JobState
from headrace.server.access import TheApp, permit
from headrace.server.auditing import audited
from headrace.server.auth.caller import Caller
from headrace.server.drawing import drawn
from headrace.server.finding import controlled_job, seen_job, seen_owner
from headrace.server.job_searching import JobSearch, search_jobs
from headrace.server.models.base import LARGEST, PathId
from headrace.server.models.jobs import (
    GraphShown,
    Ids,
    JobDetail,
    JobEventPage,
    JobEventShown,
    JobLinePage,
    JobLineShown,
    JobPage,
    JobShown,
    MoreTasks,
    NewJobRequest,
)
from headrace.server.paging import Cursor, Limit, encode, full, id_place, link_next
from headrace.server.searching import Word
from headrace.server.seeing import Seeing

router = APIRouter(prefix="/jobs", tags=["jobs"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
Submitter = Annotated[Caller, Depends(permit(Scope.SUBMIT, role=Role.USER))]
Controller = Annotated[Caller, Depends(permit(Scope.CONTROL, role=Role.USER))]
After = Annotated[int, Query(ge=-1, le=LARGEST, description="The last `seq` that was seen")]


@router.post("", status_code=201)
async def create_job(
    given: NewJobRequest, request: Request, response: Response, app: TheApp, caller: Submitter
) -> JobShown:
    """Make a job and its tasks in one transaction."""
    tasks = drawn(app, caller, given.tasks)
    made = await app.jobs.acreate(
        given.name,
        tasks,
        description=given.description,
        timeout=UNSET if given.timeout is None else given.timeout,
        metadata=given.metadata,
        owner=caller.owns_as,
    )
    response.headers["Location"] = f"{request.url.path.rstrip('/')}/{made.id}"
    return Seeing(app).job(made)


@router.get("")
async def list_jobs(
    request: Request,
    response: Response,
    app: TheApp,
    caller: Reader,
    state: Annotated[list[JobState], Query(max_length=10)] = [],  # noqa: B006
    owner: Word = None,
    name: Annotated[Word, Query(description="With * at the end: what begins so", examples=["nightly"])] = None,
    text: Annotated[Word, Query(description="Words: in its name, or its id")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> JobPage:
    """Jobs, newest first. A user's own.

    `owner` and a whole `name` are served by an index. By the beginning of a name, and by words, jobs are looked at one
    by one, for a short time: `complete` says whether that was enough, and `next` goes on from there.
    """
    whose, before = seen_owner(caller, owner), id_place(cursor)
    if name is None and text is None:
        found = await app.engine.run(
            lambda store: store.list_jobs(states=tuple(state), limit=limit, before=before, owner=whose)
        )
        next, complete = encode(found[-1].id) if full(found, limit) else None, True
    else:
        wanted = JobSearch(name=name, text=text, states=tuple(state), owner=whose, shown=app.redaction.text)
        found, below, complete = await app.engine.run(
            lambda store: search_jobs(store, wanted, below=before, limit=limit)
        )
        next = None if below is None else encode(below)
    link_next(request, response, next)
    seeing = Seeing(app)
    return JobPage(items=[seeing.job(job) for job in found], next=next, complete=complete)


@router.get("/{id}")
async def get_job(id: PathId, app: TheApp, caller: Reader) -> JobDetail:
    """A job with its counts, and what its end enqueues."""
    job = await seen_job(app, caller, id)
    return Seeing(app).job_detail(job, await app.engine.run(lambda store: store.hooks_of_job(id)))


@router.get("/{id}/graph")
async def get_graph(
    id: PathId, app: TheApp, caller: Reader, limit: Annotated[int, Query(ge=1, le=5000)] = 1000
) -> GraphShown:
    """Its tasks and what waits for what."""
    await seen_job(app, caller, id)
    return Seeing(app).graph(await app.jobs.agraph(id, limit=limit))


@router.post("/{id}/tasks", status_code=201)
async def add_tasks(id: PathId, given: MoreTasks, app: TheApp, caller: Submitter) -> Ids:
    """Add tasks to a job that is not over, in one transaction."""
    await controlled_job(app, caller, id)
    tasks = drawn(app, caller, given.tasks, job=id, after=given.after)
    async with audited(app, caller, "jobs.add", f"job/{id}", {"tasks": len(tasks)}):
        answers = await app.engine.enqueue(tasks)
    return Ids(ids=[answer.id for answer in answers])


@router.post("/{id}/cancel")
async def cancel_job(id: PathId, app: TheApp, caller: Controller) -> JobShown:
    """Cancel what waits and tell what runs to stop."""
    await controlled_job(app, caller, id)
    async with audited(app, caller, "jobs.cancel", f"job/{id}"):
        return Seeing(app).job(await app.jobs.acancel(id))


@router.post("/{id}/retry-failed")
async def retry_failed(id: PathId, app: TheApp, caller: Controller) -> Ids:
    """Open the job again with what failed, and with what was cancelled because of that."""
    await controlled_job(app, caller, id)
    async with audited(app, caller, "jobs.retry", f"job/{id}"):
        return Ids(ids=await app.jobs.aretry_failed(id))


@router.get("/{id}/events")
async def list_events(id: PathId, app: TheApp, caller: Reader, after: After = -1, limit: Limit = 500) -> JobEventPage:
    """The job after each change of its state or its counts, by number. `next` is the `after` of the next page."""
    await seen_job(app, caller, id)
    found = await app.engine.run(lambda store: store.job_events(id, after=after, limit=limit))
    next = str(found[-1].seq) if full(found, limit) else None
    return JobEventPage(items=[JobEventShown.model_validate(event) for event in found], next=next)


@router.get("/{id}/logs")
async def list_lines(id: PathId, app: TheApp, caller: Reader, after: After = -1, limit: Limit = 500) -> JobLinePage:
    """The lines of all its tasks, by number. `next` is the `after` of the next page."""
    await seen_job(app, caller, id)
    found = await app.engine.run(lambda store: store.job_lines(id, after=after, limit=limit))
    seeing = Seeing(app)
    items = [
        JobLineShown(
            seq=line.seq, task=line.task, claim_no=line.claim_no, at=line.at, stream=line.stream,
            line=seeing.text(line.line) or "",
        )
        for line in found
    ]  # fmt: skip
    return JobLinePage(items=items, next=str(found[-1].seq) if full(found, limit) else None)
