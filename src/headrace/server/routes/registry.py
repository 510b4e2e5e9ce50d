"""/registry: which tasks can be submitted, and with which arguments."""

from typing import Annotated

from fastapi import APIRouter, Depends

from headrace.core.accounts import Role, Scope
from headrace.server.access import TheApp, permit
from headrace.server.auth.caller import Caller
from headrace.server.models.base import PathName
from headrace.server.models.registry import Registered, Registry
from headrace.server.problems import Problem
from headrace.server.registering import may_submit, registered

router = APIRouter(prefix="/registry", tags=["registry"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]


@router.get("")
async def list_registered(app: TheApp, caller: Reader) -> Registry:
    """Every task that this server knows by its name. Workers may know others: those can be looked at, not submitted."""
    tasks = [task for _, task in sorted(app.registry.items())]
    queues = {*await app.engine.run(lambda store: store.queue_names()), *app.queue_names()}
    return Registry(
        items=[registered(app, caller, task) for task in tasks],
        commands=may_submit(caller),
        commands_need_approval=not caller.role.reaches(Role.OPERATOR),
        queues=sorted({*queues, "default"}),
    )


@router.get("/{name:path}")
async def get_registered(name: PathName, app: TheApp, caller: Reader) -> Registered:
    """One of them, by its name or an alias."""
    task = next((task for task in app.registry.values() if name == task.name or name in task.aliases), None)
    if task is None:
        raise Problem(404, "Not Found", f"this server knows no task {name!r}")
    return registered(app, caller, task)
