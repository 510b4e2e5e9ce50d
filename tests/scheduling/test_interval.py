"""Every so often on a fixed grid, and once."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import OptionError
from headrace.scheduling.cadence import Every, Once

ANCHOR = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001

instants = st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
intervals = st.timedeltas(timedelta(seconds=1), timedelta(days=400))


@given(interval=intervals, anchor=instants, instant=instants)
def test_the_next_tick_lies_on_the_grid_and_is_the_first_after(
    interval: timedelta, anchor: datetime, instant: datetime
) -> None:
    tick = Every(interval, anchor).next_after(instant)
    assert tick is not None
    assert tick > instant
    assert tick >= anchor
    assert (tick - anchor) % interval == timedelta(0)
    assert tick == anchor or tick - interval <= instant


def test_a_restart_does_not_shift_the_grid() -> None:
    every = Every(timedelta(minutes=7), ANCHOR)
    straight = every.upcoming(50, after=ANCHOR)
    restarted = [every.next_after(tick - timedelta(minutes=n % 7, microseconds=1)) for n, tick in enumerate(straight)]
    assert straight == [ANCHOR + n * timedelta(minutes=7) for n in range(1, 51)]
    assert set(restarted) <= {ANCHOR, *straight}


def test_without_an_anchor_it_is_the_grid_of_utc() -> None:
    found = Every(timedelta(minutes=15)).upcoming(3, after=ANCHOR)
    assert [tick.strftime("%H:%M:%S") for tick in found] == ["12:15:00", "12:30:00", "12:45:00"]
    assert Every(900) == Every(timedelta(minutes=15))


def test_nothing_before_the_anchor() -> None:
    every = Every(60, ANCHOR)
    assert every.next_after(ANCHOR - timedelta(days=3)) == ANCHOR
    assert every.next_after(ANCHOR) == ANCHOR + timedelta(minutes=1)


@pytest.mark.parametrize("interval", [0, -1, 0.5, timedelta(0), timedelta(seconds=-5), float("nan"), "5", True, 10**20])
def test_what_is_no_interval_is_refused(interval: float) -> None:
    with pytest.raises(OptionError, match=r"^Every\.interval must ") as caught:
        Every(interval)
    assert "\n" not in str(caught.value)


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(OptionError, match=r"Every\.anchor must have a time zone, as in datetime\(\.\.\., tzinfo=UTC\)"):
        Every(60, NAIVE)
    with pytest.raises(OptionError, match=r"Once\.at must have a time zone"):
        Once(NAIVE)
    with pytest.raises(OptionError, match=r"Once\.at must be a datetime with a time zone, not 'tomorrow'"):
        Once("tomorrow")  # type: ignore[arg-type]
    for cadence in (Every(60), Once(ANCHOR)):
        with pytest.raises(OptionError, match="instant must have a time zone"):
            cadence.next_after(NAIVE)


def test_once_is_once() -> None:
    once = Once(ANCHOR)
    assert once.next_after(ANCHOR - timedelta(microseconds=1)) == ANCHOR
    assert once.next_after(ANCHOR) is None
    assert once.upcoming(5, after=ANCHOR - timedelta(days=1)) == [ANCHOR]
    assert once.latest(ANCHOR - timedelta(days=1), ANCHOR) == ANCHOR
    assert once.latest(ANCHOR, ANCHOR + timedelta(days=1)) is None


@given(interval=intervals, start=instants, length=st.timedeltas(timedelta(0), timedelta(days=900)))
def test_the_latest_is_the_last_tick_of_the_range(interval: timedelta, start: datetime, length: timedelta) -> None:
    every = Every(interval, ANCHOR)
    found = every.latest(start, start + length)
    if found is None:
        following = every.next_after(start)
        assert following is None or following > start + length
    else:
        assert start < found <= start + length < found + interval
        assert (found - ANCHOR) % interval == timedelta(0)


def test_fires_stop_at_their_end_and_at_their_limit() -> None:
    every = Every(60)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    end = start + timedelta(minutes=3)
    assert list(every.fires(start, end)) == [start + timedelta(minutes=n) for n in (1, 2, 3)]
    assert list(every.fires(start, end, limit=2)) == [start + timedelta(minutes=n) for n in (1, 2)]
    assert list(every.fires(start, start)) == []
    assert Every(86_400).next_after(datetime(9999, 12, 31, 12, tzinfo=UTC)) is None


def test_sentences_for_people() -> None:
    assert Every(1).describe() == "Every second"
    assert Every(3600).describe() == "Every hour"
    assert Every(7200).describe() == "Every 2 hours"
    assert Every(90).describe() == "Every 1 minute 30 seconds"
    assert Every(1.5).describe() == "Every 1.5 seconds"
    assert Every(86_400, ANCHOR).describe() == "Every day, counted from 2026-01-01 12:00:30 UTC"
    assert Once(ANCHOR).describe() == "Once, at 2026-01-01 12:00:30 UTC"
