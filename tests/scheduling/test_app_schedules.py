"""`app.schedules`: look, add, change, pause, run now. What is written is seen by a scheduler that runs already."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import App, Cron, Schedule
from headrace.core.errors import ArgumentError, NotFound, OptionError, WrongState
from headrace.core.limits import Gate
from headrace.core.task import TaskFilter
from headrace.scheduling.cadence import cadence_from_json
from headrace.scheduling.enqueuer import ScheduleEnqueuer
from headrace.testing.clock import FakeClock
from tests.scheduling.firing import Bench

MINUTE = timedelta(minutes=1)


@pytest.fixture
def app(store_url: str, clock: FakeClock) -> Iterator[App]:
    made = App(store_url)
    made.engine.clock = clock
    made.task(name="welcome")(welcome)
    yield made
    made.close()


def welcome(user_id: int) -> int:
    return user_id


async def test_it_is_added_seen_and_removed(app: App, clock: FakeClock):
    task = app.get_task("welcome")
    made = await app.schedules.aadd(task, Schedule("0 9 * * 1-5", tz="Europe/Berlin", name="morning"), 7)
    assert (made.name, made.task, made.paused, made.problem) == ("morning", "welcome", False, None)
    assert made.record.declared_by is None
    await app.schedules.aadd(task.using(queue="mail"), 300, user_id=8)
    assert [seen.name for seen in await app.schedules.alist()] == ["morning", "welcome"]
    seen = await app.schedules.aget("morning")
    assert seen.describe() == Cron("0 9 * * 1-5", "Europe/Berlin").describe()
    assert "Europe/Berlin" in seen.describe()
    fires = seen.upcoming(3)
    assert fires == [datetime(2030, 1, day, 8, tzinfo=UTC) for day in (2, 3, 4)]
    assert [str(tick) for tick in seen.upcoming_local(1)] == ["2030-01-02 09:00:00+01:00"]
    assert await app.schedules.anext_fires("morning", 3) == fires
    other = await app.schedules.aget("welcome")
    assert (other.record.task.queue, other.record.task.arguments) == ("mail", '{"user_id":8}')
    assert other.upcoming(1) == [clock.now() + 5 * MINUTE]
    await app.schedules.aremove("welcome")
    assert [seen.name for seen in await app.schedules.alist()] == ["morning"]


def test_the_blocking_forms_do_the_same(app: App):
    app.schedules.add(app.get_task("welcome"), Schedule(60, name="x"), 1)
    assert app.schedules.pause("x").paused
    assert app.schedules.next_fires("x") == []
    assert not app.schedules.resume("x").paused
    handle = app.schedules.run_now("x")
    assert handle.state() == "pending"
    (run,) = app.schedules.runs("x")
    assert (run.task, run.manual) == (handle.id, True)
    assert app.schedules.set("x", jitter=5).record.jitter == 5
    app.schedules.remove("x")
    assert list(app.schedules.list()) == []


@pytest.mark.requirement("R104")
@pytest.mark.parametrize("expression", ["", "*", "* * * *", "* * * * * *", "0 0 12 * * ? 2030", "a b c d e"])
async def test_only_five_fields_of_cron_are_saved(app: App, expression: str):
    """R104: whatever has not exactly five fields is refused by `add` and by `set`, and nothing was written."""
    task = app.get_task("welcome")
    with pytest.raises(OptionError, match="cron expression"):
        await app.schedules.aadd(task, expression, 7)
    assert await app.schedules.alist() == []
    await app.schedules.aadd(task, "*/5 * * * *", 7)
    with pytest.raises(OptionError, match="cron expression"):
        await app.schedules.aset("welcome", when=expression)
    assert (await app.schedules.aget("welcome")).cadence == Cron("*/5 * * * *")


@pytest.mark.requirement("R102")
async def test_changes_take_effect_without_a_restart(app: App, clock: FakeClock):
    """R102: one scheduler runs all the time; a schedule that is added, changed, disabled (paused), enabled and removed
    through another store is followed from its next look on: the ticks that fired are exactly those."""
    store = app.new_store()
    await store.open()
    scheduler = ScheduleEnqueuer(store=store)

    async def minutes(n: int) -> None:
        for _ in range(n):
            clock.advance(MINUTE)
            while await scheduler.run_once() == 0:
                pass

    async def fired() -> list[int]:
        return [int((run.tick - start) / MINUTE) for run in reversed(await app.schedules.aruns("welcome"))]

    start = clock.now()
    try:
        await minutes(2)
        await app.schedules.aadd(app.get_task("welcome"), Schedule("*/2 * * * *", overlap="allow"), 7)
        await minutes(4)
        assert await fired() == [4, 6]
        await app.schedules.aset("welcome", when="*/3 * * * *")
        await minutes(6)
        assert await fired() == [4, 6, 9, 12]
        await app.schedules.apause("welcome")
        await minutes(6)
        assert await fired() == [4, 6, 9, 12]
        await app.schedules.aresume("welcome")
        await minutes(3)
        assert await fired() == [4, 6, 9, 12, 21]
        await app.schedules.aset("welcome", task=app.get_task("welcome").prepare(8))
        await minutes(3)
        newest = (await app.schedules.aruns("welcome", limit=1))[0].task
        assert newest is not None
        assert (await app.tasks.aget(newest)).arguments == '{"user_id":8}'
        await app.schedules.aremove("welcome")
        before = len(await store.list(TaskFilter(limit=100)))
        await minutes(6)
        assert len(await store.list(TaskFilter(limit=100))) == before
    finally:
        await store.close()


async def test_what_is_wrong_is_refused_before_anything_is_written(app: App, clock: FakeClock):
    task = app.get_task("welcome")
    with pytest.raises(OptionError, match="is over"):
        await app.schedules.aadd(task, clock.now() - MINUTE, 7)
    with pytest.raises(ArgumentError, match="'user_id'"):
        await app.schedules.aadd(task, 60, "seven")
    with pytest.raises(OptionError, match="job=3"):
        await app.schedules.aadd(task.using(job=3), 60, 7)
    assert await app.schedules.alist() == []
    await app.schedules.aadd(task, 60, 7)
    with pytest.raises(WrongState, match=r"already.*set"):
        await app.schedules.aadd(task, 90, 7)
    with pytest.raises(OptionError, match="is over"):
        await app.schedules.aset("welcome", when=clock.now() - MINUTE)
    with pytest.raises(OptionError, match="only a cron expression has a zone"):
        await app.schedules.aset("welcome", tz="Europe/Berlin")
    with pytest.raises(OptionError, match="drops all"):
        await app.schedules.aset("welcome", catch_up="all")
    with pytest.raises(OptionError, match="job"):
        await app.schedules.aset("welcome", task=task.using(job=3).prepare(7))
    assert (await app.schedules.aget("welcome")).record.revision == 1


@pytest.mark.parametrize("act", ["aget", "aset", "apause", "aresume", "aremove", "arun_now", "aruns", "anext_fires"])
async def test_a_name_that_nobody_has_is_not_found(app: App, act: str):
    with pytest.raises(NotFound, match="'nobody'"):
        await getattr(app.schedules, act)("nobody")


async def test_a_change_keeps_the_rest(app: App):
    task = app.get_task("welcome")
    first = Schedule("0 2 * * *", tz="Europe/Berlin", name="nightly", jitter=30, catch_up="skip", grace=600)
    before = (await app.schedules.aadd(task, first, 7)).record
    after = (await app.schedules.aset("nightly", when="0 3 * * *")).record
    assert cadence_from_json(after.cadence) == Cron("0 3 * * *", "Europe/Berlin"), "the same clocks"
    assert (after.jitter, after.catch_up, after.grace, after.task) == (30, "skip", 600, before.task)
    moved = (await app.schedules.aset("nightly", tz="Asia/Tokyo")).record
    assert cadence_from_json(moved.cadence) == Cron("0 3 * * *", "Asia/Tokyo")
    both = (await app.schedules.aset("nightly", when=3600, overlap="queue")).record
    assert both.task.gates == (Gate(kind="order", key="schedule:nightly"),)
    assert (await app.schedules.aset("nightly", overlap="allow", catch_up="all")).record.task.gates == ()


async def test_run_now_enqueues_paused_or_not_and_leaves_the_ticks_alone(app: App, clock: FakeClock, store_url: str):
    bench = Bench(store_url, clock)
    await app.schedules.aadd(app.get_task("welcome"), Schedule(60, paused=True), 7)
    first = await app.schedules.arun_now("welcome")
    second = await app.schedules.arun_now("welcome")
    assert first.id != second.id
    await app.schedules.aresume("welcome")
    async with bench.opened():
        await bench.look()
        await bench.look_at(clock.now() + MINUTE)
    runs = await app.schedules.aruns("welcome")
    assert [run.manual for run in runs] == [False, True, True]
    assert runs[0].status == "skipped", "the manual ones are unfinished, and overlap is skip"
    assert [run.task for run in runs[1:]] == [second.id, first.id]
    (older,) = await app.schedules.aruns("welcome", before=runs[1].tick)
    assert older.task == first.id


async def test_a_key_that_is_held_stops_a_manual_run(app: App):
    task: Any = app.get_task("welcome").using(unique="only-one")
    await app.schedules.aadd(task, 60, 7)
    await app.schedules.arun_now("welcome")
    with pytest.raises(WrongState, match="key"):
        await app.schedules.arun_now("welcome")


async def test_one_that_cannot_be_read_is_still_shown(app: App, clock: FakeClock, store_url: str):
    from headrace.core.schedule import NewSchedule
    from headrace.core.task import NewTask

    bench = Bench(store_url, clock)
    async with bench.opened():
        await bench.put(NewSchedule(name="odd", cadence='{"kind":"lunar"}', task=NewTask(name="welcome")))
        await bench.look()
    seen = await app.schedules.aget("odd")
    assert (seen.describe(), seen.upcoming(3), seen.zone.key) == ('{"kind":"lunar"}', [], "UTC")
    assert "lunar" in (seen.problem or "")


async def test_fire_due_does_what_a_scheduler_does_at_one_look(app: App, clock: FakeClock):
    await app.schedules.aadd(app.get_task("welcome"), Schedule(1, name="all", catch_up="all"), 7)
    await app.schedules.aadd(app.get_task("welcome"), Schedule(MINUTE, name="one"), 8)
    assert await app.schedules.afire_due() == []
    clock.advance(3 * MINUTE)
    fired = await app.schedules.afire_due()
    assert [fire.schedule for fire in fired].count("all") == 180, "looks again until the backlog is gone"
    assert [(fire.tick, fire.verdict) for fire in fired if fire.schedule == "one"] == [(clock.now(), "enqueue")]
    assert await app.schedules.afire_due() == []


async def test_a_task_that_this_version_cannot_read_is_not_written_back(app: App, monkeypatch: pytest.MonkeyPatch):
    await app.schedules.aadd(app.get_task("welcome"), Schedule(60, name="often"), 7)
    with monkeypatch.context() as older:

        def unknown(text: str) -> None:
            raise TypeError("colour")

        older.setattr("headrace.store.schedules.new_task_from_json", unknown)
        with pytest.raises(WrongState, match="colour"):
            await app.schedules.aset("often", jitter=30)
    seen = await app.schedules.aget("often")
    assert (seen.task, seen.record.jitter, seen.problem) == ("welcome", 0.0, None)


async def test_one_look_with_the_clock_ahead_is_told_of_and_mended_by_a_pause(app: App, clock: FakeClock):
    """No tick up to the cursor fires again, so none is promised before it."""
    start = clock.now()
    seen = await app.schedules.aadd(app.get_task("welcome"), Schedule(60, name="often", overlap="allow"), 7)
    assert seen.silent_until is None
    ahead = start + timedelta(days=30)
    clock.move_to(ahead)
    assert len(await app.schedules.afire_due()) == 1
    clock.step_wall_clock(start + MINUTE - ahead)  # somebody sets it right
    assert await app.schedules.afire_due() == []
    seen = await app.schedules.aget("often")
    assert (seen.silent_until, seen.upcoming(1)) == (ahead, [ahead + MINUTE])
    assert (await app.schedules.apause("often")).silent_until is None
    seen = await app.schedules.aresume("often")
    assert (seen.silent_until, seen.upcoming(1)) == (None, [start + 2 * MINUTE])
    await app.schedules.afire_due()
    clock.move_to(start + 2 * MINUTE)
    assert [fire.tick for fire in await app.schedules.afire_due()] == [start + 2 * MINUTE]
