"""Schedules where an app runs: what its code declares (subscriptions, too) is written at the start, and what is due is
fired."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from headrace.core.errors import StoreUnavailable, WrongState
from headrace.core.schedule import NewSchedule
from headrace.core.subscription import NewSubscription
from headrace.runtime.service import Service
from headrace.runtime.signals import stop_signals
from headrace.runtime.supervision import Supervision
from headrace.store.base import Store
from headrace.telemetry.events import Bus
from headrace.worker.options import WorkerOptions
from headrace.worker.reaching import reach

logger = logging.getLogger("headrace.worker")

_PAUSE, _LONGEST_PAUSE = 0.05, 5.0


def scheduler_services(store: Store, options: WorkerOptions, bus: Bus) -> list[Service]:
    """None for a burst: it does what is there and goes, and would begin with whatever is due and end no earlier."""
    if not options.scheduler or options.burst:
        return []
    # Imported here: a worker process below a supervisor has no use for calendars and zones.
    from headrace.scheduling.enqueuer import ScheduleEnqueuer

    return [ScheduleEnqueuer(store=store, bus=bus)]


async def declare_schedules(app: Any, store: Store, target: str, *, stopping: asyncio.Event) -> None:
    """Write what the code of the app declares, under the name by which the app is started: it is the same after a
    restart, and on every host. An outage is waited out. WrongState when a name is another app's, or was made at run
    time: then two things go by one name, and only people can say which is meant.
    """
    by = _declarer(target)
    schedules, subscriptions, pause = _declared(app, by), _subscribed(app), _PAUSE
    if schedules is None:
        return
    while not stopping.is_set():
        try:
            # An app without schedules writes nothing, unless it had some: those are to go.
            if schedules or any(record.declared_by == by for record in await store.schedules()):
                await store.declare_schedules(by, schedules)
            if subscriptions or any(record.declared_by == by for record in await store.subscriptions()):
                await store.declare_subscriptions(by, subscriptions)
        except StoreUnavailable:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), pause)
            pause = min(_LONGEST_PAUSE, pause * 2)
        else:
            return


def _declarer(target: str) -> str:
    return target if ":" in target else f"{target}:app"


def _declared(app: Any, by: str) -> list[NewSchedule] | None:
    """None where an app knows no schedules."""
    declared: Callable[[str], list[NewSchedule]] | None = getattr(app, "declared_schedules", None)
    return None if declared is None else declared(by)


def _subscribed(app: Any) -> list[NewSubscription]:
    declared: Callable[[], list[NewSubscription]] | None = getattr(app, "declared_subscriptions", None)
    return [] if declared is None else declared()


async def take_over_schedules(
    app: Any, store: Store, target: str, services: list[Service], *, begun: asyncio.Event, stopping: asyncio.Event
) -> None:
    """For code that is to follow other code: nothing is written or fired before it has begun. A name that is not its
    own is said, and no more: what ran before has ended, and tasks need somebody who runs them. Raises what ends a
    service.
    """
    # What is wrong in itself is said while what ran before can go on.
    _declared(app, _declarer(target))
    _subscribed(app)
    await begun.wait()
    try:
        await declare_schedules(app, store, target, stopping=stopping)
    except WrongState as error:
        logger.error("%s\nschedules stay as they were before this reload; save again when it is mended", error)
    if not services or stopping.is_set():
        return
    supervision = Supervision(services)
    try:
        await supervision.start()
        await supervision.watch()
    finally:
        await supervision.stop()


class Scheduler:
    """`headrace scheduler`: fires schedules and does nothing else. It has nothing in its hands: it may be killed at any
    moment, and others may run beside it.
    """

    def __init__(
        self,
        new_store: Callable[[], Store],
        *,
        app: Any = None,
        target: str | None = None,
        bus: Bus | None = None,
        upgrade: bool = False,
    ) -> None:
        self._new_store = new_store
        self._app = app
        self._target = target
        self._bus = bus or Bus()
        self._upgrade = upgrade
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Until it is told to stop (SIGTERM, SIGINT). Raises when what it does cannot go on."""
        from headrace.scheduling.enqueuer import ScheduleEnqueuer

        with stop_signals(self.stop, self.stop):
            store = await reach(
                self._new_store, who="the scheduler", bus=self._bus, stopping=self._stopping, upgrade=self._upgrade
            )
            if store is None:
                return
            try:
                if self._target is not None:
                    await declare_schedules(self._app, store, self._target, stopping=self._stopping)
                await self._fire(Supervision([ScheduleEnqueuer(store=store, bus=self._bus)]))
            finally:
                await store.close()

    async def _fire(self, supervision: Supervision) -> None:
        await supervision.start()
        logger.info("the scheduler fires what is due")
        watching = asyncio.create_task(supervision.watch(), name="headrace.supervision")
        stopped = asyncio.create_task(self._stopping.wait(), name="headrace.stop")
        try:
            await asyncio.wait({watching, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                watching.result()
        finally:
            watching.cancel()
            stopped.cancel()
            await asyncio.gather(watching, stopped, return_exceptions=True)
            await supervision.stop()
