"""One writing connection on its own thread, one reading connection on another.

Writes that wait at the same moment share a transaction (each in a savepoint) and so a sync of the disk. Nothing here
blocks an event loop, and the lock between processes is never held across an await.
"""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from typing import Any

from headrace.core.clock import Clock, SystemClock
from headrace.core.errors import StoreError, StoreUnavailable
from headrace.store.base import JobEndListener, StoreClosed, StoreOptions
from headrace.store.instants import to_micros
from headrace.store.queries import load_queries
from headrace.store.sqlite.line import Job
from headrace.store.sqlite.thread import Thread, connected
from headrace.store.sqlite.transaction import Parameters, Row, Transaction, Work

__all__ = ["MEMORY", "Database", "Parameters", "Part", "Row", "Transaction", "Work"]

MEMORY = ":memory:"

_LOCKED_SECONDS = 30.0
# Others may be changing the schema.
_MIGRATION_SECONDS = 60.0

# Connections of the parent process. Closing them in a forked child could remove the write-ahead log under the parent.
_ABANDONED: list[Any] = []


class Database:
    """An SQLite file (or `:memory:`) as two threads. Survives a fork: the child opens its own connections."""

    def __init__(self, path: str, options: StoreOptions) -> None:
        self.in_memory = path == MEMORY
        # The real path, so that the lock files are the same by whatever link a process comes.
        self.path = path if self.in_memory else os.path.realpath(path)
        self.options = options
        self.clock: Clock = options.extra.get("clock") or SystemClock()
        self.queries = load_queries("headrace.store.sqlite.sql", options.name)
        # Set by the store: whether the file is as it should be, what a new writing connection needs, and what follows a
        # commit.
        self.is_made: Callable[[], bool] = lambda: False
        self.prepare: Callable[[sqlite3.Connection], None] = lambda _: None
        self.committed: Callable[[set[str]], None] = lambda _: None
        self.grown: Callable[[set[str]], None] = lambda _: None
        # Before the commit: another job that wants to go with those that are done.
        self.rider: Callable[[Sequence[Job]], Job | None] = lambda _: None
        self.job_ended: JobEndListener | None = None
        # Looks at the file from the reading thread; seconds until it wants to look again, None: after the next read.
        self.watch: Callable[[Transaction], float | None] = lambda _: None
        self._locked_seconds = float(options.extra.get("lock_timeout", _LOCKED_SECONDS))
        self._lock = threading.Lock()
        self._threads: tuple[Thread, Thread] | None = None
        self._pid = -1
        self._open = False

    def now(self) -> int:
        """The store's clock in microseconds."""
        return to_micros(self.clock.now())

    def transaction(self, connection: sqlite3.Connection) -> Transaction:
        return Transaction(connection, self.queries, self.now())

    def connect(self, *, writes: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._locked_seconds, isolation_level=None, cached_statements=512
        )
        synchronous = self.options.synchronous
        try:
            if synchronous.upper() not in ("OFF", "NORMAL", "FULL", "EXTRA"):
                raise StoreError(f"synchronous must be OFF, NORMAL, FULL or EXTRA, not {synchronous!r}")
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute("PRAGMA temp_store = MEMORY")
            if writes:
                # The tasks of a graph that are ready together may lie far apart: with SQLite's own 2 MB each step of a
                # large one would read its pages again.
                connection.execute("PRAGMA cache_size = -16384")
                self.prepare(connection)
            else:
                connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def is_open(self) -> bool:
        return self._open

    async def open(self) -> None:
        """Connect, and find or make the schema."""
        self._open = True
        try:
            await self.alone(connected)
        except BaseException:
            await self.close()
            raise

    def _running(self) -> tuple[Thread, Thread]:
        if self._pid != os.getpid():
            # Threads do not survive a fork, and neither may what they held. The lock is new for the same reason.
            self._lock = threading.Lock()
            if self._threads is not None:
                _ABANDONED.extend(self._threads)
            self._threads = None
            self._pid = os.getpid()
        with self._lock:
            if not self._open:
                raise StoreClosed(f"the store of {self.path} is not open: await store.open() first")
            if self._threads is None:
                writer = Thread(self, writes=True)
                self._threads = (writer, writer if self.in_memory else Thread(self, writes=False))
            return self._threads

    async def write[T](
        self, work: Work[T], *, urgent: bool = False, verb: str = "", unheard: Callable[[T], Work[Any]] | None = None
    ) -> T:
        """Run `work` in a transaction that is committed and synced when this returns.

        `verb` names the fault points around the commit. `unheard` makes of an answer the work that follows where the
        caller was cancelled while the transaction ran, and so never learns of it.
        """
        thread, job = self._running()[0], Job(work, verb)
        try:
            return await self._answer(thread, job, self._locked_seconds, urgent=urgent)
        except asyncio.CancelledError:
            if unheard is not None:
                # At once where it has an answer already, else on the thread that gives it.
                job.future.add_done_callback(lambda answered: _follow(thread, answered, unheard))
            raise

    def follow[T](self, answer: Future[T], unheard: Callable[[T], Work[Any]]) -> None:
        """Do what undoes an answer that nobody hears, once it is there."""
        with suppress(StoreError):  # it is closed
            thread = self._running()[0]
            answer.add_done_callback(lambda answered: _follow(thread, answered, unheard))

    async def alone[T](self, work: Work[T]) -> T:
        """Run `work` on the writing connection outside a transaction: it makes its own."""
        patience = max(self._locked_seconds, _MIGRATION_SECONDS)
        return await self._answer(self._running()[0], Job(work, ""), patience, alone=True)

    async def _answer(
        self, thread: Thread, job: Job, patience: float, *, urgent: bool = False, alone: bool = False
    ) -> Any:
        answer = asyncio.wrap_future(job.future)
        giving_up = asyncio.get_running_loop().call_later(patience, job.expire)
        try:
            # Last: the other thread gets the interpreter when this one has nothing more to do.
            thread.submit(job, urgent=urgent, alone=alone)
            return await answer
        except asyncio.CancelledError:
            if job.expired:
                raise StoreUnavailable(
                    f"{self.path} has been locked by another process for {patience:g} s; nothing was "
                    "written. Look for a transaction left open on the file, or a stopped process"
                ) from None
            raise
        finally:
            giving_up.cancel()

    async def read[T](self, work: Work[T]) -> T:
        """Run `work` on a snapshot."""
        thread, job = self._running()[1], Job(work, "")
        thread.submit(job)
        return await asyncio.wrap_future(job.future)

    async def close(self) -> None:
        # Another thread may be about to write; of a parent's threads none is here, and the lock may be held for ever.
        with self._lock if self._pid == os.getpid() else nullcontext():
            threads, self._threads, self._open = self._threads, None, False
        if threads is not None and self._pid == os.getpid():
            for thread in dict.fromkeys(threads):
                await asyncio.to_thread(thread.close)


def _follow[T](thread: Thread, answered: Future[T], unheard: Callable[[T], Work[Any]]) -> None:
    if not answered.cancelled() and answered.exception() is None:
        # A store that is closed meanwhile has told others by then what its worker held.
        with suppress(StoreError):
            thread.submit(Job(unheard(answered.result()), ""))


class Part:
    """What every module of the store builds on."""

    database: Database
