"""Clocks that tests move: of one process, and of several.

A store asks its clock for every instant that it writes or compares: what is due, when a retry follows, which task is
too old, whose lease ended, which result is kept, how fast a rate refills, which schedule fires.
"""

import mmap
import os
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headrace.core.clock import FakeClock, MovableClock, SkippingClock, time_until
from headrace.core.durations import Duration, as_timedelta
from headrace.store.instants import from_micros, to_micros

__all__ = ["FakeClock", "MovableClock", "SharedClock", "SkippingClock"]


class SharedClock:
    """A `FakeClock` for several processes: its instant is in a file that all of them map.

    Whoever makes it first sets it to `instant`; those that open the same path later see it where it is. One process
    moves it, the others look.
    """

    def __init__(self, path: str | Path, *, instant: datetime | None = None) -> None:
        self.path = Path(path)
        if not self.path.exists():
            _make(self.path, instant or datetime(2030, 1, 1, tzinfo=UTC))
        elif instant is not None:
            raise ValueError(f"{self.path} is a clock already; open it without `instant`")
        with self.path.open("r+b") as file:
            # Two machine words, in microseconds: the instant, and the time since the clock was made. A word is read
            # and written in one piece, so nobody sees half of a move.
            self._words = memoryview(mmap.mmap(file.fileno(), 16)).cast("q")

    def now(self) -> datetime:
        return from_micros(self._words[0])

    def monotonic(self) -> float:
        return self._words[1] / 1e6

    def advance(self, by: Duration) -> None:
        """Let time pass, for every process."""
        step = as_timedelta(by, name="by") // timedelta(microseconds=1)
        self._words[0] += step
        self._words[1] += step

    def move_to(self, instant: datetime) -> None:
        """Let time pass until `instant`."""
        self.advance(time_until(instant, self.now()))


def _make(path: Path, instant: datetime) -> None:
    """Whole or not at all: another process may open it at this moment."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_bytes(struct.pack("@qq", to_micros(instant), 0))
    draft.replace(path)
