"""Cron read slowly: minute by minute, from the sets of values and not from their text, by the written rule alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Field:
    """The text of one field and the values it stands for."""

    text: str
    values: frozenset[int]


@dataclass(frozen=True, repr=False)
class Expression:
    """Five fields; either day is enough when neither starts with a star, as in Debian's cron."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field  # Sunday is 0

    @property
    def text(self) -> str:
        return " ".join(field.text for field in (self.minute, self.hour, self.day, self.month, self.weekday))

    def __repr__(self) -> str:
        return self.text

    def matches(self, wall: datetime) -> bool:
        day = wall.day in self.day.values
        weekday = wall.isoweekday() % 7 in self.weekday.values
        both = self.day.text.startswith("*") or self.weekday.text.startswith("*")
        return (
            wall.minute in self.minute.values
            and wall.hour in self.hour.values
            and wall.month in self.month.values
            and ((day and weekday) if both else (day or weekday))
        )


@cache
def clock(zone: str, start: datetime, minutes: int) -> list[tuple[datetime, datetime, bool]]:
    """What the wall clock shows at each minute of real time from `start` on, and whether it showed that before."""
    tz = ZoneInfo(zone)
    rows: list[tuple[datetime, datetime, bool]] = []
    for n in range(minutes):
        instant = start + n * MINUTE
        local = instant.astimezone(tz)
        rows.append((instant, local.replace(tzinfo=None, fold=0), local.fold == 1))
    return rows


def fires(expression: Expression, zone: str, start: datetime, minutes: int) -> Iterator[datetime]:
    """The fires after `start`. The clock is looked at each minute, and at the minutes that it jumped over."""
    fixed_hours = expression.hour.values != frozenset(range(24))
    before: datetime | None = None
    for instant, wall, again in clock(zone, start, minutes):
        if not fixed_hours:
            fire = expression.matches(wall)
        else:
            fire = expression.matches(wall) and not again
            while before is not None and before + MINUTE < wall:
                before += MINUTE
                fire = fire or expression.matches(before)
        if fire and instant > start:
            yield instant
        before = wall


@cache
def edges(zone: str, year: int) -> list[datetime]:
    """The instants of that year at which the offset changes, to the hour below."""
    tz = ZoneInfo(zone)
    hours = [datetime(year, 1, 1, tzinfo=UTC) + n * HOUR for n in range(366 * 24)]
    return [a for a, b in pairwise(hours) if a.astimezone(tz).utcoffset() != b.astimezone(tz).utcoffset()]
