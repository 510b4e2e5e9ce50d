"""The ledger for apps that have no database: `App("https://host", token=…)` calls these. See store.http.verbs.

Who may act on their own things alone gets just that: what they enqueue is theirs and waits for approval where their
role needs one, what they ask for is looked up with its owner.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request

from headrace.app import App
from headrace.client.results import stored_text
from headrace.core.accounts import Scope
from headrace.core.errors import DuplicateTask, HeadraceError, MovedAway, NotFound
from headrace.core.schedule import NewSchedule
from headrace.core.task import NewTask, TaskFilter, TaskRecord
from headrace.server.access import TheApp, authenticate, permit
from headrace.server.auditing import audited
from headrace.server.auth.approving import asked_role, may_decide
from headrace.server.auth.caller import Caller
from headrace.server.ledger.bounds import bounded
from headrace.server.ledger.seeing import Curtain, sees_secrets, without_names
from headrace.server.ledger.submitting import must_be_told, refused, scheduled, submitted
from headrace.server.problems import Problem, problem_of
from headrace.server.submitting import require_direct
from headrace.store.base import Store
from headrace.store.http import failures
from headrace.store.http.jobs import WiredJob
from headrace.store.http.verbs import VERBS, Form, Verb, form_of
from headrace.store.schedules import check_unchanged

_SAID = (int, str, bool, list, tuple)
_SUBJECTS = {"service": "breaker", "queue": "queue", "task": "task", "job": "job", "name": "schedule"}

router = APIRouter(prefix="/ledger", tags=["ledger"])


@router.get("/", summary="Whether this token is good for an app over HTTP")
async def greet(caller: Annotated[Caller, Depends(permit(Scope.READ))]) -> dict[str, Any]:
    return {"name": caller.name, "role": caller.role, "scopes": sorted(caller.scopes), "verbs": sorted(VERBS)}


@router.post("/{verb}", summary="One verb of the ledger, as the Python client calls it")
async def call(
    verb: str, app: TheApp, request: Request, given: Annotated[dict[str, Any], Body(default_factory=dict)]
) -> Any:
    caller = await authenticate(request)
    wanted = VERBS.get(verb)
    if wanted is None:
        raise Problem(404, "Not found", f"there is no verb {verb!r} for apps over HTTP")
    if wanted.scope not in caller.scopes:
        raise Problem(403, "Forbidden", f"this needs the scope {wanted.scope.value!r}")
    form = form_of(verb)
    try:
        arguments = bounded(verb, form.read_arguments(given))
    except ValueError as error:
        raise Problem(422, "Unprocessable arguments", str(error)) from None
    try:
        return await _carry_out(app, caller, verb, wanted, form, arguments)
    except HeadraceError as error:
        if (problem := problem_of(error)) is None:
            raise
        problem.more = {**problem.more, **failures.written(error)}
        raise problem from error


async def _carry_out(app: App, caller: Caller, verb: str, wanted: Verb, form: Form, arguments: dict[str, Any]) -> Any:
    allowed = await _own(app, caller, wanted, arguments)
    if verb in ("resume_schedule", "run_schedule"):
        await _must_run_directly(app, caller, allowed)

    async def act(store: Store) -> Any:
        return await getattr(store, verb)(**allowed)

    if wanted.scope is Scope.CONTROL:
        if verb == "reset_breaker":
            await _must_have_opened(app, arguments["service"])
        async with audited(app, caller, f"ledger.{verb}", _subject(wanted, allowed), _said(allowed)):
            answer = await app.engine.run(act)
    else:
        try:
            answer = await app.engine.run(act)
        except (DuplicateTask, MovedAway) as error:
            await refused(app, caller, error)
            raise
    if wanted.scope is Scope.SUBMIT:
        await must_be_told(app, caller, answer if verb == "enqueue" else answer[1])
    if verb == "get":
        answer = {id: await _whole(app, record) for id, record in answer.items()}
    if verb == "breakers" and not caller.controls_all:
        answer = without_names(answer)
    if not sees_secrets(caller):
        answer = Curtain(app).answer(verb, answer)
    return form.write_answer(answer)


async def _must_have_opened(app: App, service: str) -> None:
    known = await app.engine.run(lambda store: store.breakers())
    if all(breaker.service != service for breaker in known):
        raise NotFound(f"no breaker {service!r} has ever opened, or was touched by hand")


def _subject(wanted: Verb, arguments: Mapping[str, Any]) -> str:
    """As the routes of the API call it, so that one list has all that was done to a thing."""
    if wanted.subject == "events":
        return f"event/{arguments['event']}/{arguments['key']}"
    named = next((name for name in _SUBJECTS if isinstance(arguments.get(name), str | int)), None)
    return wanted.subject if named is None else f"{_SUBJECTS[named]}/{arguments[named]}"


def _said(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Of the arguments of an act, for the list of acts. Of schedules their names: their calls may hold anything, and so
    may the payload of an event."""
    if "event" in arguments:
        return {}
    if "schedules" in arguments:
        return {"schedules": [schedule.name for schedule in arguments["schedules"]]}
    return {name: value for name, value in arguments.items() if isinstance(value, _SAID)}


async def _own(app: App, caller: Caller, wanted: Verb, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, cut down to what is theirs. Raises Problem(403) for what is not."""
    match wanted.subject:
        case "new tasks":
            return {"tasks": await _all_submitted(app, caller, arguments["tasks"])}
        case "new job":
            return {"job": (await _new_job(app, caller, arguments["job"])).job()}
        case "tasks":
            await _must_be_theirs(app, caller, wanted, arguments.get("ids", arguments.get("tasks", ())))
        case "task":
            await _must_be_theirs(app, caller, wanted, [arguments["task"]])
        case "job":
            await _must_be_their_job(app, caller, wanted, arguments["job"])
        case "criteria":
            criteria: TaskFilter = arguments["criteria"]
            if (owner := caller.only_own) is not None:
                arguments["criteria"] = dataclasses.replace(criteria, owner=owner)
        case "jobs":
            if (owner := caller.only_own) is not None:
                arguments["owner"] = owner
        case "decision":
            await _must_be_their_decision(app, caller, arguments["task"])
            arguments["by"] = caller.name or arguments["by"]
        case "operators" | "schedules" | "events":
            if wanted.scope is Scope.READ and caller.sees_all:
                return arguments
            if not caller.controls_all:
                raise Problem(403, "Forbidden", "this needs the role 'operator'")
            if "schedules" in arguments:
                given: Iterable[NewSchedule] = arguments["schedules"]
                arguments["schedules"] = [
                    dataclasses.replace(each, task=scheduled(app, caller, each.task)) for each in given
                ]
            if "by" in arguments:  # who did it is who calls
                arguments["by"] = caller.name or arguments["by"]
        case "everyone":
            pass
    return arguments


async def _all_submitted(app: App, caller: Caller, tasks: Iterable[NewTask]) -> list[NewTask]:
    """In the caller's name. Raises Problem(403) where one of them would reach what is another's: their job, their
    results by an edge, their place by a key."""
    made = [submitted(app, caller, task) for task in tasks]
    if not caller.controls_all:
        for job in {task.job for task in made if task.job is not None}:
            await _must_be_their_job(app, caller, VERBS["enqueue"], job)
        upstream = {edge.task for task in made for edge in task.after if not edge.local}
        await _must_be_theirs(app, caller, VERBS["get"], upstream)
    return made


async def _new_job(app: App, caller: Caller, job: WiredJob) -> WiredJob:
    tasks = await _all_submitted(app, caller, job.tasks)
    hooks: dict[str, NewTask] = {}
    for name, hook in (("on_success", job.on_success), ("on_failure", job.on_failure)):
        if hook is not None:
            (hooks[name],) = await _all_submitted(app, caller, [hook])
    if any(hook.approval for hook in hooks.values()):
        raise Problem(403, "Forbidden", "what runs when a job ends waits for nobody: it cannot need approval")
    return dataclasses.replace(job, tasks=tuple(tasks), owner=caller.owns_as, **hooks)


async def _must_be_theirs(app: App, caller: Caller, wanted: Verb, ids: Iterable[int]) -> None:
    if _is_free(caller, wanted):
        return
    found: Mapping[int, TaskRecord] = await app.engine.run(lambda store: store.get(list(ids)))
    for record in found.values():
        _check(caller, wanted, record.owner, f"task {record.id}")


async def _must_run_directly(app: App, caller: Caller, arguments: dict[str, Any]) -> None:
    """What a schedule enqueues waits for nobody: those who make it run may run its task. `arguments` then name the very
    one that was looked at: another may have its name a moment later."""
    found = await app.engine.run(lambda store: store.get_schedule(arguments["name"]))
    if found is not None:
        require_direct(app, caller, found.task)
        check_unchanged(found, arguments.get("expected"))
        arguments["expected"] = (found.id, found.revision)


async def _must_be_their_decision(app: App, caller: Caller, task: int) -> None:
    record = await app.tasks.aget(task)
    if not may_decide(caller, asked_role(record.options)):
        raise Problem(403, "Forbidden", f"task {task} is decided by another role than {caller.role.value!r}")


async def _must_be_their_job(app: App, caller: Caller, wanted: Verb, job: int) -> None:
    if _is_free(caller, wanted):
        return
    found = await app.engine.run(lambda store: store.get_job(job))
    if found is None:
        if wanted.scope is Scope.READ:
            return
        raise NotFound(f"no job {job}")
    _check(caller, wanted, found.owner, f"job {job}")


def _is_free(caller: Caller, wanted: Verb) -> bool:
    return caller.controls_all or (wanted.scope is Scope.READ and caller.sees_all)


def _check(caller: Caller, wanted: Verb, owner: str | None, what: str) -> None:
    may = caller.may_see(owner) if wanted.scope is Scope.READ else caller.may_control(owner)
    if not may:
        raise Problem(403, "Forbidden", f"{what} is not yours")


async def _whole(app: App, record: TaskRecord) -> TaskRecord:
    """With its result, wherever that is kept: an app over HTTP need not reach the result store."""
    if record.result is not None or record.result_ref is None:
        return record
    return dataclasses.replace(record, result=await stored_text(app.engine, record), result_ref=None)
