"""What every cadence can be asked. Instants come in aware and go out in UTC; nothing here reads a clock."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

from headrace.core.errors import OptionError


class Cadence(ABC):
    """The instants at which a schedule ticks: a fixed, strictly increasing row that every process computes alike."""

    __slots__ = ()

    @abstractmethod
    def next_after(self, instant: datetime) -> datetime | None:
        """The first tick strictly after `instant`; None when there is none."""

    @abstractmethod
    def describe(self) -> str:
        """One English phrase for people, as in a list of schedules."""

    def fires(self, after: datetime, until: datetime | None = None, limit: int | None = None) -> Iterator[datetime]:
        """The ticks after `after`, up to and with `until`, oldest first, at most `limit`."""
        return islice(self._ticks(after, until), limit)

    def upcoming(self, n: int, *, after: datetime) -> list[datetime]:
        """The next `n` ticks after `after`; fewer when the row ends."""
        return list(self.fires(after, limit=n))

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The last tick after `after`, up to and with `until`; None when none lies there.

        Halves the range until one tick is left: a year of minutes costs twenty steps instead of half a million.
        """
        tick = self.next_after(after)
        if tick is None or tick > until:
            return None
        end = until
        # There is a tick at `tick`, and none after `end` and up to `until`.
        while (following := self.next_after(tick)) is not None and following <= end:
            middle = following + (end - following) / 2
            later = self.next_after(middle)
            if later is not None and later <= end:
                tick = later
            else:
                tick, end = following, middle
        return tick

    def _ticks(self, after: datetime, until: datetime | None) -> Iterator[datetime]:
        tick = self.next_after(after)
        while tick is not None and (until is None or tick <= until):
            yield tick
            tick = self.next_after(tick)


def in_utc(instant: datetime, *, name: str) -> datetime:
    """`instant` in UTC; one without a zone is refused, because nobody can say when it is."""
    if not isinstance(instant, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"{name} must be a datetime with a time zone, not {instant!r}")
    if instant.utcoffset() is None:
        raise OptionError(f"{name} must have a time zone, as in datetime(..., tzinfo=UTC), but {instant!r} has none")
    try:
        return instant.astimezone(UTC)
    except OverflowError as error:
        raise OptionError(f"{name} must lie between the years 1 and 9999 in UTC, not {instant!r}") from error
