"""The line in front of a connection: who waits to have something done on it."""

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from headrace.store.sqlite.transaction import Transaction, Work


class Job:
    __slots__ = ("expired", "future", "rides", "submitted_at", "transaction", "value", "verb", "work")

    def __init__(self, work: Work[Any], verb: str, *, rides: bool = False) -> None:
        self.work = work
        self.verb = verb
        self.rides = rides  # it stood in no line: a transaction of others takes it along
        self.submitted_at = time.monotonic()
        self.future: Future[Any] = Future()
        self.expired = False
        self.value: Any = None
        self.transaction: Transaction | None = None

    def expire(self) -> None:
        """Give up waiting; once it runs, its own answer comes."""
        self.expired = self.future.cancel()


class Line:
    """Jobs in their order. Urgent ones go first; one that wants the connection for itself stands apart."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._urgent: deque[Job] = deque()
        self._alone: deque[Job] = deque()
        self._ready = threading.Condition(threading.Lock())
        self._closing = False

    @property
    def urgent(self) -> bool:
        return bool(self._urgent)

    def join(self, job: Job, *, urgent: bool, alone: bool) -> bool:
        """False when the line is closed."""
        with self._ready:
            if self._closing:
                return False
            job.submitted_at = time.monotonic()
            (self._alone if alone else self._urgent if urgent else self._jobs).append(job)
            self._ready.notify()
        return True

    def close(self) -> None:
        """Nobody joins any more; who is there is still served."""
        with self._ready:
            self._closing = True
            self._ready.notify()

    def wait(self, until: float | None) -> bool | None:
        """True when a job waits, False when the instant came first, None when it is closed and empty."""
        with self._ready:
            while not self._jobs and not self._urgent and not self._alone:
                if self._closing:
                    return None
                pause = None if until is None else until - time.monotonic()
                if pause is not None and pause <= 0:
                    return False
                self._ready.wait(pause)
        return True

    def next(self, *, only_urgent: bool = False) -> Job | None:
        with self._ready:
            while self._urgent or (self._jobs and not only_urgent):
                job = self._urgent.popleft() if self._urgent else self._jobs.popleft()
                if job.future.set_running_or_notify_cancel():
                    return job
        return None

    def next_alone(self) -> Job | None:
        with self._ready:
            job = self._alone.popleft() if self._alone else None
        return job if job is not None and job.future.set_running_or_notify_cancel() else None

    def fail(self, error: BaseException, *, since: float) -> None:
        """Fail whoever waits since then; a later one may have more luck, and gets an attempt of its own."""
        failed: list[Job] = []
        with self._ready:
            for jobs in (self._urgent, self._jobs, self._alone):
                while jobs and jobs[0].submitted_at <= since:
                    failed.append(jobs.popleft())
        for job in failed:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(error)


def left_over(done: Sequence[Job]) -> list[Job]:
    """Those of whose tasks something is still to be had. What came along may have taken all of an enqueue's."""
    taken: set[int] = {claim.id for job in done if job.rides for claim in job.value}
    if not taken:
        return list(done)

    def is_taken(job: Job) -> bool:
        answers: Any = job.value
        return job.verb == "enqueue" and all(answer.id in taken for answer in answers)

    return [job for job in done if not is_taken(job)]
