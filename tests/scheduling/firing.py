"""A store on a clock that the test moves, and schedulers that look when they are told to."""

import contextlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from headrace.core.schedule import NewSchedule, ScheduleRun
from headrace.core.task import NewTask, TaskFilter
from headrace.scheduling.declaration import Schedule
from headrace.scheduling.enqueuer import ScheduleEnqueuer
from headrace.store.base import Store, StoreOptions
from headrace.store.connect import connect
from headrace.telemetry.events import Bus, Event
from headrace.testing.clock import FakeClock


class Bench:
    def __init__(self, url: str, clock: FakeClock) -> None:
        self.url = url
        self.clock = clock
        self.store = self.new_store()
        self.events: list[Event] = []
        bus = Bus()
        bus.subscribe(self.events.append)
        self.scheduler = ScheduleEnqueuer(store=self.store, bus=bus)

    def new_store(self) -> Store:
        return connect(self.url, StoreOptions(extra={"clock": self.clock}))

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator["Bench"]:
        await self.store.open()
        try:
            yield self
        finally:
            await self.store.close()

    async def add(self, name: str, when: Any, *, task: NewTask | None = None, **options: Any) -> int:
        """A schedule, looked at once: its next tick is known."""
        new = Schedule(when, name=name, **options).stored(task or NewTask(name="noop"))
        (record,) = await self.store.put_schedules([new])
        await self.scheduler.run_once()
        return record.id

    async def put(self, *schedules: NewSchedule) -> None:
        await self.store.put_schedules(schedules)

    async def look(self) -> float:
        """Looks until nothing is due; the pause that the last look asks for."""
        while (pause := await self.scheduler.run_once()) == 0:
            pass
        return pause

    async def look_at(self, *instants: datetime) -> None:
        for instant in instants:
            self.clock.move_to(instant)
            await self.look()

    async def runs(self, name: str, limit: int = 1000) -> list[ScheduleRun]:
        """Oldest first."""
        return (await self.store.schedule_runs(name, limit=limit))[::-1]

    async def ticks(self, name: str) -> list[datetime]:
        return [run.tick for run in await self.runs(name)]

    async def tasks(self) -> list[int]:
        return [record.id for record in await self.store.list(TaskFilter(limit=100_000))]
