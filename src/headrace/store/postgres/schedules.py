"""Schedules: kept by name, due by one index."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from headrace.core.schedule import DueSchedules, NewSchedule, ScheduleRecord, ScheduleRun
from headrace.store import schedules as rules
from headrace.store.postgres.connection import Connection, Database, Rows

_CHANGED = (
    "id", "cadence", "task", "catch_up", "grace", "overlap", "jitter", "revision", "cursor", "next_at", "problem",
    "changed_at", "declaration",
)  # fmt: skip
_EVER = datetime.max.replace(tzinfo=UTC)


def _by_name(rows: Rows) -> dict[str, rules.Stored]:
    return {row["name"]: rules.stored(row) for row in rows}


class Schedules:
    def __init__(self, database: Database, queries: Mapping[str, str]) -> None:
        self._database = database
        self._queries = queries

    async def put_schedules(self, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
        async def write(connection: Connection) -> list[ScheduleRecord]:
            await connection.execute(self._queries["lock_schedules"])
            found, now = await self._found(connection, schedules, None)
            return await self._applied(connection, rules.put(found, schedules, now), schedules)

        # A second try finds what the first one wrote, and changes nothing; but it is not what was expected.
        return await self._database.run(write, repeatable=all(schedule.expected is None for schedule in schedules))

    async def declare_schedules(self, declared_by: str, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
        async def look(connection: Connection) -> list[ScheduleRecord] | None:
            found, now = await self._found(connection, schedules, declared_by)
            if rules.declare(found, declared_by, schedules, now):
                return None
            return [found[schedule.name].record for schedule in schedules]

        async def write(connection: Connection) -> tuple[rules.Changes, list[ScheduleRecord]]:
            await connection.execute(self._queries["lock_schedules"])
            found, now = await self._found(connection, schedules, declared_by)
            changes = rules.declare(found, declared_by, schedules, now)
            return changes, await self._applied(connection, changes, schedules)

        # Every process of an app declares at its start, and mostly what is there already: no need to lock for that.
        standing = await self._database.run(look, repeatable=True, transaction=False)
        if standing is not None:
            return standing
        changes, records = await self._database.run(write, repeatable=True)
        rules.tell(declared_by, changes)
        return records

    async def _found(
        self, connection: Connection, schedules: Sequence[NewSchedule], declared_by: str | None
    ) -> tuple[dict[str, rules.Stored], datetime]:
        names = [schedule.name for schedule in schedules]
        found = _by_name(await connection.fetch(self._queries["schedules"], names, declared_by))
        return found, await connection.fetchval("SELECT clock_timestamp()")

    async def _applied(
        self, connection: Connection, changes: rules.Changes, schedules: Sequence[NewSchedule]
    ) -> list[ScheduleRecord]:
        for new in changes.made.values():
            row = rules.row(new)
            await connection.execute(self._queries["insert_schedule"], *(row[name] for name in rules.COLUMNS[1:]))
        for changed in changes.changed.values():
            row = rules.row(changed)
            await connection.execute(self._queries["update_schedule"], *(row[name] for name in _CHANGED))
        if changes.removed:
            await connection.execute(self._queries["remove_schedules"], list(changes.removed.values()))
        found, _ = await self._found(connection, schedules, None)
        return [found[schedule.name].record for schedule in schedules]

    async def schedules(self) -> list[ScheduleRecord]:
        rows = await self._database.fetch(self._queries["schedules"], None, None, repeatable=True)
        return [rules.stored(row).record for row in rows]

    async def get_schedule(self, name: str) -> ScheduleRecord | None:
        rows = await self._database.fetch(self._queries["schedules"], [name], None, repeatable=True)
        return rules.stored(rows[0]).record if rows else None

    async def pause_schedule(self, name: str) -> ScheduleRecord:
        return await self._change("pause_schedule", name)

    async def resume_schedule(self, name: str, *, expected: tuple[int, int] | None = None) -> ScheduleRecord:
        return await self._change("resume_schedule", name, expected)

    async def _change(self, query: str, name: str, expected: tuple[int, int] | None = None) -> ScheduleRecord:
        async def write(connection: Connection) -> ScheduleRecord:
            if expected is not None and (held := await connection.fetch(self._queries["lock_schedule"], name)):
                rules.check_unchanged(rules.stored(held[0]).record, expected)
            await connection.execute(self._queries[query], name)
            rows = await connection.fetch(self._queries["schedules"], [name], None)
            if not rows:
                raise rules.unknown(name)
            return rules.stored(rows[0]).record

        # A second try would find what the first one changed, and call it somebody else's.
        return await self._database.run(write, repeatable=expected is None)

    async def remove_schedule(self, name: str) -> bool:
        return bool(await self._database.fetch(self._queries["remove_schedule"], name))

    async def due_schedules(self, *, limit: int = 100, without: Collection[tuple[int, int]] = ()) -> DueSchedules:
        left_out = ([id for id, _ in without], [revision for _, revision in without])
        rows = await self._database.fetch(self._queries["due_schedules"], limit + 1, *left_out, repeatable=True)
        now, following = rows[0]["now"], rows[0]["following"]
        due = tuple(rules.stored(row).record for row in rows if row["id"] is not None)
        next_in = None if following is None else (following - now).total_seconds()
        return DueSchedules(now=now, due=due[:limit], next_in=0.0 if len(due) > limit else next_in)

    async def set_schedule_aside(self, schedule: int, revision: int, problem: str) -> bool:
        query = self._queries["set_schedule_aside"]
        return bool(await self._database.fetch(query, schedule, revision, problem, repeatable=True))

    async def schedule_runs(self, name: str, *, limit: int = 20, before: datetime | None = None) -> list[ScheduleRun]:
        record = await self.get_schedule(name)
        if record is None:
            raise rules.unknown(name)
        query = self._queries["schedule_runs"]
        rows = await self._database.fetch(query, record.id, before or _EVER, limit, repeatable=True)
        return [_run(record.id, row) for row in rows]

    async def last_runs(self, schedules: Sequence[int], *, each: int) -> dict[int, list[ScheduleRun]]:
        found: dict[int, list[ScheduleRun]] = {}
        for row in await self._database.fetch(self._queries["last_runs"], list(schedules), each, repeatable=True):
            found.setdefault(row["schedule"], []).append(_run(row["schedule"], row))
        return found


def _run(schedule: int, row: Mapping[str, Any]) -> ScheduleRun:
    return ScheduleRun(
        schedule=schedule,
        tick=row["tick"],
        manual=row["manual"],
        task=row["task"],
        status=rules.status(row["task"], row["state"]),
        fired_at=row["fired_at"],
    )
