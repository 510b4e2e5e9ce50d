"""`app.schedules`: what is enqueued by itself, and when. Changes take effect at once, without a restart."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast
from zoneinfo import ZoneInfo

from headrace.client.bridge import sync_form
from headrace.client.declaring import Declaration, declared
from headrace.client.engine import Engine
from headrace.client.handles import Handle
from headrace.core.durations import Duration
from headrace.core.errors import NotFound, OptionError, WrongState
from headrace.core.schedule import CatchUp, NewSchedule, Overlap, ScheduleRecord, ScheduleRun
from headrace.core.task import NewTask
from headrace.scheduling.cadence import Cadence, Cron, Once, cadence_from_json, cadence_to_json
from headrace.scheduling.declaration import Schedule, When, as_cadence, check_template, in_order
from headrace.scheduling.enqueuer import ScheduleEnqueuer
from headrace.scheduling.policy import Policy
from headrace.store.base import Store
from headrace.store.schedules import UNREADABLE, check_unchanged
from headrace.telemetry.events import Bus, ScheduleFired

if TYPE_CHECKING:
    from headrace.client.task import Task


class Changes(TypedDict, total=False):
    """The rules that `app.schedules.set` changes beside the cadence and the task."""

    tz: str | None
    catch_up: CatchUp
    grace: Duration
    overlap: Overlap
    jitter: Duration


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """A schedule as it was when it was asked for: its row, and what people want to know of it."""

    record: ScheduleRecord
    now: datetime  # by the store's clock

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def task(self) -> str:
        """Name of the task that each fire enqueues."""
        return self.record.task.name

    @property
    def paused(self) -> bool:
        return self.record.paused

    @property
    def problem(self) -> str | None:
        """Why it does not fire although it is not paused; or not from here, see `unreadable`."""
        return self.record.problem or self.unreadable

    @property
    def unreadable(self) -> str | None:
        """Why this process cannot read it, while schedulers of another version or host may well fire it."""
        if self.record.task.name == UNREADABLE:
            return self.record.problem
        try:
            cadence_from_json(self.record.cadence)
        except OptionError as error:
            return str(error)
        return None

    @property
    def cadence(self) -> Cadence:
        """OptionError when this host cannot read it."""
        return cadence_from_json(self.record.cadence)

    @property
    def zone(self) -> ZoneInfo:
        """On whose clocks it goes; UTC for what goes by no clock."""
        cadence = self._readable()
        return ZoneInfo(cadence.tz if isinstance(cadence, Cron) else "UTC")

    def describe(self) -> str:
        """When it fires, in words."""
        cadence = self._readable()
        return self.record.cadence if cadence is None else cadence.describe()

    def upcoming(self, n: int = 5) -> list[datetime]:
        """Its next fires in UTC; none while it is paused or cannot be read. Jitter comes on top."""
        cadence = self._readable()
        if cadence is None or self.paused or self.problem is not None:
            return []
        # Ticks up to the cursor are decided, also those that are yet to come.
        return cadence.upcoming(n, after=max(self.now, self.record.cursor))

    @property
    def silent_until(self) -> datetime | None:
        """Its cursor, where that lies ahead of the clock: somebody looked with a clock that was ahead, and no tick
        before it fires. A pause and a resume set it to the present."""
        if self.paused or self.problem is not None or self.record.cursor <= self.now:
            return None
        return self.record.cursor

    def upcoming_local(self, n: int = 5) -> list[datetime]:
        """The same on the clocks of its zone."""
        zone = self.zone
        return [tick.astimezone(zone) for tick in self.upcoming(n)]

    def _readable(self) -> Cadence | None:
        try:
            return self.cadence
        except OptionError:
            return None


class Schedules:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def alist(self) -> Sequence[ScheduleView]:
        """Every schedule, by name."""

        async def act(store: Store) -> list[ScheduleView]:
            records = await store.schedules()
            now = await store.now()
            return [ScheduleView(record=record, now=now) for record in records]

        return await self._engine.run(act)

    async def aget(self, name: str) -> ScheduleView:
        """One schedule. NotFound when there is none of that name."""
        return await self._engine.run(lambda store: view(store, name))

    async def aadd[**P, R](
        self, task: "Task[P, R]", when: "When | Schedule", /, *args: P.args, **kwargs: P.kwargs
    ) -> ScheduleView:
        """Make a schedule of a task, with the arguments of each run. It fires from now on.

        WrongState when the name is taken: `set` changes a schedule.
        """
        new = replace(Declaration(Schedule.of(when), task, args, kwargs).stored(), expected=0)

        async def act(store: Store) -> ScheduleView:
            await _refuse_past(store, new)
            return await _put(store, new)

        return await self._engine.run(act)

    async def aset(
        self,
        name: str,
        *,
        when: When | None = None,
        task: NewTask | None = None,
        expected: tuple[int, int] | None = None,
        **changes: Unpack[Changes],
    ) -> ScheduleView:
        """Change what is given and keep the rest: `set("nightly", when="0 3 * * *")`, `set("nightly", jitter=30)`,
        `set("nightly", task=report.prepare(year=2027))`.

        A new cadence counts from now. A schedule that code declares keeps the change until its declaration changes.
        NotFound when there is none of that name; WrongState when somebody else changes it at the same moment, or has
        since you read it: `expected` is the id and the revision of that record.
        """

        async def act(store: Store) -> ScheduleView:
            record = await store.get_schedule(name)
            if record is None:
                raise NotFound(_absent(name))
            check_unchanged(record, expected)
            new = _changed(record, when, task, changes)
            if when is not None:
                await _refuse_past(store, new)
            return await _put(store, new)

        return await self._engine.run(act)

    async def apause(self, name: str) -> ScheduleView:
        """No tick of it fires until it is resumed. What it has enqueued goes on."""
        return await self._engine.run(lambda store: _seen(store, store.pause_schedule(name)))

    async def aresume(self, name: str, *, expected: tuple[int, int] | None = None) -> ScheduleView:
        """Ticks from now on fire again; those of the pause never do. `expected` as for `set`."""
        return await self._engine.run(lambda store: _seen(store, store.resume_schedule(name, expected=expected)))

    async def aremove(self, name: str) -> None:
        """It, and the list of its runs; tasks that it has enqueued stay. NotFound when there is none of that name.

        One that code declares comes back with the next start of its app.
        """
        if not await self._engine.run(lambda store: store.remove_schedule(name)):
            raise NotFound(_absent(name))

    async def arun_now(self, name: str, *, expected: tuple[int, int] | None = None) -> Handle[Any]:
        """Enqueue its task now, paused or not. The ticks go on as if nothing had happened.

        WrongState when the task's own `unique` key is held, or by `expected`, as for `set`.
        """
        run = await self._engine.run(lambda store: store.run_schedule(name, expected=expected))
        assert run.task is not None
        return Handle(self._engine, run.task)

    async def aruns(self, name: str, *, limit: int = 20, before: datetime | None = None) -> Sequence[ScheduleRun]:
        """Its fires, newest first, with what became of each. For the next page give `before` the tick of the last."""
        return await self._engine.run(lambda store: store.schedule_runs(name, limit=limit, before=before))

    async def anext_fires(self, name: str, n: int = 5) -> list[datetime]:
        """The instants of its next fires, in UTC; none while it is paused."""
        return (await self.aget(name)).upcoming(n)

    async def adeclare(self, by: str) -> Sequence[ScheduleView]:
        """Write what the code of this app declares, as a worker or `headrace scheduler` does when it starts. `by` names
        the app, as in "tasks:app": what it declared before and no longer does is removed.
        """
        new = declared(self._engine, by)

        async def act(store: Store) -> list[ScheduleView]:
            records = await store.declare_schedules(by, new)
            now = await store.now()
            return [ScheduleView(record=record, now=now) for record in records]

        return await self._engine.run(act)

    async def afire_due(self) -> Sequence[ScheduleFired]:
        """Fire what is due now, as a scheduler does that looks; what it did. For tests, and for programs that have no
        worker and no scheduler running.
        """
        fired: list[ScheduleFired] = []
        bus = Bus()
        bus.subscribe(lambda event: fired.append(cast("ScheduleFired", event)), ScheduleFired)

        async def act(store: Store) -> None:
            enqueuer = ScheduleEnqueuer(store=store, bus=bus)
            while await enqueuer.run_once() == 0:
                pass

        await self._engine.run(act)
        return fired

    get = sync_form(aget)
    add = sync_form(aadd)
    set = sync_form(aset)
    pause = sync_form(apause)
    resume = sync_form(aresume)
    remove = sync_form(aremove)
    run_now = sync_form(arun_now)
    runs = sync_form(aruns)
    next_fires = sync_form(anext_fires)
    declare = sync_form(adeclare)
    fire_due = sync_form(afire_due)
    # Last: below this line `list` in an annotation would mean the method.
    list = sync_form(alist)


async def view(store: Store, name: str) -> ScheduleView:
    """NotFound when there is none of that name."""
    record = await store.get_schedule(name)
    if record is None:
        raise NotFound(_absent(name))
    return ScheduleView(record=record, now=await store.now())


async def _seen(store: Store, change: Awaitable[ScheduleRecord]) -> ScheduleView:
    return ScheduleView(record=await change, now=await store.now())


async def _put(store: Store, new: NewSchedule) -> ScheduleView:
    (record,) = await store.put_schedules([new])
    return ScheduleView(record=record, now=await store.now())


async def _refuse_past(store: Store, new: NewSchedule) -> None:
    """In code that was deployed long ago an instant may be over; who asks for one now has made a mistake."""
    cadence = cadence_from_json(new.cadence)
    if isinstance(cadence, Once) and cadence.at <= (now := await store.now()):
        raise OptionError(f"schedule {new.name}: {cadence.at} is over (it is {now}), so it would never fire")


def _changed(record: ScheduleRecord, when: When | None, task: NewTask | None, changes: Changes) -> NewSchedule:
    tz = changes.get("tz")
    if when is not None or tz is not None:
        old = ScheduleView(record=record, now=record.changed_at)
        if when is None:
            cadence = old.cadence
            if not isinstance(cadence, Cron):
                raise OptionError(f"schedule {record.name}: only a cron expression has a zone, and it has none")
            when = cadence.expression
        # Who moves it from two to three o'clock means the same clock.
        keeps_zone = isinstance(when, str) and tz is None
        cadence_text = cadence_to_json(as_cadence(when, old.zone.key if keeps_zone else tz))
    else:
        cadence_text = record.cadence
    policy = Policy(
        catch_up=changes.get("catch_up", record.catch_up),
        grace=changes.get("grace", record.grace),
        overlap=changes.get("overlap", record.overlap),
        jitter=changes.get("jitter", record.jitter),
    )
    if task is None and record.task.name == UNREADABLE:
        raise WrongState(f"schedule {record.name!r}: {record.problem} (give `set` the task as well)")
    template = record.task if task is None else task
    check_template(template, record.name)
    return NewSchedule(
        name=record.name,
        cadence=cadence_text,
        task=in_order(template, record.name, wanted=policy.overlap == "queue"),
        catch_up=policy.catch_up,
        grace=policy.grace.total_seconds(),
        overlap=policy.overlap,
        jitter=policy.jitter.total_seconds(),
        paused=record.paused,
        declared_by=record.declared_by,
        expected=record.revision,
    )


def _absent(name: str) -> str:
    return f"no schedule {name!r}; `headrace schedules list` shows those that are there"
