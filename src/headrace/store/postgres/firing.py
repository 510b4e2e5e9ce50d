"""The fire of a schedule: the cursor moves, tasks are enqueued and runs are written, all or nothing."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import batched

import asyncpg

from headrace.core.errors import DuplicateTask, HeadraceError, StoreError, UniqueBusy
from headrace.core.schedule import Fire, Fired, Firing, Overlap, RunStatus, ScheduleRun, overlap
from headrace.core.states import Reason
from headrace.core.task import Enqueued, NewTask
from headrace.store import schedules as rules
from headrace.store.postgres.connection import Connection, Database
from headrace.store.postgres.enqueueing import Enqueueing, document, ready_queues
from headrace.store.postgres.schedules import Schedules

_logger = logging.getLogger("headrace.store")

# Transactions beside each other: they share the syncs of the server's log, and leave the pool to others.
_AT_ONCE = 4
# What only another template mends: its data are refused, or cannot be read.
_REFUSED = (
    HeadraceError,
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    ValueError,
    TypeError,
    KeyError,
    OverflowError,
)


class _Held(Exception):
    """A key of the task's own is held: undo what this fire did."""


class Firings:
    def __init__(
        self, database: Database, queries: Mapping[str, str], enqueueing: Enqueueing, schedules: Schedules
    ) -> None:
        self._database = database
        self._queries = queries
        self._enqueueing = enqueueing
        self._schedules = schedules

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        """Each in a transaction of its own. One whose connection was lost at the commit is tried again and finds the
        cursor moved: nothing is doubled, and its fires are missing in the answer.
        """
        await self._move_on([firing for firing in firings if not firing.fires])
        fired: list[Fired] = []
        for few in batched((firing for firing in firings if firing.fires), _AT_ONCE):
            answers = await asyncio.gather(*map(self._fire_or_set_aside, few), return_exceptions=True)
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
                fired += answer
        return fired

    async def _move_on(self, firings: Sequence[Firing]) -> None:
        """Nothing fires: one statement for all, which happens again without harm."""
        if firings:
            seen = (
                [one.schedule for one in firings],
                [one.revision for one in firings],
                [one.cursor for one in firings],
            )
            after = ([one.new_cursor for one in firings], [one.next_at for one in firings])
            await self._database.fetch(self._queries["move_cursors"], *seen, *after, repeatable=True)

    async def _fire_or_set_aside(self, firing: Firing) -> list[Fired]:
        try:
            return await self._fire_one(firing)
        except StoreError:
            raise  # of the database, not of this schedule
        except rules.Unreadable:
            pass  # by this version: it stays due, for whoever can
        except UniqueBusy:
            pass  # an open transaction holds the key of its task: it stays due, for the next look
        except _REFUSED as error:
            await self._schedules.set_schedule_aside(firing.schedule, firing.revision, rules.refused(error))
        except asyncpg.PostgresError:
            _logger.exception("schedule %s could not be fired, and stays due", firing.schedule)
        return []

    async def _fire_one(self, firing: Firing) -> list[Fired]:
        moved = (firing.schedule, firing.revision, firing.cursor, firing.new_cursor, firing.next_at)

        async def write(connection: Connection) -> list[Fired]:
            rows = await connection.fetch(self._queries["move_cursor"], *moved)
            return await self._write_fires(connection, firing, *rows[0]) if rows else []

        return await self._database.run(write, repeatable=True, verb="fire")

    async def _write_fires(
        self, connection: Connection, firing: Firing, text: str, policy: Overlap, now: datetime
    ) -> list[Fired]:
        template, schedule = rules.template(text), firing.schedule
        ticks = [fire.tick for fire in firing.fires]
        known = {row[0] for row in await connection.fetch(self._queries["has_runs"], schedule, ticks)}
        new = [fire for fire in firing.fires if fire.tick not in known]
        if policy == "allow" and not template.keys:
            answers = await self._enqueue(connection, list(rules.fired_tasks(template, new, now))) if new else []
            fired = [
                Fired(schedule=schedule, tick=fire.tick, verdict="enqueue", task=answer.id)
                for fire, answer in zip(new, answers, strict=True)
            ]
            await self._write_runs(connection, schedule, fired, now)
            return fired
        return [await self._fire_by_policy(connection, schedule, template, policy, fire, now) for fire in new]

    async def _fire_by_policy(
        self, connection: Connection, schedule: int, template: NewTask, policy: Overlap, fire: Fire, now: datetime
    ) -> Fired:
        live: dict[int, str] = {}
        if policy != "allow":
            live = dict(await connection.fetch(self._queries["open_runs"], schedule))
        waiting, running = rules.unfinished(list(live.values()))
        verdict = overlap(policy, waiting=waiting, running=running)
        task = None
        if verdict != "skip":
            new = rules.fired_task(template, fire.tick, now, fire.delay)
            task = await self._enqueue_unless_held(
                connection, new, replaced=sorted(live) if verdict == "replace" else ()
            )
        fired = Fired(schedule=schedule, tick=fire.tick, verdict="skip" if task is None else verdict, task=task)
        await self._write_runs(connection, schedule, [fired], now)
        return fired

    async def _enqueue_unless_held(
        self, connection: Connection, task: NewTask, *, replaced: Sequence[int] = ()
    ) -> int | None:
        """None where a key of the task's own is held; what it was to replace then goes on as well."""
        if not task.keys:
            return await self._replace(connection, task, replaced)
        try:
            async with connection.transaction():
                return await self._replace(connection, task, replaced)
        except (DuplicateTask, _Held):
            return None

    async def _replace(self, connection: Connection, task: NewTask, replaced: Sequence[int]) -> int:
        if replaced:
            await connection.fetch(self._queries["cancel"], list(replaced), Reason.REPLACED.value)
        (answer,) = await self._enqueue(connection, [task])
        if rules.was_held(task, answer):
            raise _Held
        return answer.id

    async def _enqueue(self, connection: Connection, tasks: Sequence[NewTask]) -> list[Enqueued]:
        # The server takes the ids: the cursor, or its caller, says whether this happens again.
        return await self._enqueueing.write(connection, document(tasks, own=True, notify=ready_queues(tasks)))

    async def _write_runs(
        self, connection: Connection, schedule: int, fired: Sequence[Fired], now: datetime, *, manual: bool = False
    ) -> None:
        ticks, tasks = [one.tick for one in fired], [one.task for one in fired]
        await connection.execute(self._queries["insert_runs_of_schedule"], schedule, manual, now, ticks, tasks)

    async def run_schedule(self, name: str, *, expected: tuple[int, int] | None = None) -> ScheduleRun:
        async def write(connection: Connection) -> ScheduleRun:
            rows = await connection.fetch(self._queries["lock_schedule"], name)
            if not rows:
                raise rules.unknown(name)
            record, now = rules.stored(rows[0]).record, rows[0]["now"]
            rules.check_unchanged(record, expected)
            rules.check_runnable(record)
            tick = await connection.fetchval(self._queries["manual_tick"], record.id, now)
            task = await self._enqueue_unless_held(connection, rules.fired_task(record.task, tick, tick))
            if task is None:
                raise rules.not_run(record)
            fired = Fired(schedule=record.id, tick=tick, verdict="enqueue", task=task)
            await self._write_runs(connection, record.id, [fired], now, manual=True)
            return ScheduleRun(
                schedule=record.id, tick=tick, manual=True, task=task, status=RunStatus.PENDING, fired_at=now
            )

        # Not repeated by itself: a second try would be a second run.
        return await self._database.run(write)
