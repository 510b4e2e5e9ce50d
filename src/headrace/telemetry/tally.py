"""What events add up to: plain numbers by metric and labels, cheap to add to, to send and to add together.

No lock: a tally belongs to one thread. What several processes counted meets in one tally by `add`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.telemetry.events import (
    EXECUTORS,
    Event,
    JobEnded,
    JobsCreated,
    ReportRefused,
    Rescued,
    TasksClaimed,
    TasksCreated,
    TasksFinished,
)

# Upper bounds in seconds; the last bucket, without a bound, is added by whoever shows them.
BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
# A row: how many events, the sum of their seconds, and how many of them fell into each bucket. An event without a
# duration (a task that never ran) is in no bucket.
_SECONDS, _FIRST = 1, 2
_WIDTH = _FIRST + len(BOUNDS) + 1

type Key = tuple[str, ...]  # the metric, then the values of its labels
type Row = list[float]
type Entry = tuple[Sequence[str], Sequence[float]]


class Tally:
    """`observe` is a listener of the bus."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.handlers: dict[type[Any], Callable[[Any], None]] = {
            TasksFinished: self._tasks_finished,
            TasksClaimed: self._tasks_claimed,
            TasksCreated: self._tasks_created,
            JobsCreated: self._jobs_created,
            JobEnded: self._job_ended,
            ReportRefused: self._report_refused,
            Rescued: self._rescued,
        }

    def observe(self, event: Event) -> None:
        handler = self.handlers.get(type(event))
        if handler is not None:
            handler(event)

    def take(self) -> list[Entry]:
        """Everything since the last `take`."""
        rows, self.rows = self.rows, {}
        return list(rows.items())

    def add(self, entries: Iterable[Entry]) -> None:
        for key, row in entries:
            known = self._row(tuple(key))
            for place, number in enumerate(row[:_WIDTH]):
                known[place] += number

    def _row(self, key: Key) -> Row:
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = [0.0] * _WIDTH
        return row

    def _count(self, *key: str, n: float = 1, seconds: float | None = None) -> None:
        row = self._row(key)
        row[0] += n
        if seconds is not None:
            seconds = max(0.0, seconds)
            row[_SECONDS] += seconds
            row[_FIRST + bisect_left(BOUNDS, seconds)] += 1

    # What every task costs is written out here: a call would cost as much as the counting.

    def _tasks_finished(self, event: TasksFinished) -> None:
        rows = self.rows
        for claim, settlement in event.finished:
            executor = settlement.executor or EXECUTORS.get(claim.pool, claim.pool)
            key = ("task", claim.queue, claim.kind, executor, settlement.state)
            row = rows.get(key)
            if row is None:
                row = self._row(key)
            row[0] += 1
            seconds = settlement.ran_for
            if seconds is not None:
                row[_SECONDS] += seconds
                row[_FIRST + bisect_left(BOUNDS, seconds)] += 1

    def _tasks_claimed(self, event: TasksClaimed) -> None:
        rows = self.rows
        for claim in event.claims:
            row = rows.get(key := ("wait", claim.queue))
            if row is None:
                row = self._row(key)
            seconds = max(claim.waited, 0.0)
            row[0] += 1
            row[_SECONDS] += seconds
            row[_FIRST + bisect_left(BOUNDS, seconds)] += 1

    def _tasks_created(self, event: TasksCreated) -> None:
        self._count("task_created", event.queue, event.kind, event.executor, n=event.count)

    def _jobs_created(self, event: JobsCreated) -> None:
        self._count("job_created", n=event.count)

    def _job_ended(self, event: JobEnded) -> None:
        self._count("job", event.state, seconds=event.took)

    def _report_refused(self, event: ReportRefused) -> None:
        self._count("refused", event.act)

    def _rescued(self, event: Rescued) -> None:
        self._count("lost", n=event.charged)


def seconds_of(rows: Iterable[Sequence[float]]) -> tuple[float, list[float]]:
    """The histogram of several rows together: the sum of seconds, and the cumulated buckets up to the unbounded one."""
    total, buckets = 0.0, [0.0] * (len(BOUNDS) + 1)
    for row in rows:
        total += row[_SECONDS]
        for place, number in enumerate(row[_FIRST:]):
            buckets[place] += number
    for place in range(1, len(buckets)):
        buckets[place] += buckets[place - 1]
    return total, buckets
