"""What ended, by bucket of time. A bucket that is over never changes: it is read once and kept.

So a look at a week costs as much as what is new since the last look, and the first one is cut off when its time is
over: the newest buckets come first, the rest with the next looks.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headrace.core.states import TaskState
from headrace.server.overview.ranges import Range
from headrace.store.base import Store
from headrace.store.figures import EndedTask

SAMPLED = (TaskState.COMPLETED, TaskState.FAILED)
EACH = 50  # of a state in a bucket
_PLACES = 500  # queues and names that one bucket keeps apart; the rest of it counts by outcome alone
_LINES = 2000  # queues, by outcome, that one bucket keeps apart
_AT_ONCE = 7200  # seconds that the first query sums up
_SOON = 0.03
_SETTLED = timedelta(seconds=5)  # a worker may still be writing the counts of the minute before

type Place = tuple[str, str, str]  # queue, name, outcome
type Line = tuple[str, str]  # queue, outcome


@dataclass(slots=True)
class Bucket:
    at: datetime
    outcomes: Counter[str] = field(default_factory=Counter[str])
    places: Counter[Place] = field(default_factory=Counter[Place])
    lines: Counter[Line] = field(default_factory=Counter[Line])
    cut: bool = False  # there were more queues than it keeps apart
    # (seconds of waiting, seconds of running, weight): how many tasks of its state each stands for
    sample: list[tuple[float | None, float | None, float]] = field(
        default_factory=list[tuple[float | None, float | None, float]]
    )

    def count(self, queue: str, name: str, outcome: str, n: int) -> None:
        self.outcomes[outcome] += n
        place = (queue, name, outcome)
        if place in self.places or len(self.places) < _PLACES:
            self.places[place] += n
        line = (queue, outcome)
        if line in self.lines or len(self.lines) < _LINES:
            self.lines[line] += n
        else:
            self.cut = True

    def of_queue(self, queue: str) -> Counter[str]:
        """How many of one queue ended, by outcome."""
        return Counter({outcome: self.lines[queue, outcome] for outcome in self.outcomes})

    def take(self, ended: list[EndedTask]) -> None:
        """Where workers counted fewer than were found (one was killed before it wrote), each stands for itself."""
        by_state = Counter(each.state for each in ended)
        for each in ended:
            n = by_state[each.state]
            waited, ran = spans(each)
            self.sample.append((waited, ran, max(self.outcomes[each.state.value], n) / n))


def spans(ended: EndedTask) -> tuple[float | None, float | None]:
    """Seconds from being due to the start, and of the last execution; None for one that never ran."""
    if ended.started_at is None:
        return None, None
    waited = (ended.started_at - ended.eligible_at).total_seconds()
    return max(0.0, waited), max(0.0, (ended.finished_at - ended.started_at).total_seconds())


class Buckets:
    """Those of the ranges that somebody has looked at."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, datetime], Bucket] = {}

    async def look(self, store: Store, range: Range, now: datetime, *, seconds: float) -> tuple[list[Bucket], bool]:
        """Its buckets in order, and whether all of them were read."""
        deadline = time.monotonic() + seconds
        starts = range.starts(now)
        width = timedelta(seconds=range.bucket)
        found: dict[datetime, Bucket] = {}
        missing = [at for at in starts if (range.bucket, at) not in self._kept]
        at_once = max(1, _AT_ONCE // range.bucket)
        while missing and (not found or time.monotonic() < deadline):
            began = time.monotonic()
            # From the newest on: one run of neighbours at a time, longer ones where they are read soon.
            part = [missing.pop()]
            while missing and len(part) < at_once and missing[-1] + width == part[-1]:
                part.append(missing.pop())
            found |= await _read(store, range.bucket, part[::-1])
            if time.monotonic() - began < _SOON:
                at_once *= 2
        for at, bucket in found.items():
            if at + width + _SETTLED < now:
                self._kept[range.bucket, at] = bucket
        self._forget(range.bucket, starts[0])
        shown = [self._kept.get((range.bucket, at)) or found.get(at) or Bucket(at) for at in starts]
        return shown, not missing

    def _forget(self, bucket: int, first: datetime) -> None:
        """Ranges of one step may differ in length: what is older than the longest of them goes."""
        oldest = first - timedelta(seconds=100 * bucket)
        for key in [key for key in self._kept if key[0] == bucket and key[1] < oldest]:
            del self._kept[key]


async def _read(store: Store, bucket: int, starts: list[datetime]) -> dict[datetime, Bucket]:
    since, until = starts[0], starts[-1] + timedelta(seconds=bucket)
    found = {at: Bucket(at) for at in starts}
    for each in await store.outcome_sums(since=since, until=until, bucket=bucket):
        if each.at in found:
            found[each.at].count(each.queue, each.name, each.outcome, each.n)
    sample: dict[datetime, list[EndedTask]] = {}
    for each in await store.sample_ends(SAMPLED, since=since, bucket=bucket, buckets=len(starts), each=EACH):
        place = int((each.finished_at - since).total_seconds() // bucket)
        sample.setdefault(starts[place], []).append(each)
    for at, ended in sample.items():
        found[at].take(ended)
    return found
