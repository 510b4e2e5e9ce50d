"""A task once more, as a new one: with its stored call, or with what is given in place of it."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from headrace.app import App
from headrace.client.options import ExecutorName, OptionArguments
from headrace.client.task import Task
from headrace.core.errors import HeadraceError
from headrace.core.limits import Gate
from headrace.core.payload import dumps, loads
from headrace.core.retry import Retry
from headrace.core.task import NewTask, Pool, TaskRecord
from headrace.server.lives import REENQUEUED_FROM
from headrace.server.models.tasks import Command, Reenqueue
from headrace.server.problems import Problem
from headrace.server.withheld import refuse_redacted

_REST = "*"
_SENT = ("queue", "priority", "timeout", "soft_timeout", "max_age", "result_ttl", "tags")


def copied(
    app: App, record: TaskRecord, given: Reenqueue, *, gates: Sequence[Gate] | None, key: str | None = None
) -> NewTask:
    """Checked like any call; nothing is written. Problem(422); raises what `enqueue` raises.

    `gates` are those of the task, None where they are not known; `key` is an idempotency key of the copy.
    """
    options = _options(record, given)
    if key is not None:
        options["idempotency_key"] = key
    if record.kind == "command":
        new = _command(app, record, given, options)
    elif given.command is not None:
        raise Problem(422, "Bad copy", f"task {record.id} is no command: it has arguments")
    else:
        args, kwargs = _call(app, record, given)
        task = app.get_task(record.name).using(**options)
        if record.pool != task.pool and _runs_in(task, record.pool):
            task = task.using(executor=cast("ExecutorName", record.pool))
        new = task.prepare(*args, **kwargs)
    if gates is not None:
        new = dataclasses.replace(new, gates=_gates(new.gates, gates, _declared(app, record)))
    return _labelled(new, record)


def _runs_in(task: Task[..., Any], pool: Pool) -> bool:
    """Not where its code has become another kind of function since."""
    return pool == "child" or pool == ("coroutine" if task.is_async else "thread")


def _gates(new: Iterable[Gate], stored: Sequence[Gate], declared: Sequence[Gate]) -> tuple[Gate, ...]:
    """Those that the copy has by its declaration and its queue, as the call that is copied had changed them: with what
    it had besides, and without what it had left out."""
    left_out = [gate for gate in declared if gate not in stored]
    found = {(gate.kind, gate.key): gate for gate in new if gate not in left_out}
    found |= {(gate.kind, gate.key): gate for gate in stored if gate not in declared}
    return tuple(found[place] for place in sorted(found))


def _declared(app: App, record: TaskRecord) -> tuple[Gate, ...]:
    """What a call with these arguments has by itself."""
    try:
        if record.kind == "command":
            return app.commands.prepare(["true"], queue=record.queue).gates
        stored = _stored(app, record)
        rest = cast("list[Any]", stored.pop(_REST, []))
        return app.get_task(record.name).using(queue=record.queue).prepare(*rest, **stored).gates
    except (HeadraceError, Problem):  # it cannot be read any more, or called so
        return ()


def _labelled(new: NewTask, record: TaskRecord) -> NewTask:
    label = loads(record.options).get("label") if '"label"' in record.options else None
    return new if label is None else dataclasses.replace(new, options=dumps({**loads(new.options), "label": label}))


def _command(app: App, record: TaskRecord, given: Reenqueue, options: OptionArguments) -> NewTask:
    if given.args is not None or given.kwargs is not None or given.keep is not None:
        raise Problem(422, "Bad copy", f"task {record.id} is a command: give `command` in place of arguments")
    if given.command is not None:
        refuse_redacted(given.command.model_dump())
    command = given.command or Command.model_validate(loads(record.arguments))
    return app.commands.prepare(command.argv, env=command.env, cwd=command.cwd, stdin=command.stdin, **options)


def _call(app: App, record: TaskRecord, given: Reenqueue) -> tuple[list[Any], dict[str, Any]]:
    anew = given.args is not None or given.kwargs is not None or given.keep is not None
    refuse_redacted({"args": given.args or [], "kwargs": given.kwargs or {}})
    stored = {} if anew and not given.keep else _stored(app, record)
    if not anew:
        rest = cast("list[Any]", stored.pop(_REST, []))
        return rest, stored
    if unknown := sorted(set(given.keep or ()) - set(stored)):
        raise Problem(422, "Bad copy", f"task {record.id} was not given {unknown[0]!r}, so it cannot be kept")
    kept = {name: stored[name] for name in given.keep or ()}
    rest = cast("list[Any]", kept.pop(_REST, []))
    if twice := sorted(set(kept) & set(given.kwargs or {})):
        raise Problem(422, "Bad copy", f"{twice[0]!r} is given, and kept as well")
    return [*(given.args or ()), *rest], {**(given.kwargs or {}), **kept}


def _stored(app: App, record: TaskRecord) -> dict[str, Any]:
    try:
        return dict(loads(app.codecs.get(record.codec).decode(record.arguments)))
    except (HeadraceError, ValueError):
        raise Problem(
            422, "Bad copy", f"the arguments of task {record.id} cannot be read here: give all of them anew"
        ) from None


def _options(record: TaskRecord, given: Reenqueue) -> OptionArguments:
    """What was given, over what the task has."""
    stored = cast("dict[str, Any]", loads(record.options))
    found: dict[str, Any] = {"queue": record.queue, "priority": record.priority, "critical": record.critical}
    # Both, in one go: one that is set alone takes the other away.
    found |= {name: stored.get(name) for name in ("timeout", "soft_timeout")}
    if "result_ttl" in stored:
        found["result_ttl"] = stored["result_ttl"]
    if record.expires_at is not None:
        found["max_age"] = max(0.0, (record.expires_at - record.enqueued_at).total_seconds())
    if "retry" in stored:
        found["retry"] = Retry.from_dict(stored["retry"])
    if stored.get("tags"):
        found["tags"] = stored["tags"]
    found |= stored.get("resources") or {}
    found |= {name: value for name in _SENT if (value := getattr(given, name)) is not None}
    if (when := given.run_at if given.delay is None else given.delay) is not None:
        found["run_after"] = when
    metadata = _metadata(stored.get("metadata") or {}, given.metadata)
    return cast("OptionArguments", {**found, "metadata": {**metadata, REENQUEUED_FROM: record.id}})


def _metadata(stored: Mapping[str, Any], given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if given is None:
        return stored
    refuse_redacted({"metadata": dict(given)})
    return given
