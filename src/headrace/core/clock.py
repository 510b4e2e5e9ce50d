"""Time as a value that is passed in: decisions in `core` never read a clock themselves."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from headrace.core.durations import Duration, as_timedelta


class Clock(Protocol):
    """What the loops above `core` ask for the time."""

    def now(self) -> datetime:
        """The present instant, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean something."""
        ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The clocks of this host."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(slots=True, kw_only=True)
class FakeClock:
    """A clock that moves only when it is told to; both faces move together unless the wall clock is stepped."""

    instant: datetime = field(default=datetime(2030, 1, 1, tzinfo=UTC))
    elapsed: float = 0.0

    def __post_init__(self) -> None:
        self.instant = self.instant.astimezone(UTC)

    def now(self) -> datetime:
        return self.instant

    def monotonic(self) -> float:
        return self.elapsed

    def advance(self, by: Duration) -> None:
        """Let time pass."""
        step = as_timedelta(by, name="by")
        self.instant += step
        self.elapsed += step.total_seconds()

    def move_to(self, instant: datetime) -> None:
        """Let time pass until `instant`; a clock is not turned back by this."""
        self.advance(time_until(instant, self.instant))

    def step_wall_clock(self, by: timedelta) -> None:
        """Set the wall clock forward or back, as NTP or an operator would; the monotonic clock does not notice."""
        self.instant += by


@dataclass(slots=True, kw_only=True)
class SkippingClock:
    """The host's clock, ahead of it by the waits that were skipped: time passes by itself, and can be told to."""

    skipped: timedelta = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.skipped

    def monotonic(self) -> float:
        return time.monotonic() + self.skipped.total_seconds()

    def advance(self, by: Duration) -> None:
        """Skip so much time."""
        self.skipped += as_timedelta(by, name="by")

    def move_to(self, instant: datetime) -> None:
        """Skip the time until `instant`; one that has passed already leaves the clock as it is."""
        self.skipped += max(timedelta(0), instant - self.now())


class MovableClock(Clock, Protocol):
    """A clock for tests: time passes when it is told to."""

    def advance(self, by: Duration) -> None: ...

    def move_to(self, instant: datetime) -> None: ...


def time_until(instant: datetime, now: datetime) -> timedelta:
    """How long from `now` to `instant`. ValueError for a naive instant, or for one that has passed."""
    if instant.tzinfo is None:
        raise ValueError(f"{instant} is naive; give it a timezone, for example datetime(2030, 1, 1, tzinfo=UTC)")
    if instant < now:
        raise ValueError(f"{instant.isoformat()} has passed: it is {now.isoformat()}")
    return instant - now
