"""What an app of this process enqueues, and the jobs that it ends, counted where somebody wants to know.

Nobody does unless the process runs below a supervisor that shows metrics, or `app.metrics()` was called.
"""

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Iterable, Sequence

from headrace.core.batch import Batch
from headrace.core.task import Enqueued, NewTask
from headrace.store.base import JobEnd, Store
from headrace.telemetry.events import EXECUTORS, BreakerMoved, Bus, Event, JobEnded, JobsCreated, TasksCreated
from headrace.telemetry.relay import Relay, relay_address, tell
from headrace.telemetry.tally import Tally, breaker_entry


class Counting:
    """Callers come from any thread: events are told under a lock, and it is known when an enqueue returns."""

    def __init__(self) -> None:
        self.bus = Bus()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._relay: Relay | None = None
        self._tally: Tally | None = None
        self._pid = os.getpid()

    @property
    def wanted(self) -> bool:
        """Somebody wants to know, or will once a store is open."""
        return bool(self.bus) or relay_address() is not None

    def tally(self) -> Tally:
        """Count in this process from now on; the same tally whoever asks."""
        with self._lock:
            if self._tally is None:
                self._tally = Tally()
                self.bus.subscribe(self._tally.observe, *self._tally.handlers)
            return self._tally

    def open(self, loop: asyncio.AbstractEventLoop, store: Store) -> None:
        """Before anything is counted on a new store; `loop` is the one of the background."""
        self._loop = loop
        if self._pid != os.getpid():
            # Another thread may have held it at the moment of the fork. What was counted is the parent's to send.
            self._pid, self._lock = os.getpid(), threading.Lock()
            if self._relay is not None:
                self._relay.forget(self._lock)
        address = relay_address()
        if address is not None and self._relay is None:
            self._relay = Relay(address, lock=self._lock).attach(self.bus)
        store.watch_job_ends(self._job_ended)

    def close(self) -> None:
        """On the loop."""
        if self._relay is not None:
            self._relay.close()

    def tasks_created(self, tasks: Sequence[NewTask], answers: Sequence[Enqueued]) -> None:
        if not self.bus:
            return
        if isinstance(tasks, Batch) and tasks.plain:  # without keys every one is new
            self._emit(_created((template.task, len(arguments)) for template, arguments in tasks.runs))
        else:
            self._emit(_created((task, 1) for task, answer in zip(tasks, answers, strict=True) if answer.created))

    def breaker_moved(self, event: BreakerMoved) -> None:
        """It may be the only thing that this process has to tell: it does not wait for the rest."""
        if self.bus:
            self._emit([event])
        address = relay_address()
        if address is not None:
            tell(address, breaker_entry(event))

    def job_created(self, tasks: Sequence[NewTask], answers: Sequence[Enqueued]) -> None:
        if self.bus:
            self._emit([JobsCreated()])
            self.tasks_created(tasks, answers)

    def _job_ended(self, end: JobEnd) -> None:
        if self.bus:
            self._emit(job_ended(end))

    def _emit(self, events: Iterable[Event]) -> None:
        with self._lock:
            for event in events:
                self.bus.emit(event)
        if self._relay is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._relay.soon, self._loop)


def _created(tasks: Iterable[tuple[NewTask, int]]) -> list[Event]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for task, n in tasks:
        counts[task.queue, task.kind, EXECUTORS.get(task.pool, task.pool)] += n
    return [
        TasksCreated(queue=queue, kind=kind, executor=executor, count=n)
        for (queue, kind, executor), n in counts.items()
    ]


def job_ended(end: JobEnd) -> list[Event]:
    """The end, and the creation of the task that its hook became."""
    ended = JobEnded(job=end.job, state=end.state, took=end.took)
    return [ended, *([] if end.hook is None else _created([(end.hook, 1)]))]
