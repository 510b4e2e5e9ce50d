"""Cron in a time zone, and what happens when its clocks are changed.

**The rule.** An expression is about wall time. Whether it names hours decides what a change of clocks does to it.

*Fixed hours* (the hour field leaves out some hour: `30 2 * * *`, `0 */6 * * *`, `*/10 1-5 * * *`): every wall time that
matches is one appointment.
- A wall time that is skipped in spring fires at the first instant after the gap. Several that are skipped, and one
  that matches there anyway, are one fire.
- A wall time that comes twice in autumn fires the first time only.

*Every hour* (the hour field is `*` or says as much: `0 * * * *`, `*/15 * * * *`): fires at each instant at which the
clock on the wall matches, so it follows real time. What is skipped in spring is not made up for, what comes twice in
autumn fires twice, and the distance between two fires stays what it is. (Where clocks move by half an hour, as on Lord
Howe Island, the minute on the wall counts: `0 * * * *` waits for 90 minutes once on each edge, `*/30` does not.)

Day of month and day of week must both match when one of them starts with `*`, else either is enough, as in Debian's
cron.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from headrace.scheduling.base import Cadence, in_utc
from headrace.scheduling.expression import has_fixed_hours, in_words, read, wall_times_after
from headrace.scheduling.zones import zone_of

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Cron(Cadence):
    """Five fields (minute, hour, day of month, month, day of week) or an alias such as `@daily`, on the clocks of `tz`.

    An alias is kept as the five fields it stands for. The module says what happens when clocks are changed.
    """

    expression: str
    tz: str = "UTC"
    _zone: ZoneInfo = field(init=False, repr=False, compare=False)
    _fixed_hours: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_zone", zone_of(self.tz))
        object.__setattr__(self, "expression", read(self.expression))
        object.__setattr__(self, "_fixed_hours", has_fixed_hours(self.expression))

    def next_after(self, instant: datetime) -> datetime | None:
        start = in_utc(instant, name="instant")
        try:
            return self._next_appointment(start) if self._fixed_hours else self._next_match(start)
        except OverflowError:  # beyond the year 9999
            return None

    def describe(self) -> str:
        return f"{in_words(self.expression)} ({self.tz})"

    def _next_appointment(self, instant: datetime) -> datetime | None:
        """With fixed hours. Later wall times never fire earlier, so the first fire after `instant` is the next."""
        wall = _wall(instant, self._zone)
        for match in wall_times_after(self.expression, wall):
            fire = next(_instants(match, self._zone), None) or _end_of_gap(match, self._zone)
            # In the second pass of a repeated hour its wall times are still ahead, but their fires are behind.
            if fire > instant:
                return fire
        return None

    def _next_match(self, instant: datetime) -> datetime | None:
        """With every hour. In the first pass of a repeated hour, wall times that were passed are yet to come again."""
        wall = _wall(instant, self._zone)
        found: datetime | None = None
        for match in wall_times_after(self.expression, wall - _repeated(instant, self._zone)):
            for fire in _instants(match, self._zone):
                if fire > instant and (found is None or fire < found):
                    found = fire
            if found is not None and match > wall:
                break
        return found


def _wall(instant: datetime, zone: ZoneInfo) -> datetime:
    """What the clock on the wall shows at `instant`."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def _instants(wall: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """When the clock shows `wall`: once, twice in autumn (the earlier first), never in the gap of spring."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if _wall(first, zone) == wall:
        yield first
        if second > first:
            yield second


def _end_of_gap(wall: datetime, zone: ZoneInfo) -> datetime:
    """The instant at which the clock jumped over `wall`."""
    # By the offset after the jump `wall` would lie before it, and by the offset before the jump not before it.
    before, jumped = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (1, 0))
    while jumped - before > _SECOND:
        middle = before + (jumped - before) // _SECOND // 2 * _SECOND
        if _wall(middle, zone) < wall:
            before = middle
        else:
            jumped = middle
    return jumped


def _repeated(instant: datetime, zone: ZoneInfo) -> timedelta:
    """In the first pass of a repeated time: how far the clock will be put back at its end. Else zero."""
    return instant.astimezone(zone).replace(fold=1).astimezone(UTC) - instant
