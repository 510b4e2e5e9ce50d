"""From what a caller sends to the tasks that are written, in the caller's name."""

import dataclasses
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, cast

from fastapi import Header

from headrace.app import App
from headrace.client.options import OptionArguments
from headrace.core.errors import DuplicateTask
from headrace.core.payload import dumps, loads
from headrace.core.states import TaskState
from headrace.core.task import Enqueued, Key, NewTask, TaskRecord
from headrace.server.auth.approving import needs_approval
from headrace.server.auth.caller import Caller
from headrace.server.models.tasks import Command, Submission, Submitted
from headrace.server.problems import Problem, named_by

# Options that go to `using` as they are.
_PLAIN = (
    *("queue", "priority", "on_conflict", "job", "tags", "metadata"),
    *("timeout", "soft_timeout", "max_age", "result_ttl"),
)
_KEYS = ("unique", "order_key")
IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=300, description="Submits once, for its time")
]
_ROUNDS = 10  # of looking who holds the keys: each but the first because somebody took one in between


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


async def submit(app: App, caller: Caller, tasks: Sequence[NewTask], *, below: str | None = None) -> list[Submitted]:
    """Write them in one transaction, or nothing: whoever is refused here has written none of them.

    A task whose key is held is answered by its holder, if the caller may see that one. The holders are looked up first,
    and what is written then asks to be refused where a key has got a holder meanwhile: it is looked up again.
    `below` is where in the body they are, for refusals of one among many.
    """
    _require_one_call_for_each_key(tasks, below)
    for _ in range(_ROUNDS):
        existing = await _existing(app, caller, tasks, below)
        fresh = [new for place, new in enumerate(tasks) if place not in existing]
        try:
            answers = await app.engine.enqueue([_refusing(new) for new in fresh]) if fresh else []
        except DuplicateTask:
            continue
        made = iter(await _answered(app, fresh, answers))
        return [_shown(record) if (record := existing.get(place)) else next(made) for place in range(len(tasks))]
    raise Problem(
        409, "Keys change hands", "the keys of these tasks were taken by others again and again; nothing was written"
    )


def _at(below: str | None, place: int) -> AbstractContextManager[None]:
    return nullcontext() if below is None else named_by(f"{below}/{place}")


def _require_one_call_for_each_key(tasks: Sequence[NewTask], below: str | None) -> None:
    calls: dict[str, str] = {}
    for place, new in enumerate(tasks):
        for key in new.keys:
            if key.scope == "idem" and calls.setdefault(key.key, new.arguments) != new.arguments:
                with _at(below, place):
                    raise Problem(
                        422,
                        "Idempotency key was used",
                        f"one idempotency key stands for two calls of task {new.name}; nothing was written",
                    )


async def _existing(app: App, caller: Caller, tasks: Sequence[NewTask], below: str | None) -> dict[int, TaskRecord]:
    """By their places, those that another task answers for. Raises Problem and DuplicateTask; nothing is written."""
    keys = [key for new in tasks for key in new.keys]
    if not keys:
        return {}
    held = await app.engine.run(lambda store: store.key_holders(keys))
    ids = sorted(set(held.values()))
    found = await app.engine.follow(lambda ledger: ledger.get(ids)) if ids else {}
    existing: dict[int, TaskRecord] = {}
    for place, new in enumerate(tasks):
        # In the order in which the store goes by them.
        for key in sorted(new.keys, key=lambda key: (key.scope, key.key)):
            holder = held.get((key.scope, key.key))
            if holder is None or key.on_conflict == "replace":
                continue
            with _at(below, place):
                existing[place] = _of_theirs(caller, new, key, holder, found.get(holder))
            break
    return existing


def _of_theirs(caller: Caller, new: NewTask, key: Key, holder: int, record: TaskRecord | None) -> TaskRecord:
    if record is None or not caller.may_see(record.owner):
        raise _held()
    if key.on_conflict == "reject":
        raise DuplicateTask(key.key, holder)
    if any(key.scope == "idem" for key in new.keys) and (record.name, record.arguments) != (new.name, new.arguments):
        raise Problem(
            422,
            "Idempotency key was used",
            f"the idempotency key was used for task {record.id}, which was called otherwise; nothing was written",
        )
    return record


def _refusing(new: NewTask) -> NewTask:
    if not new.keys:
        return new
    keys = (key if key.on_conflict == "replace" else dataclasses.replace(key, on_conflict="reject") for key in new.keys)
    return dataclasses.replace(new, keys=tuple(keys))


async def _answered(app: App, tasks: Sequence[NewTask], answers: Sequence[Enqueued]) -> list[Submitted]:
    """They are written: nothing is refused from here on."""
    # Twice in one call, or put in the place of another.
    ids = sorted({answer.id for answer in answers if not answer.created})
    found = await app.engine.follow(lambda ledger: ledger.get(ids)) if ids else {}
    return [
        _made(new, answer) if answer.created or answer.id not in found else _shown(found[answer.id])
        for new, answer in zip(tasks, answers, strict=True)
    ]


def _made(new: NewTask, answer: Enqueued) -> Submitted:
    state = TaskState.PENDING_APPROVAL if new.approval else TaskState.PENDING
    return Submitted(id=answer.id, name=new.name, queue=new.queue, state=state, created=answer.created)


def _shown(record: TaskRecord) -> Submitted:
    return Submitted(id=record.id, name=record.name, queue=record.queue, state=record.state, created=False)


def _held() -> Problem:
    """Not even its id: that another's task holds the key is all there is to know."""
    return Problem(409, "Key is held", "a key is held by another's task; nothing was written")


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
            found[name] = value if isinstance(value, bool) else _literal(value)
    if key is not None and given.idempotency_key not in (None, key):
        raise Problem(422, "Two keys", "the header Idempotency-Key and idempotency_key say different things")
    if (idempotency := key or given.idempotency_key) is not None:
        found["idempotency_key"] = own_key(caller, idempotency)
    return cast("OptionArguments", found)


def own_key(caller: Caller, key: str) -> str:
    """Keys of two callers never meet."""
    return _literal(f"{caller.name}/{key}")


def _literal(key: str) -> str:
    """In code a key is a template over the arguments; whoever sends one could read anything with it."""
    return key.replace("{", "{{").replace("}", "}}")
