"""The service that fires schedules, on both stores and a clock that the test moves."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.core.errors import OptionError
from headrace.core.schedule import Fired, NewSchedule, ScheduleRecord
from headrace.core.task import NewTask
from headrace.scheduling import enqueuer
from headrace.scheduling.cadence import Cron, Every, Once, cadence_to_json
from headrace.telemetry.events import ScheduleFired, ScheduleSetAside
from tests.scheduling.firing import Bench

MINUTE, HOUR, DAY, WEEK = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1), timedelta(days=7)

NOOP = NewTask(name="noop")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def test_each_tick_is_enqueued_when_it_comes(bench: Bench):
    async with bench.opened():
        start = bench.clock.now()
        await bench.add("often", MINUTE, task=NewTask(name="noop", arguments='{"n":3}', queue="mail", priority=4))
        assert await bench.runs("often") == []
        await bench.look_at(start + 59 * timedelta(seconds=1))
        assert await bench.runs("often") == []
        await bench.look_at(start + MINUTE)
        await bench.look()
        (run,) = await bench.runs("often")
        assert (run.tick, run.manual, run.status) == (start + MINUTE, False, "pending")
        assert run.task is not None
        task = (await bench.store.get([run.task]))[run.task]
        assert (task.name, task.arguments, task.queue, task.priority) == ("noop", '{"n":3}', "mail", 4)
        fired = [event for event in bench.events if isinstance(event, ScheduleFired)]
        assert [(event.schedule, event.tick, event.verdict, event.task, event.late) for event in fired] == [
            ("often", start + MINUTE, "enqueue", run.task, 0.0)
        ]


async def test_the_pause_ends_a_hair_after_the_tick_and_is_never_long(bench: Bench):
    async with bench.opened():
        # What the look itself took is taken off, and on a busy machine that may be all of it.
        assert await bench.scheduler.run_once() <= 1.0
        await bench.add("often", 60)
        bench.clock.move_to(bench.clock.now() + timedelta(seconds=59.6))
        assert await bench.scheduler.run_once() <= 0.401
        bench.clock.advance(0.401)
        assert await bench.scheduler.run_once() <= 1.0
        assert len(await bench.runs("often")) == 1


async def test_a_week_of_downtime_under_each_policy(bench: Bench):
    async with bench.opened():
        start = bench.clock.now()
        await bench.add("coalesce", HOUR, overlap="allow")
        await bench.add("skip", HOUR, catch_up="skip", grace=2 * HOUR, overlap="allow")
        await bench.add("all", HOUR, catch_up="all")
        await bench.add("late", Cron("30 2 * * *", "Europe/Berlin"), catch_up="skip", grace=60)
        back = start + WEEK + timedelta(minutes=20)
        await bench.look_at(back)
        assert await bench.ticks("coalesce") == [start + WEEK], "one fire for all, of the last tick"
        assert await bench.ticks("skip") == [start + WEEK - HOUR, start + WEEK], "what the grace covers"
        assert await bench.ticks("all") == [start + n * HOUR for n in range(1, 7 * 24 + 1)]
        assert await bench.ticks("late") == []
        assert len(await bench.tasks()) == 1 + 2 + 168
        # And on it goes, as if nothing had been.
        await bench.look_at(start + WEEK + HOUR)
        for name in ("coalesce", "skip", "all"):
            assert (await bench.ticks(name))[-1] == start + WEEK + HOUR
        assert len(await bench.tasks()) == 1 + 2 + 168 + 3
        await bench.look_at(at("2030-01-09 01:30"))
        assert await bench.ticks("late") == [at("2030-01-09 01:30")], "on time it fires"


async def test_a_backlog_is_worked_off_in_bounded_batches_and_others_fire_meanwhile(sqlite_bench: Bench):
    bench = sqlite_bench
    async with bench.opened():
        start = bench.clock.now()
        await bench.add("backlog", 1, catch_up="all")
        await bench.add("other", MINUTE, catch_up="all")
        bench.clock.advance(3 * MINUTE)
        looks, counts = 0, [0]
        while True:
            pause = await bench.scheduler.run_once()
            looks += 1
            counts.append(len(await bench.tasks()))
            if pause:
                break
        assert max(later - earlier for earlier, later in itertools.pairwise(counts)) <= 100
        assert counts[1] >= 50
        assert await bench.ticks("other") == [start + n * MINUTE for n in (1, 2, 3)]
        assert await bench.ticks("backlog") == [start + timedelta(seconds=n) for n in range(1, 181)]
        assert looks >= 2


async def test_a_backlog_that_another_scheduler_takes_is_not_asked_for_again_at_once(sqlite_bench: Bench):
    bench = sqlite_bench
    async with bench.opened():
        await bench.add("backlog", 1, catch_up="all")
        bench.clock.advance(HOUR)
        other = enqueuer.ScheduleEnqueuer(store=bench.store)
        due = bench.store.due_schedules

        async def beaten(**asked: Any):
            found = await due(**asked)
            bench.store.due_schedules = due  # type: ignore[method-assign]
            assert await other.run_once() == 0
            return found

        bench.store.due_schedules = beaten  # type: ignore[method-assign]
        patient = enqueuer.ScheduleEnqueuer(store=bench.store, longest=600.0)
        assert await patient.run_once() > 0
        assert len(await bench.tasks()) == 100, "the loser enqueued nothing"


async def test_more_than_a_look_holds_are_due_and_none_of_them_moves(sqlite_bench: Bench):
    """Another scheduler has them in its hands: to ask again at once would be to ask without end."""
    bench = sqlite_bench
    async with bench.opened():
        cadence = cadence_to_json(Every(60))
        await bench.put(*(NewSchedule(name=f"{n}", cadence=cadence, task=NOOP) for n in range(101)))
        await bench.look()
        bench.clock.advance(MINUTE)
        patient = enqueuer.ScheduleEnqueuer(store=bench.store, longest=600.0)
        fire = bench.store.fire

        async def beaten(firings: Any) -> list[Fired]:
            return []

        bench.store.fire = beaten  # type: ignore[method-assign]
        assert await patient.run_once() > 0
        bench.store.fire = fire  # type: ignore[method-assign]
        assert await patient.run_once() == 0, "a hundred moved, and one is left"
        await patient.run_once()
        assert len(await bench.tasks()) == 101


@pytest.mark.parametrize(
    ("zone", "expression", "day", "expected"),
    [
        # Spring: 02:30 does not exist and fires at the end of the gap. Autumn: it comes twice and fires once.
        ("Europe/Berlin", "30 2 * * *", "2030-03-31", ["03-30 01:30", "03-31 01:00", "04-01 00:30"]),
        ("Europe/Berlin", "30 2 * * *", "2030-10-27", ["10-26 00:30", "10-27 00:30", "10-28 01:30"]),
        ("America/New_York", "30 1 * * *", "2030-11-03", ["11-02 05:30", "11-03 05:30", "11-04 06:30"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2030-10-06", ["10-04 15:45", "10-05 15:30", "10-06 15:15"]),
    ],
)
async def test_clock_changes_end_to_end(sqlite_bench: Bench, zone: str, expression: str, day: str, expected: list[str]):
    """Through store and service, step by step around the edge: each night fires once, when the rule says."""
    bench = sqlite_bench
    async with bench.opened():
        instant = at(f"{day} 00:00") - timedelta(hours=36)
        bench.clock.move_to(instant)
        await bench.add("nightly", expression, tz=zone, overlap="allow")
        await bench.look_at(*(instant + n * timedelta(minutes=15) for n in range(1, 72 * 4)))
        assert await bench.ticks("nightly") == [at(f"2030-{text}") for text in expected]
        assert len(await bench.tasks()) == len(expected)


async def test_every_hour_follows_real_time_over_both_edges(sqlite_bench: Bench):
    bench = sqlite_bench
    async with bench.opened():
        for edge in ("2030-03-31 01:00", "2030-10-27 01:00"):
            start = at(edge) - timedelta(hours=3)
            bench.clock.move_to(start)
            await bench.add(f"hourly {edge[:7]}", "0 * * * *", tz="Europe/Berlin", catch_up="all")
            await bench.look_at(start + timedelta(hours=6))
            assert await bench.ticks(f"hourly {edge[:7]}") == [start + n * HOUR for n in range(1, 7)]
            await bench.store.remove_schedule(f"hourly {edge[:7]}")


async def test_jitter_is_a_delay_after_the_tick_and_the_same_for_every_scheduler(bench: Bench):
    """Each tick is decided by two of them, and either may be the one that fires it."""
    async with bench.opened():
        start = bench.clock.now()
        await bench.add("spread", MINUTE, jitter=30, catch_up="all", task=NewTask(name="noop", delay=5.0))
        drawn: list[float] = []
        for n in range(1, 6):
            bench.clock.move_to(start + n * MINUTE)
            (record,) = (await bench.store.due_schedules()).due
            (fire,) = enqueuer.decide(record, now=bench.clock.now(), limit=100).fires
            drawn.append(fire.delay + 5)
            await enqueuer.ScheduleEnqueuer(store=bench.store).run_once()
        delays: list[float] = []
        for run in await bench.runs("spread"):
            assert run.task is not None
            record = (await bench.store.get([run.task]))[run.task]
            delays.append((record.eligible_at - run.tick).total_seconds())
        assert all(5 <= delay <= 35 for delay in delays)
        assert len(set(delays)) == 5
        assert delays == pytest.approx(drawn, abs=1e-4)


async def test_once_fires_once_and_is_over(bench: Bench):
    async with bench.opened():
        when = bench.clock.now() + HOUR
        await bench.add("once", when)
        await bench.look_at(when - MINUTE, when, when + DAY)
        assert await bench.ticks("once") == [when]
        record = await bench.store.get_schedule("once")
        assert record is not None
        assert record.next_at is None
        # One that was over when the code declared it does not fire, and troubles nobody.
        await bench.add("long ago", Once(when - DAY))
        await bench.look_at(when + 2 * DAY)
        assert await bench.ticks("long ago") == []


async def test_what_cannot_be_read_here_is_left_to_others_and_the_rest_fires(bench: Bench):
    async with bench.opened():
        start = bench.clock.now()
        await bench.put(
            NewSchedule(name="a", cadence='{"kind":"cron","expression":"* * * * *","tz":"Mars/Olympus"}', task=NOOP),
            NewSchedule(name="b", cadence='{"kind":"lunar"}', task=NOOP),
            NewSchedule(name="c", cadence=cadence_to_json(Every(60)), task=NOOP),
        )
        await bench.look()
        await bench.look_at(start + MINUTE)
        assert await bench.ticks("c") == [start + MINUTE]
        assert [record.problem for record in await bench.store.schedules()] == [None] * 3, "of this process alone"
        aside = [event for event in bench.events if isinstance(event, ScheduleSetAside)]
        assert sorted(event.schedule for event in aside) == ["a", "b"], "told once each"
        assert all(event.here for event in aside)
        assert sorted("Mars/Olympus" in event.problem for event in aside) == [False, True]
        # Written anew it goes on.
        await bench.add("a", MINUTE)
        await bench.look_at(start + 2 * MINUTE)
        assert await bench.ticks("a") == [start + 2 * MINUTE]


async def test_more_than_one_look_holds_cannot_be_read_and_the_others_fire(sqlite_bench: Bench):
    bench = sqlite_bench
    async with bench.opened():
        start = bench.clock.now()
        await bench.put(*(NewSchedule(name=f"{n}", cadence='{"kind":"lunar"}', task=NOOP) for n in range(250)))
        bench.clock.advance(1)
        await bench.put(NewSchedule(name="late", cadence=cadence_to_json(Every(60)), task=NOOP))
        await bench.look()
        await bench.look_at(start + MINUTE)
        assert await bench.ticks("late") == [start + MINUTE]
        assert len([event for event in bench.events if isinstance(event, ScheduleSetAside)]) == 250


async def test_what_one_scheduler_cannot_read_another_one_fires(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """A host without a zone, an older version: it must not stop the schedule for those who can."""
    async with bench.opened():
        start = bench.clock.now()
        await bench.put(NewSchedule(name="zoned", cadence=cadence_to_json(Cron("* * * * *", "Asia/Tokyo")), task=NOOP))
        with monkeypatch.context() as without_zones:

            def no_zone(text: str) -> Cron:
                raise OptionError("no zone Asia/Tokyo")

            without_zones.setattr(enqueuer, "_cadence", no_zone)
            await bench.look()
            await bench.look_at(start + MINUTE)
        assert await bench.ticks("zoned") == []
        other = enqueuer.ScheduleEnqueuer(store=bench.store)
        await other.run_once()
        assert await bench.ticks("zoned") == [start + MINUTE]


async def test_a_task_that_the_store_refuses_is_told_of(bench: Bench):
    async with bench.opened():
        start = bench.clock.now()
        broken = NewTask(name="noop", max_age=1e30)
        await bench.put(NewSchedule(name="bad", cadence=cadence_to_json(Every(60)), task=broken))
        await bench.add("good", MINUTE)
        await bench.look_at(start + MINUTE)
        assert await bench.ticks("good") == [start + MINUTE]
        assert await bench.ticks("bad") == []
        record = await bench.store.get_schedule("bad")
        assert record is not None
        assert "cannot be enqueued" in (record.problem or "")
        aside = [event for event in bench.events if isinstance(event, ScheduleSetAside)]
        assert aside == [ScheduleSetAside(schedule="bad", problem=record.problem or "")]


async def test_paused_it_does_not_fire_and_resumed_it_starts_from_there(bench: Bench):
    async with bench.opened():
        start = bench.clock.now()
        await bench.add("often", MINUTE, catch_up="all")
        await bench.look_at(start + MINUTE)
        await bench.store.pause_schedule("often")
        await bench.look_at(start + 3 * MINUTE)
        assert await bench.ticks("often") == [start + MINUTE]
        await bench.store.resume_schedule("often")
        await bench.look()
        await bench.look_at(start + 4 * MINUTE)
        assert await bench.ticks("often") == [start + MINUTE, start + 4 * MINUTE]


async def test_a_pause_between_look_and_fire_wins(bench: Bench):
    async with bench.opened():
        await bench.add("often", MINUTE)
        bench.clock.advance(MINUTE)
        found = await bench.store.due_schedules()
        firings = [enqueuer.decide(record, now=found.now, limit=100) for record in found.due]
        await bench.store.pause_schedule("often")
        assert await bench.store.fire(firings) == []
        assert await bench.tasks() == []


def test_the_decision_is_pure_and_carries_what_was_read():
    now = at("2030-01-01 12:05")
    record = ScheduleRecord(
        id=7,
        name="x",
        cadence=cadence_to_json(Every(60)),
        task=NOOP,
        catch_up="all",
        grace=60.0,
        overlap="allow",
        jitter=10.0,
        paused=False,
        declared_by=None,
        revision=3,
        cursor=now - timedelta(minutes=2),
        next_at=now,
        problem=None,
        created_at=now,
        changed_at=now,
    )
    firing = enqueuer.decide(record, now=now, limit=100)
    assert firing == enqueuer.decide(record, now=now, limit=100)
    assert (firing.schedule, firing.revision, firing.cursor) == (7, 3, record.cursor)
    assert [fire.tick for fire in firing.fires] == [now - MINUTE, now]
    assert all(0 <= fire.delay <= 10 for fire in firing.fires)
    assert (firing.new_cursor, firing.next_at) == (now, now + MINUTE)
