"""What a role may not run directly."""

from headrace.core.accounts import Role
from headrace.core.task import NewTask
from headrace.server.auth.caller import Caller


def needs_approval(caller: Caller, task: NewTask) -> bool:
    return task.kind == "command" and not caller.role.reaches(Role.OPERATOR)
