"""What is done about ticks that have passed."""

import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.schedule import CatchUp, Overlap, Verdict, overlap
from headrace.scheduling.cadence import Cadence, Cron, Every, Once
from headrace.scheduling.ticks import Due, due, jitter

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOURLY = Cron("@hourly", "Europe/Berlin")
WEEK = timedelta(days=7)


def look(
    cadence: Cadence, cursor: datetime, now: datetime, catch_up: CatchUp, *, grace: timedelta = MINUTE, limit: int = 100
) -> Due:
    return due(cadence, cursor=cursor, now=now, catch_up=catch_up, grace=grace, limit=limit)


@pytest.mark.parametrize("catch_up", ["coalesce", "skip", "all"])
def test_a_tick_is_due_at_its_instant_and_not_before(catch_up: CatchUp) -> None:
    one = NOON + timedelta(hours=1)
    early = look(HOURLY, NOON, one - timedelta(microseconds=1), catch_up)
    assert early == Due(ticks=(), cursor=NOON, next_look=one)
    for late in (timedelta(0), timedelta(seconds=3), MINUTE):
        found = look(HOURLY, NOON, one + late, catch_up)
        assert found == Due(ticks=(one,), cursor=one, next_look=one + timedelta(hours=1))
    assert look(HOURLY, one, one + MINUTE, catch_up).ticks == ()


def test_after_a_week_coalesce_fires_once_for_all() -> None:
    now = NOON + WEEK + 20 * MINUTE
    assert look(HOURLY, NOON, now, "coalesce") == Due(
        ticks=(NOON + WEEK,), cursor=NOON + WEEK, next_look=NOON + WEEK + timedelta(hours=1)
    )


def test_after_a_week_skip_fires_nothing_that_is_older_than_the_grace() -> None:
    found = look(HOURLY, NOON, NOON + WEEK + 20 * MINUTE, "skip")
    assert found == Due(ticks=(), cursor=NOON + WEEK, next_look=NOON + WEEK + timedelta(hours=1))
    fresh = look(HOURLY, NOON, NOON + WEEK + MINUTE, "skip")
    assert fresh.ticks == (NOON + WEEK,)
    stale = look(HOURLY, NOON, NOON + WEEK + MINUTE + timedelta(microseconds=1), "skip")
    assert stale.ticks == ()
    # Two that are both fresh are two fires: a grace is about lateness, and neither is late.
    both = look(HOURLY, NOON, NOON + WEEK, "skip", grace=timedelta(hours=1))
    assert both.ticks == (NOON + WEEK - timedelta(hours=1), NOON + WEEK)


def test_after_a_week_all_fires_each_in_portions_oldest_first() -> None:
    now = NOON + WEEK + 20 * MINUTE
    cursor, fired, looks = NOON, list[datetime](), list[Due]()
    while not looks or looks[-1].next_look == now:
        looks.append(look(HOURLY, cursor, now, "all", limit=50))
        fired += looks[-1].ticks
        cursor = looks[-1].cursor
    assert fired == [NOON + timedelta(hours=n) for n in range(1, 169)]
    assert [len(found.ticks) for found in looks] == [50, 50, 50, 18]
    assert looks[-1].next_look == NOON + WEEK + timedelta(hours=1)


def test_skip_is_cut_by_the_limit_too_and_goes_on_where_it_was_cut() -> None:
    every = Every(1)
    first = look(every, NOON, NOON + WEEK, "skip", limit=40)
    assert first.ticks == tuple(NOON + WEEK - MINUTE + timedelta(seconds=n) for n in range(40))
    assert first.next_look == NOON + WEEK
    second = look(every, first.cursor, NOON + WEEK, "skip", limit=40)
    assert len(first.ticks + second.ticks) == 61
    assert second.cursor == NOON + WEEK


def test_a_year_of_minutes_is_coalesced_in_few_steps() -> None:
    """Counted, not timed: half a million ticks have passed."""

    class Counting(Cadence):
        asked = 0

        def next_after(self, instant: datetime) -> datetime | None:
            self.asked += 1
            return Every(60).next_after(instant)

        def describe(self) -> str:
            return "Every minute, counting"

    cadence = Counting()
    found = look(cadence, NOON, NOON + timedelta(days=365), "coalesce")
    assert found.ticks == (NOON + timedelta(days=365),)
    assert cadence.asked < 100


def test_a_schedule_that_is_over_is_never_looked_at_again() -> None:
    once = Once(NOON)
    assert look(once, NOON - WEEK, NOON - MINUTE, "coalesce").next_look == NOON
    assert look(once, NOON - WEEK, NOON + WEEK, "coalesce") == Due(ticks=(NOON,), cursor=NOON, next_look=None)
    assert look(once, NOON - WEEK, NOON + WEEK, "skip") == Due(ticks=(), cursor=NOON, next_look=None)
    assert look(once, NOON, NOON + WEEK, "all") == Due(ticks=(), cursor=NOON, next_look=None)


@pytest.mark.parametrize("catch_up", ["coalesce", "skip", "all"])
def test_a_clock_that_is_set_back_brings_no_tick_back(catch_up: CatchUp) -> None:
    found = look(HOURLY, NOON, NOON - timedelta(hours=3), catch_up)
    assert found == Due(ticks=(), cursor=NOON, next_look=NOON + timedelta(hours=1))


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="limit must be at least 1, not 0"):
        look(HOURLY, NOON, NOON, "all", limit=0)


@given(
    seed=st.integers(0, 2**32),
    catch_up=st.sampled_from(["coalesce", "skip", "all"]),
    every=st.integers(1, 500),
    limit=st.integers(1, 5),
)
def test_whatever_the_looks_each_tick_is_decided_once(seed: int, catch_up: CatchUp, every: int, limit: int) -> None:
    """Schedulers that look at odd moments, some with a cursor they read too early: only who finds the cursor where it
    was read moves it. No tick fires twice, they fire in order, and `all` leaves none out."""
    rng = random.Random(seed)
    cadence = Every(every)
    cursor = now = NOON
    fired: list[datetime] = []
    while now < NOON + timedelta(hours=1):
        now += timedelta(seconds=rng.expovariate(1 / 200))
        seen = cursor
        for lag in (timedelta(0), timedelta(seconds=rng.uniform(0, 30))):  # the second scheduler's clock is behind
            found = look(cadence, seen, now - lag, catch_up, limit=limit)
            assert found.cursor >= seen
            assert found.next_look is not None
            if cursor == seen:
                cursor = found.cursor
                fired += found.ticks
    while (rest := look(cadence, cursor, now, catch_up, limit=limit)).ticks:
        cursor = rest.cursor
        fired += rest.ticks
    passed = list(cadence.fires(NOON, now))
    assert fired == sorted(set(fired))
    assert set(fired) <= set(passed)
    if catch_up == "all":
        assert fired == passed
    elif catch_up == "coalesce" and passed:
        assert fired[-1] == passed[-1]


def test_jitter_goes_by_the_instant_not_by_its_zone() -> None:
    berlin = NOON.astimezone(ZoneInfo("Europe/Berlin"))
    assert jitter(7, berlin, MINUTE) == jitter(7, NOON, MINUTE)


@given(st.floats(1, 5), st.datetimes(datetime(1960, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_no_two_ticks_of_a_schedule_share_a_jitter(interval: float, anchor: datetime) -> None:
    ticks = Every(interval, anchor).upcoming(30, after=anchor)
    assert len({jitter(1, tick, timedelta(days=1000)) for tick in ticks}) == 30


def test_jitter_is_the_same_everywhere_and_spreads() -> None:
    spread = timedelta(minutes=10)
    ticks = [NOON + n * MINUTE for n in range(500)]
    drawn = [jitter(7, tick, spread) for tick in ticks]
    assert all(timedelta(0) <= delay <= spread for delay in drawn)
    assert min(drawn) < spread * 0.05
    assert max(drawn) > spread * 0.95
    assert len(set(drawn)) > 490
    assert drawn != [jitter(8, tick, spread) for tick in ticks]
    assert {jitter(7, tick, timedelta(0)) for tick in ticks} == {timedelta(0)}
    # Another process, with another seed for the hashes of texts.
    program = (
        "from datetime import *; from headrace.scheduling.ticks import jitter;"
        "print(jitter(7, datetime(2026, 6, 1, 12, tzinfo=UTC), timedelta(minutes=10)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(drawn[0])


@pytest.mark.parametrize(
    ("policy", "idle", "one_waits", "one_runs", "one_runs_one_waits"),
    [
        ("allow", "enqueue", "enqueue", "enqueue", "enqueue"),
        ("skip", "enqueue", "skip", "skip", "skip"),
        ("queue", "enqueue", "skip", "enqueue", "skip"),
        ("replace", "enqueue", "replace", "replace", "replace"),
    ],
)
def test_what_becomes_of_a_fire_while_an_earlier_one_is_unfinished(
    policy: Overlap, idle: Verdict, one_waits: Verdict, one_runs: Verdict, one_runs_one_waits: Verdict
) -> None:
    assert overlap(policy, waiting=0, running=0) == idle
    assert overlap(policy, waiting=1, running=0) == one_waits
    assert overlap(policy, waiting=0, running=1) == one_runs
    assert overlap(policy, waiting=1, running=1) == one_runs_one_waits
    # With `queue` one of the two has been claimed too early, and waits again in a moment.
    assert overlap(policy, waiting=0, running=2) == one_runs_one_waits
