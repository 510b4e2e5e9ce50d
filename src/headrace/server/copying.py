"""A task once more, as a new one: with its stored call, or with what is given in place of it."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from headrace.app import App
from headrace.client.options import OptionArguments
from headrace.core.errors import HeadraceError
from headrace.core.payload import loads
from headrace.core.retry import Retry
from headrace.core.task import NewTask, TaskRecord
from headrace.server.lives import REENQUEUED_FROM
from headrace.server.models.tasks import Command, Reenqueue
from headrace.server.problems import Problem
from headrace.telemetry.redaction import REDACTED

_REST = "*"
_SENT = ("queue", "priority", "timeout", "soft_timeout", "max_age", "result_ttl", "tags")


def copied(app: App, record: TaskRecord, given: Reenqueue) -> NewTask:
    """Checked like any call; nothing is written. Problem(422); raises what `enqueue` raises."""
    options = _options(record, given)
    if record.kind == "command":
        return _command(app, record, given, options)
    if given.command is not None:
        raise Problem(422, "Bad copy", f"task {record.id} is no command: it has arguments")
    args, kwargs = _call(app, record, given)
    return app.get_task(record.name).using(**options).prepare(*args, **kwargs)


def _command(app: App, record: TaskRecord, given: Reenqueue, options: OptionArguments) -> NewTask:
    if given.args is not None or given.kwargs is not None or given.keep is not None:
        raise Problem(422, "Bad copy", f"task {record.id} is a command: give `command` in place of arguments")
    if given.command is not None:
        _refuse_redacted(given.command.model_dump())
    command = given.command or Command.model_validate(loads(record.arguments))
    return app.commands.prepare(command.argv, env=command.env, cwd=command.cwd, stdin=command.stdin, **options)


def _call(app: App, record: TaskRecord, given: Reenqueue) -> tuple[list[Any], dict[str, Any]]:
    anew = given.args is not None or given.kwargs is not None or given.keep is not None
    _refuse_redacted({"args": given.args or [], "kwargs": given.kwargs or {}})
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
    found |= {name: value for name in _SENT if (value := getattr(given, name)) is not None}
    if (when := given.run_at if given.delay is None else given.delay) is not None:
        found["run_after"] = when
    metadata = _metadata(stored.get("metadata") or {}, given.metadata)
    return cast("OptionArguments", {**found, "metadata": {**metadata, REENQUEUED_FROM: record.id}})


def _metadata(stored: Mapping[str, Any], given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if given is None:
        return stored
    _refuse_redacted({"metadata": dict(given)})
    return given


def _refuse_redacted(value: Any) -> None:
    """Whoever sends back what they were shown would run the task with the mark in place of its secret."""
    place = next(_redacted(value, ""), None)
    if place is not None:
        raise Problem(
            422,
            "Bad copy",
            f"{place} is {REDACTED!r}, which stands for a secret that is not shown: give its value, or name the "
            "argument in `keep` to take it as it was",
            pointer=place,
        )


def _redacted(value: Any, pointer: str) -> Iterator[str]:
    match value:
        case str():
            if REDACTED in value:
                yield pointer
        case dict():
            for name, each in cast("dict[str, Any]", value).items():
                yield from _redacted(each, f"{pointer}/{name}")
        case list():
            for place, each in enumerate(cast("list[Any]", value)):
                yield from _redacted(each, f"{pointer}/{place}")
        case _:
            pass
