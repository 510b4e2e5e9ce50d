"""The service that fires schedules.

Any number of them may run, on any number of hosts, without a leader: each decides by itself what is due, and of those
that decide the same the store lets one through, by the cursor of the schedule.
"""

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from headrace.core.schedule import Fire, Fired, Firing, ScheduleRecord
from headrace.runtime.service import Pace, Service
from headrace.scheduling.cadence import cadence_from_json
from headrace.scheduling.ticks import due, jitter
from headrace.store.base import Schedules
from headrace.store.schedules import UNREADABLE
from headrace.telemetry.events import Bus, ScheduleFired, ScheduleSetAside

_LOOKED_AT = 100  # schedules at one look, and about as many fires
_HAIR = 0.001  # after the tick, so that one look suffices

# By its text, of which two schedules may have the same. One that cannot be read is not kept.
_cadence = lru_cache(maxsize=1024)(cadence_from_json)


class ScheduleEnqueuer(Service):
    """Looks when the next schedule is due, and at least each `longest` seconds: one may be added elsewhere."""

    name = "schedule enqueuer"

    def __init__(self, *, store: Schedules, bus: Bus | None = None, longest: float = 1.0) -> None:
        super().__init__(Pace(interval=longest, jitter=0.0))
        self._store = store
        self._bus = bus or Bus()
        # What this process cannot read, by id with its revision: another one may (a newer version, a host that has the
        # zone), so it is nobody else's business.
        self._unreadable: dict[int, int] = {}

    async def run_once(self) -> float:
        found = await self._store.due_schedules(limit=_LOOKED_AT, without=tuple(self._unreadable.items()))
        looked_at = time.monotonic()
        firings: list[Firing] = []
        left = len(self._unreadable)
        # However many have a backlog, one look enqueues about a hundred tasks, and then the others have their turn.
        limit = max(1, _LOOKED_AT // max(1, len(found.due)))
        for record in found.due:
            # Ticks of a long downtime take milliseconds each to find, and heartbeats share this loop.
            await asyncio.sleep(0)
            if record.problem is not None:
                self._leave_to_others(record, record.problem)
                continue
            try:
                firings.append(decide(record, now=found.now, limit=limit))
            except Exception as error:  # whatever is wrong with one, the others fire
                self._leave_to_others(record, str(error) or repr(error))
        fired = await self._store.fire(firings) if firings else []
        self._tell(found.due, fired, found.now)
        await self._tell_of_refused(found.due, firings, fired)
        pauses = [self.pace.interval, *self._waits(firings, fired, found.now)]
        if found.next_in:
            pauses.append(found.next_in + _HAIR)
        elif found.next_in is not None and (fired or len(self._unreadable) > left or _only_looked(firings)):
            # More are due than were looked at, and these make room for them: else the same would come again.
            pauses.append(0.0)
        return max(0.0, min(pauses) - (time.monotonic() - looked_at))

    def _waits(self, firings: Sequence[Firing], fired: Sequence[Fired], now: datetime) -> list[float]:
        """Seconds until each is due again. One with a backlog that did not move was another scheduler's, or failed:
        it is looked at with the rest, not at once."""
        moved = {each.schedule for each in fired}
        waits: list[float] = []
        for firing in firings:
            if firing.next_at is not None:
                wait = (firing.next_at - now).total_seconds()
                if wait > 0:
                    waits.append(wait + _HAIR)
                elif firing.schedule in moved:
                    waits.append(0.0)
        return waits

    def _leave_to_others(self, record: ScheduleRecord, problem: str) -> None:
        """It is not looked at again in this revision: it would be the longest due at every look."""
        self._unreadable[record.id] = record.revision
        self._bus.emit(ScheduleSetAside(schedule=record.name, problem=problem, here=True))

    async def _tell_of_refused(
        self, looked_at: Sequence[ScheduleRecord], firings: Sequence[Firing], fired: Sequence[Fired]
    ) -> None:
        """What did not fire was another scheduler's, or the store refused its task and set it aside."""
        moved = {each.schedule for each in fired}
        silent = {firing.schedule for firing in firings if firing.fires} - moved
        for record in looked_at if silent else ():
            if record.id in silent:
                now = await self._store.get_schedule(record.name)
                if now is None or now.revision != record.revision or now.task.name == UNREADABLE:
                    continue
                if now.problem is not None:
                    self._bus.emit(ScheduleSetAside(schedule=record.name, problem=now.problem))

    def _tell(self, looked_at: Sequence[ScheduleRecord], fired: Sequence[Fired], now: datetime) -> None:
        if not fired or not self._bus.hears(ScheduleFired):
            return
        names = {record.id: record.name for record in looked_at}
        for each in fired:
            self._bus.emit(
                ScheduleFired(
                    schedule=names[each.schedule],
                    tick=each.tick,
                    verdict=each.verdict,
                    task=each.task,
                    late=(now - each.tick).total_seconds(),
                )
            )


def _only_looked(firings: Sequence[Firing]) -> bool:
    """Some have nothing to fire and are put off, by whomever: the store answers nothing for them."""
    return any(not firing.fires for firing in firings)


def decide(record: ScheduleRecord, *, now: datetime, limit: int) -> Firing:
    """What is done about one schedule. Raises OptionError when its cadence cannot be read here."""
    found = due(
        _cadence(record.cadence),
        cursor=record.cursor,
        now=now,
        catch_up=record.catch_up,
        grace=timedelta(seconds=record.grace),
        limit=limit,
    )
    spread = timedelta(seconds=record.jitter)
    return Firing(
        schedule=record.id,
        revision=record.revision,
        cursor=record.cursor,
        new_cursor=found.cursor,
        next_at=found.next_look,
        fires=tuple(
            Fire(tick=tick, delay=jitter(record.id, tick, spread).total_seconds() if spread else 0.0)
            for tick in found.ticks
        ),
    )
