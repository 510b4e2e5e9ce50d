"""Who is dead: the judgement alone, on made-up instants."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.worker.death import Beat, connected_since, judge, next_look, observe, wall_clock_stepped

LEASE = 30.0
INTERVAL = 10.0
SWEEP = 3.0


def steady(until: float, *, since: float = 0.0) -> list[float]:
    """Own heartbeats without a gap."""
    instants: list[float] = []
    at = since
    while at <= until:
        instants.append(at)
        at += INTERVAL
    return instants


def seen(beat: int, *, now: float, known=()):
    return observe(known, [Beat(worker="w", beat=beat, lease=LEASE)], now=now)


def test_a_beat_that_stands_still_for_most_of_a_lease_is_death() -> None:
    observations = seen(7, now=0.0)
    assert judge(observations, steady(23), now=23.9, interval=INTERVAL) == ()
    (verdict,) = judge(observations, steady(24), now=24.0, interval=INTERVAL)
    assert (verdict.worker, verdict.beat) == ("w", 7)


def test_a_beat_that_moved_starts_the_count_anew() -> None:
    observations = seen(8, now=20.0, known=seen(7, now=0.0))
    assert judge(observations, steady(40), now=43.0, interval=INTERVAL) == ()
    assert judge(observations, steady(40), now=44.0, interval=INTERVAL)


@pytest.mark.requirement("A67")
def test_an_outage_makes_nobody_dead() -> None:
    """Own heartbeats failed for longer than two intervals: silence seen until then proves nothing."""
    observations = seen(7, now=0.0)
    before_outage, after = [0.0, 10.0], [100.0, 110.0]
    assert judge(observations, before_outage, now=90.0, interval=INTERVAL) == ()
    assert judge(observations, before_outage + after, now=115.0, interval=INTERVAL) == ()
    later = [*before_outage, *after, 120.0, 130.0]
    assert judge(observations, later, now=130.0, interval=INTERVAL)


def look(observations, own_beats, *, now: float) -> float:
    return next_look(observations, own_beats, now=now, interval=INTERVAL, sweep=SWEEP)


def test_the_next_look_comes_after_a_sweep_while_nobody_is_silent_for_long() -> None:
    assert look((), steady(20), now=20.0) == SWEEP
    assert look(seen(7, now=0.0), steady(20), now=20.0) == SWEEP


def test_the_next_look_comes_when_the_first_silence_becomes_death() -> None:
    """Not a sweep later; and at that instant the verdict falls."""
    observations = (*seen(7, now=0.0), *observe((), [Beat(worker="v", beat=1, lease=LEASE)], now=1.0))
    after = look(observations, steady(22), now=22.5)
    assert after == pytest.approx(1.5)
    (verdict,) = judge(observations, steady(24), now=22.5 + after, interval=INTERVAL)
    assert verdict.worker == "w"


def test_looks_never_follow_each_other_without_a_pause() -> None:
    for now in (23.999, 24.0, 30.0):
        assert 0.1 < look(seen(7, now=0.0), steady(now), now=now) < SWEEP


def test_a_judge_that_was_away_looks_when_its_own_silence_allows_a_verdict() -> None:
    """Connected again since 10: nobody is dead before 34, so at 23 there is no hurry; without a beat there is none."""
    assert look(seen(7, now=0.0), steady(30, since=10.0), now=23.0) == SWEEP
    assert look(seen(7, now=0.0), steady(30, since=10.0), now=33.0) == pytest.approx(1.0)
    assert look(seen(7, now=0.0), [0.0], now=33.0) == SWEEP


def test_workers_that_are_gone_are_forgotten() -> None:
    assert observe(seen(7, now=0.0), [], now=1.0) == ()


def test_the_clock_of_the_host_may_not_step() -> None:
    assert not wall_clock_stepped(wall_before=0, wall_now=14, monotonic_before=0, monotonic_now=0, lease=LEASE)
    assert wall_clock_stepped(wall_before=0, wall_now=16, monotonic_before=0, monotonic_now=0, lease=LEASE)
    assert wall_clock_stepped(wall_before=0, wall_now=-16, monotonic_before=0, monotonic_now=0, lease=LEASE)


@given(st.lists(st.floats(0, 1000), min_size=1).map(sorted), st.floats(0, 200))
def test_connected_since_never_spans_a_gap(instants: list[float], after: float) -> None:
    now = instants[-1] + after
    since = connected_since(instants, now=now, interval=INTERVAL)
    if since is None:
        assert after > 2 * INTERVAL
        return
    chain = [instant for instant in instants if instant >= since] + [now]
    assert all(later - earlier <= 2 * INTERVAL for earlier, later in itertools.pairwise(chain))
