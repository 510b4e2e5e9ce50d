"""`assert_enqueued` and its kin: what is in the ledger, by task, arguments and options, with failures that explain.

Every task counts, whatever became of it since: it may wait, or have run. Nothing here is redacted: it is a test that
asks, about its own data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from headrace.client.bridge import run_blocking
from headrace.client.task import Task
from headrace.core import payload
from headrace.core.errors import ArgumentError, PayloadError
from headrace.core.states import TaskState
from headrace.core.task import TaskFilter, TaskRecord
from headrace.testing.application import TestedApp
from headrace.testing.running import listed

_SHOWN = 10
_TOLERANCE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueuedTask:
    """One task of the ledger as a test wants to see it."""

    id: int
    name: str
    arguments: Mapping[str, Any]  # by parameter, typed as the task would get them; extra positional ones under "*"
    queue: str
    priority: int
    state: TaskState
    run_at: datetime  # from when on it may run
    created_at: datetime
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    record: TaskRecord = field(repr=False)

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        more = f", priority {self.priority}" if self.priority else ""
        delay = self.run_at - self.created_at
        later = f", to run after {delay}" if delay > _TOLERANCE and not self.record.claim_no else ""
        return f"{self.name}({given}) in queue {self.queue!r}{more}{later}: {self.state}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is looked for; None where anything will do."""

    name: str | None
    arguments: Mapping[str, Any]
    options: Mapping[str, Any]  # queue, priority, tags, metadata
    states: tuple[TaskState, ...]
    run_after: timedelta | None
    run_at: datetime | None
    within: timedelta

    def differences(self, task: EnqueuedTask) -> list[str]:
        """What is not as wanted, apart from the name."""
        found: list[str] = []
        for name, value in self.arguments.items():
            if name not in task.arguments:
                found.append(f"{name} was not given, wanted {value!r}")
            elif not _same(value, task.arguments[name]):
                found.append(f"{name} is {task.arguments[name]!r}, wanted {value!r}")
        for name, value in self.options.items():
            if not _same(value, getattr(task, name)) and not (name == "tags" and set(value) <= set(task.tags)):
                found.append(f"{name} is {getattr(task, name)!r}, wanted {value!r}")
        if self.states and task.state not in self.states:
            found.append(f"state is {task.state}, wanted {' or '.join(self.states)}")
        if self.run_after is not None and abs(task.run_at - task.created_at - self.run_after) > self.within:
            found.append(f"it runs after {task.run_at - task.created_at}, wanted {self.run_after}")
        if self.run_at is not None and abs(task.run_at - self.run_at) > self.within:
            found.append(f"it runs at {task.run_at.isoformat()}, wanted {self.run_at.isoformat()}")
        return found

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        more = [f"{name}={value!r}" for name, value in self.options.items()]
        if self.states:
            more.append(f"state={' or '.join(self.states)}")
        if self.run_after is not None:
            more.append(f"run_after={self.run_after}")
        if self.run_at is not None:
            more.append(f"run_at={self.run_at.isoformat()}")
        call = f"{self.name or 'any task'}({given}{', …' if given else '…'})"
        return f"{call} with {', '.join(more)}" if more else call


def all_enqueued(
    app: TestedApp,
    task: Task[..., Any] | str | None = None,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    priority: int | None = None,
    tags: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    state: TaskState | str | Sequence[TaskState | str] | None = None,
    run_after: timedelta | None = None,
    run_at: datetime | None = None,
    within: timedelta = _TOLERANCE,
) -> list[EnqueuedTask]:
    """Every task of the ledger that fits, in the order in which they were enqueued. From sync and from async code.

    `task` is a task or a name. `args` and `kwargs` name those arguments that matter, and a mapping in `kwargs` or
    `metadata` those of its keys that do; `tags` are among those of the task. `run_after` (from the enqueue) and
    `run_at` may differ by `within`.
    """
    wanted = _wanted(app, task, args, kwargs, queue, priority, tags, metadata, state, run_after, run_at, within)
    return [found for found in _enqueued(app, wanted.name) if not wanted.differences(found)]


def assert_enqueued(
    app: TestedApp,
    task: Task[..., Any] | str | None = None,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    priority: int | None = None,
    tags: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    state: TaskState | str | Sequence[TaskState | str] | None = None,
    run_after: timedelta | None = None,
    run_at: datetime | None = None,
    within: timedelta = _TOLERANCE,
    count: int | None = None,
) -> list[EnqueuedTask]:
    """AssertionError unless such a task was enqueued, exactly `count` times where that is given; gives those found.

    What is asked is told as in `all_enqueued`. A failure says what came nearest, and what was enqueued instead.
    """
    wanted = _wanted(app, task, args, kwargs, queue, priority, tags, metadata, state, run_after, run_at, within)
    everything = _enqueued(app, None)
    found = [each for each in everything if _named(wanted, each) and not wanted.differences(each)]
    if (found and count is None) or len(found) == count:
        return found
    times = "" if count is None else f" {count} times, but {len(found)} times"
    raise AssertionError(f"{wanted} was not enqueued{times}\n{_instead(wanted, found, everything)}")


def assert_not_enqueued(
    app: TestedApp,
    task: Task[..., Any] | str | None = None,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    priority: int | None = None,
    tags: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    state: TaskState | str | Sequence[TaskState | str] | None = None,
    run_after: timedelta | None = None,
    run_at: datetime | None = None,
    within: timedelta = _TOLERANCE,
) -> None:
    """AssertionError if such a task was enqueued; asked as in `all_enqueued`. Without anything: that none was."""
    wanted = _wanted(app, task, args, kwargs, queue, priority, tags, metadata, state, run_after, run_at, within)
    found = [each for each in _enqueued(app, wanted.name) if not wanted.differences(each)]
    if found:
        raise AssertionError(f"{wanted} was enqueued\n{_listed('it was:', found)}")


refute_enqueued = assert_not_enqueued


def _wanted(
    app: TestedApp,
    task: Task[..., Any] | str | None,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    queue: str | None,
    priority: int | None,
    tags: Sequence[str] | None,
    metadata: Mapping[str, Any] | None,
    state: TaskState | str | Sequence[TaskState | str] | None,
    run_after: timedelta | None,
    run_at: datetime | None,
    within: timedelta,
) -> _Wanted:
    name = task.name if isinstance(task, Task) else task
    defined = None if name is None else _defined(app, name)
    if defined is not None:
        name = defined.name  # of an alias
    options = {"queue": queue, "priority": priority, "tags": tags, "metadata": metadata}
    states = () if state is None else (state,) if isinstance(state, str) else state
    return _Wanted(
        name=name,
        arguments=_arguments(defined, args, kwargs or {}),
        options={option: value for option, value in options.items() if value is not None},
        states=tuple(TaskState(each) for each in states),
        run_after=run_after,
        run_at=run_at,
        within=within,
    )


def _arguments(defined: Task[..., Any] | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """By name. A parameter that the task does not have is a mistake of the test, not an absence."""
    if defined is None:
        if args:
            raise ArgumentError("args needs a task of this app, whose parameters they are; give kwargs instead")
        return dict(kwargs)
    return defined.arguments.named(args, kwargs)


def _defined(app: TestedApp, name: str) -> Task[..., Any] | None:
    return next((task for task in app.registry.values() if name == task.name or name in task.aliases), None)


def _enqueued(app: TestedApp, name: str | None) -> list[EnqueuedTask]:
    criteria = TaskFilter(names=() if name is None else (name,))
    # A moment, so that a test on a running loop can ask, too.
    records = run_blocking("a moment", listed(app, criteria, may_block=True))
    return [_seen(app, record) for record in records]


def _seen(app: TestedApp, record: TaskRecord) -> EnqueuedTask:
    options = cast("dict[str, Any]", payload.loads(record.options))
    return EnqueuedTask(
        id=record.id,
        name=record.name,
        arguments=_loaded(app, record),
        queue=record.queue,
        priority=record.priority,
        state=record.state,
        run_at=record.eligible_at,
        created_at=record.created_at,
        tags=tuple(options.get("tags") or ()),
        metadata=options.get("metadata") or {},
        record=record,
    )


def _loaded(app: TestedApp, record: TaskRecord) -> dict[str, Any]:
    """Typed where the app has the task, and the text fits its signature; else as JSON has them."""
    text = app.engine.codecs.get(record.codec).decode(record.arguments)
    task = _defined(app, record.name)
    try:
        return payload.loads(text) if task is None else task.arguments.named(*task.load_arguments(text))
    except (ArgumentError, PayloadError):
        return payload.loads(text)


def _same(wanted: Any, found: Any) -> bool:
    """Equal, or the same as JSON; of a mapping only what is wanted of it is looked at."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        some, whole = cast("Mapping[Any, Any]", wanted), cast("Mapping[Any, Any]", found)
        return all(key in whole and _same(value, whole[key]) for key, value in some.items())
    one, other = cast("object", wanted), cast("object", found)
    if bool(one == other):
        return True
    try:
        return payload.dumps(one) == payload.dumps(other)
    except PayloadError:
        return False


def _named(wanted: _Wanted, task: EnqueuedTask) -> bool:
    return wanted.name is None or wanted.name == task.name


def _instead(wanted: _Wanted, found: Sequence[EnqueuedTask], everything: Sequence[EnqueuedTask]) -> str:
    if found:
        return _listed("those that fit:", found)
    if not everything:
        return "nothing was enqueued: is the app pointed to the database of this test, and the transaction committed?"
    same_name = [task for task in everything if _named(wanted, task)]
    if not same_name:
        return _listed(f"no task {wanted.name!r} was enqueued; what was:", everything)
    nearest = min(same_name, key=lambda task: (len(wanted.differences(task)), -task.id))
    differences = "".join(f"\n    {difference}" for difference in wanted.differences(nearest))
    return f"nearest: {nearest}{differences}\n{_listed('all that was enqueued:', everything)}"


def _listed(heading: str, tasks: Sequence[EnqueuedTask]) -> str:
    lines = [heading, *(f"  {task}" for task in tasks[:_SHOWN])]
    if len(tasks) > _SHOWN:
        lines.append(f"  … and {len(tasks) - _SHOWN} more")
    return "\n".join(lines)
