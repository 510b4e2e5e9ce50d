"""Schedules: kept by name, due by one index, fired by whoever moves the cursor."""

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import orjson

from headrace.core.errors import DuplicateTask, HeadraceError, NotFound, StoreError, WrongState
from headrace.core.schedule import (
    DueSchedules,
    Fire,
    Fired,
    Firing,
    NewSchedule,
    Overlap,
    RunStatus,
    ScheduleRecord,
    ScheduleRun,
    overlap,
)
from headrace.core.states import Reason
from headrace.core.task import NewTask
from headrace.store import schedules as rules
from headrace.store.hooks import new_task_from_json
from headrace.store.instants import from_micros, to_micros
from headrace.store.sqlite.cancelling import cancel
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.ending import ids_json
from headrace.store.sqlite.enqueueing import enqueue

_INSTANTS = ("cursor", "next_at", "created_at", "changed_at")
# What only another template mends: its data are refused, or cannot be read. The rest is the database's own trouble.
_REFUSED = (HeadraceError, sqlite3.IntegrityError, sqlite3.DataError, ValueError, TypeError, KeyError, OverflowError)
_EVER = 2**63 - 1


def _stored(row: Row) -> rules.Stored:
    values: dict[str, Any] = dict(zip(rules.COLUMNS, row, strict=True))
    for name in _INSTANTS:
        values[name] = None if values[name] is None else from_micros(values[name])
    return rules.stored(values)


def _row(stored: rules.Stored) -> dict[str, Any]:
    values = rules.row(stored)
    for name in _INSTANTS:
        values[name] = None if values[name] is None else to_micros(values[name])
    return values


def _by_name(rows: Iterable[Row]) -> dict[str, rules.Stored]:
    return {stored.record.name: stored for stored in map(_stored, rows)}


def _names(schedules: Sequence[NewSchedule]) -> str:
    return orjson.dumps([schedule.name for schedule in schedules]).decode()


def _named(transaction: Transaction, schedules: Sequence[NewSchedule]) -> dict[str, rules.Stored]:
    return _by_name(transaction.rows("schedules_named", (_names(schedules),)))


def _existing(transaction: Transaction, name: str) -> ScheduleRecord:
    record = get_schedule(transaction, name)
    if record is None:
        raise NotFound(f"no schedule {name!r}; `headrace schedules` lists those that there are")
    return record


def get_schedule(transaction: Transaction, name: str) -> ScheduleRecord | None:
    row = transaction.row("schedules_named", (orjson.dumps([name]).decode(),))
    return None if row is None else _stored(row).record


def _planned_declaration(transaction: Transaction, declared_by: str, schedules: Sequence[NewSchedule]) -> rules.Changes:
    parameters = {"names": _names(schedules), "declared_by": declared_by}
    found = _by_name(transaction.rows("schedules_declared", parameters))
    return rules.declare(found, declared_by, schedules, from_micros(transaction.now))


def _apply(transaction: Transaction, changes: rules.Changes) -> None:
    if changes.made:
        row = transaction.row("take_ids", (len(changes.made),))
        assert row is not None
        first = row[0] - len(changes.made)
        made = changes.made.values()
        transaction.run_many("insert_schedule", [_row(new) | {"id": first + place} for place, new in enumerate(made)])
    transaction.run_many("update_schedule", [_row(changed) for changed in changes.changed.values()])
    if changes.removed:
        transaction.run("remove_schedules", (ids_json(changes.removed),))


def put_schedules(transaction: Transaction, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
    _apply(transaction, rules.put(_named(transaction, schedules), schedules, from_micros(transaction.now)))
    return _in_order(transaction, schedules)


def _in_order(transaction: Transaction, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
    found = _named(transaction, schedules)
    return [found[schedule.name].record for schedule in schedules]


def due_schedules(transaction: Transaction, limit: int) -> DueSchedules:
    now = transaction.now
    rows = transaction.rows("due_schedules", {"now": now, "limit": limit + 1})
    if len(rows) > limit:
        next_in = 0.0
    else:
        row = transaction.row("next_schedule", {"now": now})
        next_in = None if row is None or row[0] is None else (row[0] - now) / 1e6
    due = tuple(_stored(row).record for row in rows[:limit])
    return DueSchedules(now=from_micros(now), due=due, next_in=next_in)


# Fires.


def fire(transaction: Transaction, firings: Sequence[Firing]) -> list[Fired]:
    """Each in a savepoint of its own."""
    fired: list[Fired] = []
    for firing in firings:
        transaction.connection.execute("SAVEPOINT firing")
        try:
            found = _fire_one(transaction, firing)
        except StoreError:
            raise
        except _REFUSED as error:
            transaction.connection.execute("ROLLBACK TO firing")
            problem = f"its task cannot be enqueued: {type(error).__name__}: {error}"
            set_aside(transaction, firing.schedule, firing.revision, problem)
        else:
            fired += found
        transaction.connection.execute("RELEASE firing")
    return fired


def _fire_one(transaction: Transaction, firing: Firing) -> list[Fired]:
    moved = transaction.row(
        "move_cursor",
        {
            "id": firing.schedule,
            "revision": firing.revision,
            "cursor": to_micros(firing.cursor),
            "new_cursor": to_micros(firing.new_cursor),
            "next_at": None if firing.next_at is None else to_micros(firing.next_at),
        },
    )
    if moved is None or not firing.fires:
        return []
    template, policy = new_task_from_json(moved[0]), moved[1]
    new = [fire for fire in firing.fires if not transaction.rows("has_run", (firing.schedule, to_micros(fire.tick)))]
    if policy == "allow" and not template.keys:
        answers = enqueue(transaction, list(rules.fired_tasks(template, new, from_micros(transaction.now))))
        fired = [
            Fired(schedule=firing.schedule, tick=fire.tick, verdict="enqueue", task=answer.id)
            for fire, answer in zip(new, answers, strict=True)
        ]
        for one in fired:
            _write_run(transaction, one)
        return fired
    return [_fire_by_policy(transaction, firing.schedule, template, policy, fire) for fire in new]


def _fire_by_policy(transaction: Transaction, schedule: int, template: NewTask, policy: Overlap, fire: Fire) -> Fired:
    live = {} if policy == "allow" else _unfinished(transaction, schedule)
    waiting, running = rules.unfinished(list(live.values()))
    verdict = overlap(policy, waiting=waiting, running=running)
    id = None
    if verdict != "skip":
        new = rules.fired_task(template, fire.tick, from_micros(transaction.now), fire.delay)
        id = _enqueue_unless_held(transaction, new, replaced=list(live) if verdict == "replace" else ())
    fired = Fired(schedule=schedule, tick=fire.tick, verdict="skip" if id is None else verdict, task=id)
    _write_run(transaction, fired)
    return fired


def _unfinished(transaction: Transaction, schedule: int) -> dict[int, str]:
    """The tasks of its runs that are not over, with their states; the others are not looked at again."""
    rows = transaction.rows("open_runs", (schedule,))
    if over := [task for task, state in rows if state is None]:
        transaction.run("close_runs", {"schedule": schedule, "tasks": ids_json(over)})
    return {task: state for task, state in rows if state is not None}


def _enqueue_unless_held(transaction: Transaction, task: NewTask, *, replaced: Sequence[int] = ()) -> int | None:
    """None where a key of the task's own is held; what it was to replace then goes on as well."""
    transaction.connection.execute("SAVEPOINT one_fire")
    if replaced:
        cancel(transaction, replaced, Reason.REPLACED)
    try:
        (answer,) = enqueue(transaction, [task])
        id = None if rules.was_held(task, answer) else answer.id
    except DuplicateTask:
        id = None
    if id is None:
        transaction.connection.execute("ROLLBACK TO one_fire")
    transaction.connection.execute("RELEASE one_fire")
    return id


def _write_run(transaction: Transaction, fired: Fired, *, manual: bool = False) -> None:
    tick, is_open = to_micros(fired.tick), fired.task is not None
    transaction.run("insert_run_of_schedule", (fired.schedule, tick, manual, fired.task, transaction.now, is_open))


def set_aside(transaction: Transaction, schedule: int, revision: int, problem: str) -> bool:
    parameters = {"id": schedule, "revision": revision, "problem": problem}
    return transaction.run("set_schedule_aside", parameters) == 1


def run_schedule(transaction: Transaction, name: str) -> ScheduleRun:
    record = _existing(transaction, name)
    if record.task.name == rules.UNREADABLE:
        raise WrongState(f"schedule {name!r} cannot be run: {record.problem}")
    row = transaction.row("manual_tick", {"schedule": record.id, "now": transaction.now})
    assert row is not None
    tick = from_micros(row[0])
    task = _enqueue_unless_held(transaction, rules.fired_task(record.task, tick, tick))
    if task is None:
        raise WrongState(f"schedule {name!r} was not run: a task that is unfinished holds the key of its task")
    _write_run(transaction, Fired(schedule=record.id, tick=tick, verdict="enqueue", task=task), manual=True)
    return ScheduleRun(
        schedule=record.id,
        tick=tick,
        manual=True,
        task=task,
        status=RunStatus.PENDING,
        fired_at=from_micros(transaction.now),
    )


def schedule_runs(transaction: Transaction, name: str, limit: int, before: datetime | None) -> list[ScheduleRun]:
    schedule = _existing(transaction, name).id
    until = _EVER if before is None else to_micros(before)
    rows = transaction.rows("schedule_runs", {"schedule": schedule, "before": until, "limit": limit})
    return [
        ScheduleRun(
            schedule=schedule,
            tick=from_micros(tick),
            manual=bool(manual),
            task=task,
            status=rules.status(task, state),
            fired_at=from_micros(fired_at),
        )
        for tick, manual, task, fired_at, state in rows
    ]


class Scheduling(Part):
    async def put_schedules(self, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
        schedules = tuple(schedules)
        return await self.database.write(lambda transaction: put_schedules(transaction, schedules))

    async def declare_schedules(self, declared_by: str, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
        schedules = tuple(schedules)

        def look(transaction: Transaction) -> list[ScheduleRecord] | None:
            changes = _planned_declaration(transaction, declared_by, schedules)
            return None if changes else _in_order(transaction, schedules)

        def write(transaction: Transaction) -> list[ScheduleRecord]:
            _apply(transaction, _planned_declaration(transaction, declared_by, schedules))
            return _in_order(transaction, schedules)

        # Every process of an app declares at its start, and mostly what is there already: no need to write for that.
        standing = await self.database.read(look)
        return await self.database.write(write) if standing is None else standing

    async def schedules(self) -> list[ScheduleRecord]:
        rows = await self.database.read(lambda transaction: transaction.rows("schedules"))
        return [_stored(row).record for row in rows]

    async def get_schedule(self, name: str) -> ScheduleRecord | None:
        return await self.database.read(lambda transaction: get_schedule(transaction, name))

    async def pause_schedule(self, name: str) -> ScheduleRecord:
        return await self._change("pause_schedule", name)

    async def resume_schedule(self, name: str) -> ScheduleRecord:
        return await self._change("resume_schedule", name)

    async def _change(self, query: str, name: str) -> ScheduleRecord:
        def write(transaction: Transaction) -> ScheduleRecord:
            transaction.run(query, {"name": name, "now": transaction.now})
            return _existing(transaction, name)

        return await self.database.write(write)

    async def remove_schedule(self, name: str) -> bool:
        return await self.database.write(lambda transaction: transaction.run("remove_schedule", (name,)) == 1)

    async def due_schedules(self, *, limit: int = 100) -> DueSchedules:
        found = await self.database.read(lambda transaction: due_schedules(transaction, limit))
        return await rules.readable(found, self.set_schedule_aside)

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        firings = tuple(firings)
        return await self.database.write(lambda transaction: fire(transaction, firings), verb="fire")

    async def set_schedule_aside(self, schedule: int, revision: int, problem: str) -> bool:
        return await self.database.write(lambda transaction: set_aside(transaction, schedule, revision, problem))

    async def run_schedule(self, name: str) -> ScheduleRun:
        return await self.database.write(lambda transaction: run_schedule(transaction, name))

    async def schedule_runs(self, name: str, *, limit: int = 20, before: datetime | None = None) -> list[ScheduleRun]:
        return await self.database.read(lambda transaction: schedule_runs(transaction, name, limit, before))
