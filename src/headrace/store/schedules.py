"""What both stores decide alike about schedules: what a put changes, what a row says, what became of a run."""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson

from headrace.core.errors import NotFound, PayloadError, WrongState
from headrace.core.schedule import Fire, NewSchedule, RunStatus, ScheduleRecord
from headrace.core.states import HELD, TERMINAL, TaskState
from headrace.core.task import Enqueued, NewTask
from headrace.store.hooks import new_task_from_json, new_task_to_json

_logger = logging.getLogger("headrace.store")

# Of a schedule whose task this code cannot read: a name that no function has.
UNREADABLE = "(unreadable)"

_NOT_READ = (ValueError, TypeError, KeyError, AttributeError)

_SAID = ("cadence", "task", "catch_up", "grace", "overlap", "jitter")


class Stored(NamedTuple):
    """A row: the record, and the digest of what the code declared last."""

    record: ScheduleRecord
    declaration: str | None


def digest(schedule: NewSchedule) -> str:
    """What a declaration says, so short that it can be compared. Options that a later version adds change nothing."""
    said = {name: getattr(schedule, name) for name in _SAID if name != "task"}
    task = {
        f.name: value for f in fields(schedule.task) if (value := getattr(schedule.task, f.name)) != _default(f.default)
    }
    text = orjson.dumps([said, task], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()


def _default(default: object) -> object:
    return None if default is MISSING else default


@dataclass(slots=True)
class Changes:
    """What a call comes to. The ids of what is made are 0 until the store has taken them."""

    made: dict[str, Stored] = field(default_factory=dict[str, Stored])
    changed: dict[str, Stored] = field(default_factory=dict[str, Stored])
    removed: dict[str, int] = field(default_factory=dict[str, int])

    def __bool__(self) -> bool:
        return bool(self.made or self.changed or self.removed)

    def note(self, name: str, before: Stored | None, after: Stored) -> None:
        if after is before:
            return
        (self.made if before is None or name in self.made else self.changed)[name] = after


def put(found: Mapping[str, Stored], schedules: Sequence[NewSchedule], now: datetime) -> Changes:
    """`found` has the rows of these names."""
    changes, standing = Changes(), dict(found)
    for new in schedules:
        before = standing.get(new.name)
        _check_expected(new, before)
        if before is None:
            after = _made(new, now, declaration=None if new.declared_by is None else digest(new))
        else:
            after = _changed(before, new, now)
        changes.note(new.name, before, after)
        standing[new.name] = after
    return changes


def _check_expected(new: NewSchedule, before: Stored | None) -> None:
    revision = 0 if before is None else before.record.revision
    if new.expected is None or new.expected == revision:
        return
    if new.expected == 0:
        raise WrongState(
            f"there is a schedule {new.name} already; change it with app.schedules.set(…), remove it, or give this one "
            "another name: Schedule(…, name=…)"
        )
    became = "changed" if revision else "removed"
    raise WrongState(f"schedule {new.name} was {became} by somebody else meanwhile; look at it and try again")


def declare(found: Mapping[str, Stored], declared_by: str, schedules: Sequence[NewSchedule], now: datetime) -> Changes:
    """`found` has the rows of these names, and all that this app declared before."""
    changes, standing = Changes(), dict(found)
    for new in schedules:
        before, declaration = standing.get(new.name), digest(new)
        if before is None:
            after = _made(replace(new, declared_by=declared_by), now, declaration=declaration)
        else:
            _check_owner(before.record, declared_by)
            if before.declaration == declaration:
                after = _taken_up(before, now)
            else:
                after = _changed(before, new, now)._replace(declaration=declaration)
        changes.note(new.name, before, after)
        standing[new.name] = after
    names = {new.name for new in schedules}
    changes.removed = {
        name: row.record.id
        for name, row in found.items()
        if name not in names and row.record.declared_by == declared_by
    }
    return changes


def tell(declared_by: str, changes: Changes) -> None:
    """An older version that starts late takes back what a newer one declared: nobody should have to guess that."""
    for names, what in ((changes.changed, "changed"), (changes.removed, "removed")):
        if names:
            listed = ", ".join(sorted(names))
            _logger.warning("the declaration of %s %s schedules that were there: %s", declared_by, what, listed)


def _check_owner(record: ScheduleRecord, declared_by: str) -> None:
    if record.declared_by == declared_by:
        return
    owner = "made at run time" if record.declared_by is None else f"declared by the app {record.declared_by!r}"
    raise WrongState(
        f"schedule {record.name!r} was {owner}, and the code of {declared_by!r} declares it as well; no schedule was "
        "changed: give one of them another name, or remove the other first"
    )


def _made(new: NewSchedule, now: datetime, *, declaration: str | None) -> Stored:
    record = ScheduleRecord(
        id=0,
        name=new.name,
        cadence=new.cadence,
        task=new.task,
        catch_up=new.catch_up,
        grace=new.grace,
        overlap=new.overlap,
        jitter=new.jitter,
        paused=new.paused,
        declared_by=new.declared_by,
        revision=1,
        cursor=now,
        next_at=now,
        problem=None,
        created_at=now,
        changed_at=now,
    )
    return Stored(record, declaration)


def _changed(before: Stored, new: NewSchedule, now: datetime) -> Stored:
    record = before.record
    if all(getattr(record, name) == getattr(new, name) for name in _SAID):
        return _taken_up(before, now)
    changes: dict[str, Any] = {name: getattr(new, name) for name in _SAID}
    if record.cadence != new.cadence:
        changes |= {"cursor": now, "next_at": now}
    elif record.problem is not None:
        changes |= {"next_at": now}
    changes |= {"problem": None, "changed_at": now, "revision": record.revision + 1}
    return before._replace(record=replace(record, **changes))


def _taken_up(before: Stored, now: datetime) -> Stored:
    """It says what is there already: whoever refused it may have another try. What this version cannot read it does not
    write either."""
    if before.record.problem is None or before.record.task.name == UNREADABLE:
        return before
    record = replace(before.record, problem=None, next_at=now, changed_at=now, revision=before.record.revision + 1)
    return before._replace(record=record)


# Rows.

COLUMNS = (*(f.name for f in fields(ScheduleRecord)), "declaration")


def stored(values: Mapping[str, Any]) -> Stored:
    """Of a row, its instants as datetimes. What cannot be read of it must not keep others from being read."""
    parts = {name: values[name] for name in COLUMNS if name != "declaration"}
    parts["paused"] = bool(parts["paused"])
    try:
        parts["task"] = new_task_from_json(values["task"])
    except _NOT_READ as error:
        parts["task"] = NewTask(name=UNREADABLE)
        # Of this process alone: the row says nothing of it, since a newer version may well read it.
        parts["problem"] = parts["problem"] or _unreadable(error)
    return Stored(ScheduleRecord(**parts), values["declaration"])


class Unreadable(Exception):
    """The template of a schedule, by this version."""


def template(text: str) -> NewTask:
    """What a fire enqueues. Unreadable."""
    try:
        return new_task_from_json(text)
    except _NOT_READ as error:
        raise Unreadable(_unreadable(error)) from error


def _unreadable(error: Exception) -> str:
    return (
        f"its task cannot be read by this version ({type(error).__name__}: {error}); schedulers of a newer version "
        "fire it, or write it anew"
    )


def row(values: Stored) -> dict[str, Any]:
    """The columns of a row by name, its instants as datetimes."""
    parts = {name: getattr(values.record, name) for name in COLUMNS if name != "declaration"}
    try:
        task = new_task_to_json(values.record.task, defaults=False)
    except (TypeError, ValueError) as error:
        raise PayloadError(f"schedule {values.record.name!r}: its task cannot be stored: {error}") from error
    return {**parts, "task": task, "declaration": values.declaration}


# What is said.


def unknown(name: str) -> NotFound:
    return NotFound(f"no schedule {name!r}; `headrace schedules list` shows those that there are")


def refused(error: Exception) -> str:
    return f"its task cannot be enqueued: {type(error).__name__}: {error}; write it anew"


def not_run(record: ScheduleRecord) -> WrongState:
    return WrongState(
        f"schedule {record.name!r} was not run: the key of its task is held by an unfinished one; "
        "wait for it or cancel it"
    )


def check_unchanged(record: ScheduleRecord, expected: tuple[int, int] | None) -> None:
    """`expected` is the id and the revision of what somebody read: by its name another may be found by now."""
    if expected is not None and (record.id, record.revision) != expected:
        raise WrongState(f"schedule {record.name} was changed by somebody else meanwhile; look at it and try again")


def check_runnable(record: ScheduleRecord) -> None:
    """What cannot fire because of its cadence can still be run by hand."""
    if record.task.name == UNREADABLE:
        raise WrongState(f"schedule {record.name!r} was not run: {record.problem}")


# Fires.


def fired_task(template: NewTask, tick: datetime, now: datetime, delay: float = 0.0) -> NewTask:
    """The task of one fire: its delay counts from the tick, and has passed where the tick is noticed late."""
    run_at = tick + timedelta(seconds=template.delay + delay)
    if run_at <= now:
        return replace(template, delay=0.0, run_at=None, job=None)
    return replace(template, delay=(run_at - now).total_seconds(), run_at=run_at, job=None)


def fired_tasks(template: NewTask, fires: Sequence[Fire], now: datetime) -> Iterator[NewTask]:
    return (fired_task(template, fire.tick, now, fire.delay) for fire in fires)


def was_held(template: NewTask, answer: Enqueued) -> bool:
    """Nothing came of it: a key of the task's own is held. With `replace` its holder took the new call over."""
    return not answer.created and all(key.on_conflict != "replace" for key in template.keys)


def status(task: int | None, state: str | None) -> RunStatus:
    """Of a run whose task is in this state, live or done."""
    if task is None:
        return RunStatus.SKIPPED
    if state is None:
        return RunStatus.EXPIRED
    found = TaskState(state)
    if found in HELD:
        return RunStatus.RUNNING
    if found not in TERMINAL:
        return RunStatus.PENDING
    return RunStatus.CANCELLED if found is TaskState.REJECTED else RunStatus(found.value)


def unfinished(states: Sequence[str]) -> tuple[int, int]:
    """How many wait, and how many are in a worker's hands."""
    running = sum(TaskState(state) in HELD for state in states)
    return len(states) - running, running
