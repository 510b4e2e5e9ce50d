"""Cadences without a calendar: every so often, and once."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headrace.core.durations import Duration, as_timedelta
from headrace.core.errors import OptionError
from headrace.scheduling.base import Cadence, in_utc

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# A scheduler looks about once a second, and jitter is drawn for a second (see `ticks.jitter`).
_SHORTEST = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Every(Cadence):
    """A grid of real time: `anchor`, `anchor + interval`, `anchor + 2 * interval`, … and nothing before the anchor.

    The grid does not depend on when a process starts, so a restart does not shift it, and two schedulers agree. Without
    an anchor it starts with the year 1970 in UTC: every 15 minutes is at :00, :15, :30 and :45. `interval` is a
    timedelta or seconds. Daylight saving plays no part.
    """

    interval: timedelta
    anchor: datetime = EPOCH

    def __init__(self, interval: Duration, anchor: datetime = EPOCH) -> None:
        length = as_timedelta(interval, name="Every.interval")
        if length < _SHORTEST:
            raise OptionError(f"Every.interval must be at least one second, not {interval!r}")
        object.__setattr__(self, "interval", length)
        object.__setattr__(self, "anchor", in_utc(anchor, name="Every.anchor"))

    def next_after(self, instant: datetime) -> datetime | None:
        elapsed = in_utc(instant, name="instant") - self.anchor
        if elapsed < timedelta(0):
            return self.anchor
        try:
            # Whole microseconds throughout, so the grid is exact however far from its anchor.
            return self.anchor + (elapsed // self.interval + 1) * self.interval
        except OverflowError:
            return None

    def describe(self) -> str:
        text = f"Every {_in_words(self.interval)}"
        return text if self.anchor == EPOCH else f"{text}, counted from {_instant_in_words(self.anchor)}"


@dataclass(frozen=True, slots=True)
class Once(Cadence):
    """One tick, at `at`."""

    at: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", in_utc(self.at, name="Once.at"))

    def next_after(self, instant: datetime) -> datetime | None:
        return self.at if in_utc(instant, name="instant") < self.at else None

    def describe(self) -> str:
        return f"Once, at {_instant_in_words(self.at)}"


def _instant_in_words(instant: datetime) -> str:
    return f"{instant.replace(tzinfo=None).isoformat(sep=' ')} UTC"


def _in_words(length: timedelta) -> str:
    """2 hours 30 minutes; a single unit needs no number: «every hour»."""
    rest = length
    parts: list[tuple[int, str]] = []
    for unit, size in (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1))):
        count, rest = divmod(rest, size)
        if count:
            parts.append((count, unit))
    words = [f"{count} {unit}{'s' if count > 1 else ''}" for count, unit in parts]
    if rest:
        words.append("1 second" if rest == _SHORTEST else f"{rest.total_seconds():g} seconds")
    text = " ".join(words)
    return text.removeprefix("1 ") if len(words) == 1 else text
