"""What events add up to: plain numbers by metric and labels, cheap to add to, to send and to add together.

No lock: a tally belongs to one thread. What several processes counted meets in one tally by `add`.
"""

import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.core.breaker import BreakerStatus
from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, TaskState
from headrace.telemetry.events import (
    EXECUTORS,
    BreakerMoved,
    Event,
    JobEnded,
    JobsCreated,
    ReportRefused,
    TasksCreated,
    TasksFinished,
    TasksStarted,
)
from headrace.telemetry.logs import redaction

# Upper bounds in seconds; the last bucket, without a bound, is added by whoever shows them.
BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
# A row: how many events, the sum of their seconds, and how many of them fell into each bucket. An event without a
# duration (a task that never ran) is in no bucket.
_SECONDS, _FIRST = 1, 2
_WIDTH = _FIRST + len(BOUNDS) + 1

type Key = tuple[str, ...]  # the metric, then the values of its labels
type Row = list[float]
# An error's class is a label, and the code of tasks may make classes as it goes.
_MOST_ERRORS = 100
_LEVELS = {BreakerStatus.CLOSED: 0, BreakerStatus.HALF_OPEN: 1, BreakerStatus.OPEN: 2}
_MOST_BREAKERS = 2000  # children come and go, each with its own
_FORGOTTEN_AFTER = 60.0  # beyond twice its timeout: a breaker that still is half open has nobody who uses it

type Entry = tuple[Sequence[str], Sequence[float]]


class Tally:
    """`observe` is a listener of the bus."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self._breakers: dict[tuple[str, str], tuple[float, float, float]] = {}  # by service and process
        self._errors: set[str] = set()
        self.handlers: dict[type[Any], Callable[[Any], None]] = {
            TasksFinished: self._tasks_finished,
            TasksStarted: self._tasks_started,
            TasksCreated: self._tasks_created,
            JobsCreated: self._jobs_created,
            JobEnded: self._job_ended,
            ReportRefused: self._report_refused,
            BreakerMoved: self._breaker_moved,
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
            if key[0] == "breaker":
                self._keep_breaker((key[1], key[2]), row)
                continue
            known = self._row(tuple(key))
            for place, number in enumerate(row[:_WIDTH]):
                known[place] += number

    def _keep_breaker(self, who: tuple[str, str], row: Sequence[float]) -> None:
        if who not in self._breakers and len(self._breakers) >= _MOST_BREAKERS:
            del self._breakers[next(iter(self._breakers))]  # the one that moved longest ago
        self._breakers.pop(who, None)
        self._breakers[who] = row[0], row[1], time.monotonic()

    def breakers(self) -> dict[str, int]:
        """The worst state of each service over all processes: 0 closed, 1 half open, 2 open. One that nobody has heard
        of since its timeout passed may be probed, whatever became of its process.
        """
        now, found = time.monotonic(), dict[str, int]()
        for (service, _), (level, lasts, since) in self._breakers.items():
            age = now - since
            shown = int(level) if level != 2 or age <= lasts else 1
            found[service] = max(found.get(service, 0), shown if age <= 2 * lasts + _FORGOTTEN_AFTER else 0)
        return found

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
            if settlement.state is not TaskState.COMPLETED:
                if settlement.state is TaskState.FAILED:
                    self._count("failure", *key[1:4], self._error_type(settlement))
                if settlement.attempt is AttemptState.LOST:
                    self._count("lost", *key[1:4])

    def _error_type(self, settlement: Settlement) -> str:
        error = settlement.error
        found = settlement.reason or "unknown"
        if error is not None:
            found = error.error_type or error.error_class.removeprefix("builtins.")
        if found not in self._errors:
            if len(self._errors) >= _MOST_ERRORS:
                return "other"
            self._errors.add(found)
        return found

    def _tasks_started(self, event: TasksStarted) -> None:
        rows = self.rows
        for claim, seconds in event.started:
            row = rows.get(key := ("wait", claim.queue, claim.kind, EXECUTORS.get(claim.pool, claim.pool)))
            if row is None:
                row = self._row(key)
            seconds = max(seconds, 0.0)
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

    def _breaker_moved(self, event: BreakerMoved) -> None:
        self.add([breaker_entry(event)])


def breaker_entry(event: BreakerMoved) -> Entry:
    """A state, not a sum: the last word of a process stands. What a service is called (its URL, say) is for the code of
    tasks to choose, and a label is seen."""
    return ("breaker", redaction().text(event.service), str(os.getpid())), (_LEVELS[event.state], event.lasts)


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
