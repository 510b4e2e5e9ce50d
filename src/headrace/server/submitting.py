"""From what a caller sends to the tasks that are written, in the caller's name."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

from headrace.app import App
from headrace.client.options import OptionArguments
from headrace.core.errors import DuplicateTask
from headrace.core.payload import dumps, loads
from headrace.core.states import TaskState
from headrace.core.task import Enqueued, NewTask, TaskRecord
from headrace.server.auth.approving import needs_approval
from headrace.server.auth.caller import Caller
from headrace.server.models.tasks import Command, Submission, Submitted
from headrace.server.problems import Problem

# Options that go to `using` as they are.
_PLAIN = (
    *("queue", "priority", "on_conflict", "job", "tags", "metadata"),
    *("timeout", "soft_timeout", "max_age", "result_ttl"),
)
_KEYS = ("unique", "order_key")


def prepared(app: App, caller: Caller, given: Submission, *, key: str | None = None) -> NewTask:
    """The task that this becomes; nothing is written. `key` is the header Idempotency-Key.

    Raises what `enqueue` raises: UnknownTask, ArgumentError, OptionError.
    """
    options = _options(caller, given, key)
    if given.command is not None:
        new = command(app, given.command, options)
    else:
        assert given.name is not None
        task = app.get_task(given.name)
        new = (task.using(**options) if options else task).prepare(*given.args, **given.kwargs)
    return owned(caller, new)


def command(app: App, given: Command, options: OptionArguments) -> NewTask:
    return app.commands.prepare(given.argv, env=given.env, cwd=given.cwd, stdin=given.stdin, **options)


def owned(caller: Caller, new: NewTask) -> NewTask:
    """In the caller's name, and waiting for somebody's word where their role may not run it directly."""
    return dataclasses.replace(new, owner=caller.owns_as, approval=new.approval or needs_approval(caller, new))


def declared(app: App, task: NewTask) -> NewTask:
    """With the role that its declaration here asks for, whatever whoever sent it says."""
    registered = app.registry.get(task.name)
    role = None if registered is None else registered.options.approval
    if role is None:
        return task
    return dataclasses.replace(task, options=dumps({**loads(task.options), "approval": {"role": role.value}}))


def require_direct(app: App, caller: Caller, task: NewTask) -> None:
    """For what enqueues by itself and so can wait for nobody's word. Raises Problem(403)."""
    if needs_approval(caller, declared(app, task)):
        raise Problem(
            403,
            "Forbidden",
            f"task {task.name} waits for approval when you submit it, and a schedule waits for nobody: only who may "
            "run it directly makes it run by one",
        )


async def submit(app: App, caller: Caller, tasks: Sequence[NewTask]) -> list[Submitted]:
    """Write them in one transaction. What was there already is looked at before it is shown."""
    try:
        answers = await app.engine.enqueue(tasks)
    except DuplicateTask as held:
        if not caller.may_see((await app.tasks.aget(held.task_id)).owner):
            raise _held() from None
        raise
    if all(answer.created for answer in answers):
        return [_made(new, answer) for new, answer in zip(tasks, answers, strict=True)]
    ids = [answer.id for answer in answers if not answer.created]
    found = await app.engine.follow(lambda ledger: ledger.get(ids))
    return [
        _made(new, answer) if answer.created else _existing(caller, new, answer, found)
        for new, answer in zip(tasks, answers, strict=True)
    ]


def _made(new: NewTask, answer: Enqueued) -> Submitted:
    state = TaskState.PENDING_APPROVAL if new.approval else TaskState.PENDING
    return Submitted(id=answer.id, name=new.name, queue=new.queue, state=state, created=True)


def _existing(caller: Caller, new: NewTask, answer: Enqueued, found: Mapping[int, TaskRecord]) -> Submitted:
    record = found.get(answer.id)
    if record is None or not caller.may_see(record.owner):
        raise _held()
    if any(key.scope == "idem" for key in new.keys) and (record.name, record.arguments) != (new.name, new.arguments):
        raise Problem(
            422,
            "Idempotency key was used",
            f"the idempotency key was used for task {record.id}, which was called otherwise; nothing was written",
        )
    return Submitted(id=record.id, name=record.name, queue=record.queue, state=record.state, created=False)


def _held() -> Problem:
    """Not even its id: that another's task holds the key is all there is to know."""
    return Problem(409, "Key is held", "the key of this task is held by another's, and nothing was written")


def _options(caller: Caller, given: Submission, key: str | None) -> OptionArguments:
    found: dict[str, Any] = {name: value for name in _PLAIN if (value := getattr(given, name)) is not None}
    if given.on_conflict == "replace" and not caller.controls_all:
        raise Problem(403, "Forbidden", "to replace a task that holds a key is for operators: it may be another's")
    if given.delay is not None:
        found["run_after"] = given.delay
    if given.run_at is not None:
        found["run_after"] = given.run_at
    for name in _KEYS:
        if (value := getattr(given, name)) is not None:
            found[name] = _literal(value)
    if key is not None and given.idempotency_key not in (None, key):
        raise Problem(422, "Two keys", "the header Idempotency-Key and idempotency_key say different things")
    if (idempotency := key or given.idempotency_key) is not None:
        # Keys of two callers never meet.
        found["idempotency_key"] = _literal(f"{caller.name}/{idempotency}")
    return cast("OptionArguments", found)


def _literal(key: str | bool) -> str | bool:
    """In code a key is a template over the arguments; whoever sends one could read anything with it."""
    return key if isinstance(key, bool) else key.replace("{", "{{").replace("}", "}}")
