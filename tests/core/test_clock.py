"""The host's clock is aware and monotonic; the fake one moves only when told to."""

from datetime import UTC, datetime, timedelta, timezone

from headrace.core.clock import Clock, FakeClock, SystemClock


def test_the_system_clock_is_aware_and_never_goes_back() -> None:
    clock: Clock = SystemClock()
    before = datetime.now(UTC)
    assert before <= clock.now() <= datetime.now(UTC)
    assert clock.now().utcoffset() == timedelta(0)
    first = clock.monotonic()
    assert clock.monotonic() >= first


def test_the_fake_clock_moves_both_faces_together() -> None:
    clock = FakeClock(instant=datetime(2030, 6, 1, 12, tzinfo=timezone(timedelta(hours=2))))
    as_clock: Clock = clock
    assert as_clock.now() == datetime(2030, 6, 1, 10, tzinfo=UTC)
    assert as_clock.now().tzinfo is UTC
    clock.advance(90)
    assert clock.now() == datetime(2030, 6, 1, 10, 1, 30, tzinfo=UTC)
    assert clock.monotonic() == 90.0


def test_a_step_of_the_wall_clock_leaves_the_monotonic_one() -> None:
    clock = FakeClock()
    clock.step_wall_clock(timedelta(hours=-1))
    assert clock.now() == datetime(2029, 12, 31, 23, tzinfo=UTC)
    assert clock.monotonic() == 0.0
