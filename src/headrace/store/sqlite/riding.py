"""Claims that stand ready in this process: a transaction that brings work takes them along.

A worker with nothing to do and a caller that enqueues are often one process: a task enqueues the next. By itself the
claim would be a second transaction with a sync of its own, after a wake-up and two changes of threads. Taken along it
is durable with the very commit that makes the task, and other processes need not be woken for what is already taken.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from headrace.core.clock import SystemClock
from headrace.core.task import ClaimedTask, Want
from headrace.store.base import RETRIES
from headrace.store.sqlite.connection import Database
from headrace.store.sqlite.line import Job
from headrace.store.sqlite.transaction import Work

type Claims = list[ClaimedTask]
type GiveBack = Callable[[Claims], Work[Any]]
type _File = tuple[object, ...]

STALE_AFTER = 1.0  # seconds; an offer is renewed ten times a second


class Offer:
    """A claim that waits to be taken along. Whoever cancels its future first, or runs it first, has it."""

    def __init__(self, database: Database, wants: Sequence[Want], work: Work[Claims], give_back: GiveBack) -> None:
        self.queues = frozenset(want.queue for want in wants)
        self.job = Job(work, "claim", rides=True)
        self.taken_at: float | None = None
        self.renew()
        self._database = database
        self._give_back = give_back

    @property
    def answer(self) -> Future[Claims]:
        return self.job.future

    def renew(self) -> None:
        self._renewed_at = time.monotonic()

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() - self._renewed_at < STALE_AFTER

    def withdraw(self) -> bool:
        """False when it is taken: an answer comes."""
        return self.job.future.cancel()

    def forget(self) -> None:
        """Nobody waits for it any more: what it still brings goes back."""
        if not self.withdraw():
            self._database.follow(self.job.future, self._give_back)

    def take(self) -> bool:
        if not self.job.future.set_running_or_notify_cancel():
            return False
        self.taken_at = time.monotonic()
        return True


class _Offers:
    """Of every file that is open in this process."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        self.lock = threading.Lock()
        self.of_file: dict[_File, list[Offer]] = {}


_OFFERS = _Offers()
# In a child they are the parent's, whose loops are not there; and another thread may have held the lock.
os.register_at_fork(after_in_child=_OFFERS.begin_anew)


def _file(database: Database) -> _File:
    """What stores must have in common so that one may write for another: also how they sync, and their clock."""
    path = id(database) if database.in_memory else database.path
    clock = None if isinstance(database.clock, SystemClock) else id(database.clock)
    return path, database.options.name, database.options.synchronous.upper(), clock


def stand(database: Database, wants: Sequence[Want], work: Work[Claims], give_back: GiveBack) -> Offer:
    """Let a claim stand ready until it is taken or withdrawn."""
    offer, file = Offer(database, wants, work, give_back), _file(database)
    with _OFFERS.lock:
        _OFFERS.of_file.setdefault(file, []).append(offer)
    offer.answer.add_done_callback(lambda _: _leave(file, offer))
    return offer


def is_any_offered() -> bool:
    return bool(_OFFERS.of_file)


def _leave(file: _File, offer: Offer) -> None:
    with _OFFERS.lock:
        offers = _OFFERS.of_file.get(file, [])
        if offer in offers:
            offers.remove(offer)
        if not offers:
            _OFFERS.of_file.pop(file, None)


def rider(database: Database) -> Callable[[Sequence[Job]], Job | None]:
    """For the writing thread: the next claim that wants to come along with these jobs."""

    def taken(done: Sequence[Job]) -> Job | None:
        if not is_any_offered():
            return None
        wakes = {name for job in done if job.transaction is not None for name in job.transaction.wakes}
        queues = {name.removeprefix(RETRIES) for name in wakes}
        if not queues:
            return None
        with _OFFERS.lock:
            offers = _OFFERS.of_file.get(_file(database), [])
            for offer in tuple(offers):
                if offer.is_fresh and not queues.isdisjoint(offer.queues):
                    # Out of the offers at once: it goes with one transaction only.
                    offers.remove(offer)
                    if offer.take():
                        return offer.job
        return None

    return taken
