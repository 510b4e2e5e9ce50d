"""A thing by its id, for who may see it, or may act on it. 404 for what there is not, 403 for others' things."""

from headrace.app import App
from headrace.core.task import JobRecord, TaskRecord
from headrace.server.auth.caller import Caller
from headrace.server.problems import Problem


async def seen_task(app: App, caller: Caller, id: int) -> TaskRecord:
    record = await app.tasks.aget(id)
    if not caller.may_see(record.owner):
        raise _not_yours(f"task {id}")
    return record


async def controlled_task(app: App, caller: Caller, id: int) -> TaskRecord:
    record = await app.tasks.aget(id)
    if not caller.may_control(record.owner):
        raise _not_yours(f"task {id}")
    return record


async def seen_job(app: App, caller: Caller, id: int) -> JobRecord:
    record = await app.jobs.aget(id)
    if not caller.may_see(record.owner):
        raise _not_yours(f"job {id}")
    return record


async def controlled_job(app: App, caller: Caller, id: int) -> JobRecord:
    record = await app.jobs.aget(id)
    if not caller.may_control(record.owner):
        raise _not_yours(f"job {id}")
    return record


def seen_owner(caller: Caller, asked: str | None) -> str | None:
    """Whose things a list is of: a user's own, whatever they ask for."""
    if caller.only_own is not None and asked not in (None, caller.only_own):
        raise Problem(403, "Forbidden", "you see your own alone; leave owner out")
    return asked if caller.only_own is None else caller.only_own


def _not_yours(what: str) -> Problem:
    return Problem(403, "Forbidden", f"{what} is not yours")
