"""The breaker's life, second by second."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.breaker import (
    Allow,
    BreakerPolicy,
    BreakerState,
    BreakerStatus,
    Probe,
    Refuse,
    abandon_probe,
    allow,
    record,
    status_at,
)
from headrace.core.errors import OptionError


def after(outcomes: list[bool], *, state: BreakerState | None = None, now: float = 1000.0) -> BreakerState:
    state = state or BreakerState()
    for ok in outcomes:
        state = record(state, ok, now)
    return state


def half_open(now: float = 1060.0) -> BreakerState:
    admission, state = allow(after([False] * 10), now)
    assert admission == Probe()
    return state


@pytest.mark.requirement("F35")
def test_opens_at_the_volume_and_failure_thresholds() -> None:
    """F35: 5 failures of 10 open it; 4 of 10 do not."""
    assert after([True] * 5 + [False] * 5).status is BreakerStatus.OPEN
    assert after([True] * 6 + [False] * 4).status is BreakerStatus.CLOSED


@pytest.mark.requirement("F39")
def test_never_opens_below_the_volume_threshold() -> None:
    """F39: nine failures of nine leave it closed; the tenth opens it."""
    nine = after([False] * 9)
    assert nine.status is BreakerStatus.CLOSED
    assert allow(nine, 1000.0)[0] == Allow()
    assert record(nine, False, 1000.0).status is BreakerStatus.OPEN


@pytest.mark.requirement("F37")
def test_open_refuses_until_the_timeout_then_becomes_half_open() -> None:
    """F37: refused at 59.9 s with the reopen time, half open at 60 s."""
    state = after([False] * 10)
    assert allow(state, 1059.9) == (Refuse(1060.0), state)
    assert status_at(state, 1059.9) is BreakerStatus.OPEN
    assert status_at(state, 1060.0) is BreakerStatus.HALF_OPEN
    admission, probing = allow(state, 1060.0)
    assert admission == Probe()
    assert probing.status is BreakerStatus.HALF_OPEN


def test_half_open_admits_one_probe_at_a_time() -> None:
    state = half_open()
    assert allow(state, 1061.0)[0] == Refuse(1120.0)
    # Its caller may have died: after another timeout the next one may try.
    assert allow(state, 1120.0)[0] == Probe()


@pytest.mark.requirement("F38")
def test_the_probe_closes_with_fresh_counts_or_opens_again() -> None:
    """F38: after success the counts are zero, so nine failures keep it closed; after failure a new timeout runs from
    then.
    """
    closed = record(half_open(), True, 1061.0)
    assert (closed.status, closed.calls, closed.failures) == (BreakerStatus.CLOSED, 0, 0)
    assert after([False] * 9, state=closed, now=1062.0).status is BreakerStatus.CLOSED

    opened = record(half_open(), False, 1065.0)
    assert opened.status is BreakerStatus.OPEN
    assert allow(opened, 1124.9)[0] == Refuse(1125.0)
    assert allow(opened, 1125.0)[0] == Probe()


def test_late_outcomes_of_earlier_calls_do_not_decide() -> None:
    opened = after([False] * 10)
    assert record(opened, True, 1001.0) is opened
    probing = half_open()
    assert record(probing, True, 1061.0, probe=False) is probing


def test_an_abandoned_probe_lets_the_next_caller_probe_at_once() -> None:
    state = abandon_probe(half_open())
    assert state.status is BreakerStatus.OPEN
    assert allow(state, 1061.0)[0] == Probe()
    closed = BreakerState()
    assert abandon_probe(closed) is closed


@pytest.mark.requirement("F42")
def test_old_successes_do_not_mask_an_outage() -> None:
    """F42: a thousand successes of an hour ago weigh nothing; ten failures now open it."""
    state = after([True] * 1000, now=1000.0)
    assert state.calls == 1000
    for second in range(10):
        state = record(state, False, 4600.0 + second)
    assert state.status is BreakerStatus.OPEN


def test_old_failures_are_forgotten_too() -> None:
    state = after([False] * 9, now=1000.0)
    state = after([False] * 9, state=state, now=1061.0)
    assert state.status is BreakerStatus.CLOSED
    assert state.calls == 9


@given(st.lists(st.tuples(st.floats(0, 30), st.booleans()), max_size=200))
def test_the_window_holds_only_recent_calls_and_stays_small(steps: list[tuple[float, bool]]) -> None:
    policy = BreakerPolicy(window=60, volume_threshold=1_000_000)
    state, now, calls = BreakerState(policy=policy), 1_000.0, list[float]()
    for step, ok in steps:
        now += step
        calls.append(now)
        state = record(state, ok, now)
        # The window is exact to one of its ten slices.
        assert sum(at > now - 54 for at in calls) <= state.calls <= sum(at > now - 60 for at in calls)
        assert len(state.buckets) <= 10


def test_a_clock_that_went_back_keeps_counting() -> None:
    state = after([False] * 5, now=1000.0)
    state = after([False] * 5, state=state, now=980.0)
    assert state.status is BreakerStatus.OPEN


@pytest.mark.parametrize(
    "options",
    [{"failure_threshold": 0}, {"failure_threshold": 1.1}, {"volume_threshold": 0}, {"timeout": 0}, {"window": -1}],
)
def test_impossible_policies_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        BreakerPolicy(**options)  # type: ignore[arg-type]
