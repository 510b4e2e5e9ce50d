"""What a caller submits runs at once, or waits until an operator has approved it. Pure."""

from dataclasses import replace
from typing import Literal

from headrace.core.accounts import Role
from headrace.core.task import NewTask
from headrace.server.auth.caller import Caller

Kind = Literal["function", "command"]


def must_wait(caller: Caller, kind: Kind, *, approval: str | None = None) -> bool:
    """Commands of users always wait; a function does when it was declared so: `@app.task(approval="operator")`.

    Operators and admins never wait. Nor does anybody in a server without users, where the caller is an admin.
    """
    if caller.role.reaches(Role.OPERATOR):
        return False
    return kind == "command" or approval is not None


def submitted(task: NewTask, caller: Caller, kind: Kind, *, approval: str | None = None) -> NewTask:
    """The task as this caller submits it: theirs, and waiting where it must. Nothing is placed or reserved for a task
    that waits: it joins the queue when it is approved, and takes what is free then.
    """
    return replace(task, owner=caller.owns_as, approval=task.approval or must_wait(caller, kind, approval=approval))


def may_decide(caller: Caller, wanted: str | None) -> bool:
    """Whether they may approve or reject a task that asks for this role; nobody's own tasks are an exception.

    A role that is none of ours (`approve(role="finance")` in a workflow) is for admins to answer for.
    """
    if not caller.role.reaches(Role.OPERATOR):
        return False
    if wanted is None:
        return True
    return caller.role.reaches(Role(wanted)) if wanted in Role else caller.role is Role.ADMIN
