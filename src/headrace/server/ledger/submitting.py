"""What an app over HTTP enqueues: held to what the server's own app declares, as if it had been asked for by name."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from headrace.app import App
from headrace.client.preparing import merged_gates
from headrace.client.task import Task
from headrace.core.errors import DuplicateTask, MovedAway, PayloadError, UnknownTask
from headrace.core.limits import Gate
from headrace.core.payload import dumps, loads
from headrace.core.task import Enqueued, Key, NewTask
from headrace.server.auth.approving import is_free, needs_approval, of_workflows
from headrace.server.auth.caller import Caller
from headrace.server.problems import Problem


def submitted(app: App, caller: Caller, task: NewTask) -> NewTask:
    """In the caller's name; the word of the client does not count. Raises Problem(403, 422) and UnknownTask."""
    options = _options(task)
    declared = None if options.get("entrypoint") else _declared(app, task.name)
    if declared is not None and (role := declared.options.approval) is not None:
        options["approval"] = {"role": role.value}
    # Written anew: from here on a word that is searched in the text is found, however the client wrote it.
    made = dataclasses.replace(task, options=dumps(options), owner=caller.owns_as)
    values = None
    if declared is not None and not is_free(made):
        values = _arguments(app, made, declared, options)
    if not caller.controls_all:
        made = _held_to(caller, made, declared, values)
    return dataclasses.replace(made, approval=task.approval or needs_approval(caller, made))


def scheduled(app: App, caller: Caller, task: NewTask) -> NewTask:
    """What a schedule enqueues is nobody's, and waits for nobody: it must be the caller's to run directly."""
    made = submitted(app, caller, task)
    if needs_approval(caller, made):
        raise Problem(403, "Forbidden", f"task {task.name!r} needs approval, and a fire of a schedule waits for nobody")
    return dataclasses.replace(task, options=made.options, owner=None)


def _held_to(
    caller: Caller, task: NewTask, declared: Task[..., Any] | None, values: Mapping[str, Any] | None
) -> NewTask:
    if any(key.on_conflict == "replace" for key in task.keys):
        raise Problem(403, "Forbidden", "to replace a task that holds a key is for operators: it may be another's")
    keys = tuple(_own_key(caller, task.name, key) for key in task.keys)
    if is_free(task):  # waits for somebody who looks at it
        return dataclasses.replace(task, keys=keys)
    if declared is not None:
        gates = _gates(task, declared, values)
        return dataclasses.replace(task, kind="function", pool=declared.pool, keys=keys, gates=gates)
    if not of_workflows(task):
        raise UnknownTask(f"no task {task.name!r} is defined on the server's app; ask its operator to load it there")
    return dataclasses.replace(task, keys=keys)


def _arguments(
    app: App, task: NewTask, declared: Task[..., Any], options: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Its arguments, checked as its worker would; None where this process has not the codec that wrote them, and the
    worker is the first who can read them. Raises ArgumentError, and Problem(422)."""
    codec = app.codecs.codecs.get(task.codec)
    if codec is None or "event" in options:
        return None
    try:
        text = codec.decode(task.arguments)
    except Exception as error:  # a codec is the user's own
        raise Problem(422, "Unprocessable arguments", f"task {task.name}: its codec cannot read them") from error
    return declared.arguments.check(text, _filled(task, options))


def _filled(task: NewTask, options: Mapping[str, Any]) -> frozenset[str]:
    """The arguments that results of other tasks will give, or complete."""
    try:
        places = [spec["at"] for spec in options.get("inputs", ())]
        return frozenset(place if isinstance(place, str) else place[0] for place in places)
    except (TypeError, LookupError):
        raise Problem(422, "Unprocessable arguments", f"the inputs of {task.name!r} name no places") from None


def _gates(task: NewTask, declared: Task[..., Any], values: Mapping[str, Any] | None) -> tuple[Gate, ...]:
    """Those that are declared here, whatever was left out; whoever wants to be held to more may. An order key is the
    caller's to choose, as over REST."""
    here = declared if task.queue == declared.options.queue else declared.using(queue=task.queue)
    try:
        wanted = here.gates({} if values is None else values)
    except Exception:
        if values is not None:
            raise
        raise Problem(
            422,
            "Unprocessable arguments",
            f"the limits of task {task.name} go by its arguments, and the server has not the codec {task.codec!r} to "
            "read them; give its app that codec",
        ) from None
    if any(gate.kind == "order" for gate in task.gates):
        wanted = tuple(gate for gate in wanted if gate.kind != "order")
    places = {(gate.kind, gate.key) for gate in wanted}
    return merged_gates(wanted, tuple(gate for gate in task.gates if (gate.kind, gate.key) not in places))


def _own_key(caller: Caller, name: str, key: Key) -> Key:
    """The same as for an Idempotency-Key: keys of two callers never meet."""
    if key.scope != "idem":
        return key
    return dataclasses.replace(key, key=f"{name}:{caller.name}/{key.key.removeprefix(f'{name}:')}")


def _declared(app: App, name: str) -> Task[..., Any] | None:
    try:
        return app.get_task(name)  # by an alias, too
    except UnknownTask:
        return None


def _options(task: NewTask) -> dict[str, Any]:
    try:
        options = loads(task.options)
    except PayloadError:
        options = None
    if not isinstance(options, dict):
        raise Problem(422, "Unprocessable arguments", f"the options of {task.name!r} are no JSON object")
    found = cast("dict[str, Any]", options)
    asked = found.get("approval", {})
    if not isinstance(asked, dict) or not isinstance(cast("dict[str, Any]", asked).get("role", ""), str):
        raise Problem(422, "Unprocessable arguments", f"the approval that {task.name!r} asks for names no role")
    return found


async def must_be_told(app: App, caller: Caller, answers: Sequence[Enqueued]) -> None:
    """Raises Problem(409) where a key is held by what the caller must not know of."""
    await _check_holders(app, caller, [answer.id for answer in answers if not answer.created], written=True)


async def refused(app: App, caller: Caller, error: DuplicateTask | MovedAway) -> None:
    await _check_holders(app, caller, [error.task_id], written=False)


async def _check_holders(app: App, caller: Caller, holders: Iterable[int], *, written: bool) -> None:
    ids = list(holders)
    if caller.sees_all or not ids:
        return
    found = await app.engine.follow(lambda ledger: ledger.get(ids))
    if all(id in found and caller.may_see(found[id].owner) for id in ids):
        return
    rest = "whatever else was in the call is written" if written else "nothing was written"
    # Not even its id: that another's task holds the key is all there is to know.
    raise Problem(409, "Key is held", f"a key is held by another's task; {rest}", error="EnqueueError")
