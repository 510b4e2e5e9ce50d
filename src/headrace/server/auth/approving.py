"""What a caller submits runs at once, or waits until an operator has approved it. Pure."""

from headrace.core.accounts import Role
from headrace.core.payload import loads
from headrace.core.task import NewTask
from headrace.server.auth.caller import Caller
from headrace.workflows.builtin import APPROVED, COLLECT

_OF_FUNCTIONS = frozenset({"coroutine", "child", "thread"})
_OF_WORKFLOWS = frozenset({APPROVED, COLLECT})


def needs_approval(caller: Caller, task: NewTask) -> bool:
    """Commands of users always wait, and so does whatever runs as freely as one: a function that is named by its path
    and imported for it. A registered task does where it was declared so: `@app.task(approval="operator")`.

    Admins never wait, operators only for what was declared to need an admin. Nor does anybody in a server without
    users, where the caller is an admin. Nothing is placed or reserved for a task that waits: approved it joins its
    queue, and takes what is free then.
    """
    if caller.role is Role.ADMIN:
        return False
    asked = asked_role(task.options)
    if asked is None and not is_free(task):
        return False
    wanted = Role(asked) if asked in Role else Role.OPERATOR
    # Whoever sends a command cannot ask for less than an operator's word by asking for their own.
    return not caller.role.reaches(wanted) or (is_free(task) and not caller.role.reaches(Role.OPERATOR))


def is_free(task: NewTask) -> bool:
    """Whether it runs what nobody registered. Its kind alone does not say so: what a worker goes by is the pool."""
    # Read, not searched: a client may write the word in other ways.
    by_path = bool(loads(task.options).get("entrypoint")) and task.name not in _OF_WORKFLOWS
    return task.kind != "function" or task.pool not in _OF_FUNCTIONS or by_path


def of_workflows(task: NewTask) -> bool:
    """Whether it is one of those that a plan adds of its own."""
    return task.name in _OF_WORKFLOWS and bool(loads(task.options).get("entrypoint"))


def asked_role(options: str) -> str | None:
    """The role that a task's stored options ask for, of whoever decides."""
    # Most tasks ask for none, and their options need not be read to see it.
    return loads(options).get("approval", {}).get("role") if '"approval"' in options else None


def may_decide(caller: Caller, wanted: str | None) -> bool:
    """Whether they may approve or reject a task that asks for this role; their own ones are no exception.

    A role that is none of ours (`approve(role="finance")` in a workflow) is for admins to answer for.
    """
    if not caller.role.reaches(Role.OPERATOR):
        return False
    if wanted is None:
        return True
    return caller.role.reaches(Role(wanted)) if wanted in Role else caller.role is Role.ADMIN
