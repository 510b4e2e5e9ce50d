"""Schedules: kept by name, due by one index, fired by whoever moves the cursor."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import orjson

from headrace.core.schedule import DueSchedules, Fired, Firing, NewSchedule, ScheduleRecord, ScheduleRun
from headrace.store import schedules as rules
from headrace.store.instants import from_micros, to_micros
from headrace.store.sqlite.connection import Part, Row, Transaction
from headrace.store.sqlite.ending import ids_json
from headrace.store.sqlite.firing import fire, run_now, set_aside

_INSTANTS = ("cursor", "next_at", "created_at", "changed_at")
# Fires that one transaction writes, and what a cursor that only moves is beside one of them.
_AT_ONCE = 30
_LOOK = 0.2
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
        raise rules.unknown(name)
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
        transaction.run("remove_schedules", (ids_json(list(changes.removed.values())),))


def put_schedules(transaction: Transaction, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
    _apply(transaction, rules.put(_named(transaction, schedules), schedules, from_micros(transaction.now)))
    return _in_order(transaction, schedules)


def _in_order(transaction: Transaction, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
    found = _named(transaction, schedules)
    return [found[schedule.name].record for schedule in schedules]


def due_schedules(transaction: Transaction, limit: int, without: Collection[tuple[int, int]]) -> DueSchedules:
    now = transaction.now
    left_out = orjson.dumps([f"{id}:{revision}" for id, revision in without]).decode()
    rows = transaction.rows("due_schedules", {"now": now, "limit": limit + 1, "without": left_out})
    if len(rows) > limit:
        next_in = 0.0
    else:
        row = transaction.row("next_schedule", {"now": now})
        next_in = None if row is None or row[0] is None else (row[0] - now) / 1e6
    due = tuple(_stored(row).record for row in rows[:limit])
    return DueSchedules(now=from_micros(now), due=due, next_in=next_in)


def schedule_runs(transaction: Transaction, name: str, limit: int, before: datetime | None) -> list[ScheduleRun]:
    return _runs(transaction, _existing(transaction, name).id, limit, before)


def last_runs(transaction: Transaction, schedules: Sequence[int], each: int) -> dict[int, list[ScheduleRun]]:
    found = {schedule: _runs(transaction, schedule, each, None) for schedule in schedules}
    return {schedule: runs for schedule, runs in found.items() if runs}


def _runs(transaction: Transaction, schedule: int, limit: int, before: datetime | None) -> list[ScheduleRun]:
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


def _few_at_once(firings: Sequence[Firing]) -> Iterator[list[Firing]]:
    """What goes into one transaction: others wait for it."""
    few: list[Firing] = []
    cost = 0.0
    for firing in firings:
        cost += _LOOK + len(firing.fires)
        few.append(firing)
        if cost >= _AT_ONCE:
            yield few
            few, cost = [], 0.0
    if few:
        yield few


class Scheduling(Part):
    async def put_schedules(self, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
        schedules = tuple(schedules)
        return await self.database.write(lambda transaction: put_schedules(transaction, schedules))

    async def declare_schedules(self, declared_by: str, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
        schedules = tuple(schedules)

        def look(transaction: Transaction) -> list[ScheduleRecord] | None:
            changes = _planned_declaration(transaction, declared_by, schedules)
            return None if changes else _in_order(transaction, schedules)

        def write(transaction: Transaction) -> tuple[rules.Changes, list[ScheduleRecord]]:
            changes = _planned_declaration(transaction, declared_by, schedules)
            _apply(transaction, changes)
            return changes, _in_order(transaction, schedules)

        # Every process of an app declares at its start, and mostly what is there already: no need to write for that.
        standing = await self.database.read(look)
        if standing is not None:
            return standing
        changes, records = await self.database.write(write)
        rules.tell(declared_by, changes)
        return records

    async def schedules(self) -> list[ScheduleRecord]:
        rows = await self.database.read(lambda transaction: transaction.rows("schedules"))
        return [_stored(row).record for row in rows]

    async def get_schedule(self, name: str) -> ScheduleRecord | None:
        return await self.database.read(lambda transaction: get_schedule(transaction, name))

    async def pause_schedule(self, name: str) -> ScheduleRecord:
        return await self._change("pause_schedule", name)

    async def resume_schedule(self, name: str, *, expected: tuple[int, int] | None = None) -> ScheduleRecord:
        return await self._change("resume_schedule", name, expected)

    async def _change(self, query: str, name: str, expected: tuple[int, int] | None = None) -> ScheduleRecord:
        def write(transaction: Transaction) -> ScheduleRecord:
            rules.check_unchanged(_existing(transaction, name), expected)
            transaction.run(query, {"name": name, "now": transaction.now})
            return _existing(transaction, name)

        return await self.database.write(write)

    async def remove_schedule(self, name: str) -> bool:
        return await self.database.write(lambda transaction: transaction.run("remove_schedule", (name,)) == 1)

    async def due_schedules(self, *, limit: int = 100, without: Collection[tuple[int, int]] = ()) -> DueSchedules:
        return await self.database.read(lambda transaction: due_schedules(transaction, limit, without))

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        fired: list[Fired] = []
        for few in _few_at_once(firings):
            fired += await self.database.write(lambda transaction, few=few: fire(transaction, few), verb="fire")
        return fired

    async def set_schedule_aside(self, schedule: int, revision: int, problem: str) -> bool:
        return await self.database.write(lambda transaction: set_aside(transaction, schedule, revision, problem))

    async def run_schedule(self, name: str, *, expected: tuple[int, int] | None = None) -> ScheduleRun:
        def write(transaction: Transaction) -> ScheduleRun:
            record = _existing(transaction, name)
            rules.check_unchanged(record, expected)
            return run_now(transaction, record)

        return await self.database.write(write)

    async def schedule_runs(self, name: str, *, limit: int = 20, before: datetime | None = None) -> list[ScheduleRun]:
        return await self.database.read(lambda transaction: schedule_runs(transaction, name, limit, before))

    async def last_runs(self, schedules: Sequence[int], *, each: int) -> dict[int, list[ScheduleRun]]:
        return await self.database.read(lambda transaction: last_runs(transaction, schedules, each))
