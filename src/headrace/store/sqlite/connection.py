"""One writing connection on its own thread, one reading connection on another.

Writes that wait at the same moment share a transaction (each in a savepoint) and so a sync of the disk. Nothing here
blocks an event loop, and the lock between processes is never held across an await.
"""

import asyncio
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

from headrace.core.clock import Clock, SystemClock
from headrace.core.errors import StoreError, StoreUnavailable
from headrace.runtime.faults import reached
from headrace.store.base import JobEnd, JobEndListener, StoreOptions
from headrace.store.instants import to_micros
from headrace.store.queries import load_queries
from headrace.store.sqlite.failures import translated
from headrace.store.sqlite.locking import Turns

MEMORY = ":memory:"

type Row = tuple[Any, ...]
type Parameters = Sequence[Any] | Mapping[str, Any]

# A transaction that others wait for should be over in 20 ms; the commit itself needs some of that.
_SHARED_SECONDS = 0.012
_LOCKED_SECONDS = 30.0
# Others may be changing the schema.
_MIGRATION_SECONDS = 60.0
# A thread that waits for somebody else's lock cannot be stopped; it ends with the process.
_CLOSING_SECONDS = 5.0

# Connections of the parent process. Closing them in a forked child could remove the write-ahead log under the parent.
_ABANDONED: list[Any] = []

# A fork copies SQLite's idea of which locks this process holds. Made in the middle of a transaction it would leave the
# child with a write lock that nobody ever releases, and the child would hold everybody's turn while it waits for it. So
# a fork waits for the moment between two transactions, but not for ever: one that waits for a user's own transaction
# holds no lock yet, and that user may be the one who forks.
_FORK_SECONDS = 2.0
_THREADS: set["_Thread"] = set()
_STILL: dict[int, list[threading.Lock]] = {}


def _before_fork() -> None:
    until = time.monotonic() + _FORK_SECONDS
    _STILL[threading.get_ident()] = [
        thread.between
        for thread in list(_THREADS)
        if thread.between.acquire(timeout=max(0.0, until - time.monotonic()))
    ]


def _after_fork() -> None:
    for lock in _STILL.pop(threading.get_ident(), ()):
        lock.release()


def _after_fork_in_child() -> None:
    _STILL.clear()
    _THREADS.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


class Transaction:
    """What a verb sees of its transaction: named queries, one instant, and whom to wake after the commit."""

    __slots__ = ("cancels", "connection", "job_ends", "now", "queries", "wakes")

    def __init__(self, connection: sqlite3.Connection, queries: Mapping[str, str], now: int) -> None:
        self.connection = connection
        self.queries = queries
        self.now = now
        self.wakes: set[str] = set()
        self.cancels = False
        self.job_ends: list[JobEnd] = []

    def rows(self, query: str, parameters: Parameters = ()) -> list[Row]:
        return self.connection.execute(self.queries[query], parameters).fetchall()

    def row(self, query: str, parameters: Parameters = ()) -> Row | None:
        rows = self.connection.execute(self.queries[query], parameters).fetchall()
        return rows[0] if rows else None

    def run(self, query: str, parameters: Parameters = ()) -> int:
        """How many rows it changed."""
        return self.connection.execute(self.queries[query], parameters).rowcount

    def run_many(self, query: str, parameters: Sequence[Parameters]) -> None:
        if parameters:
            self.connection.executemany(self.queries[query], parameters)


type Work[T] = Callable[[Transaction], T]


def connected(_: Transaction) -> None:
    """The work of `open`: it wants no more than the connection."""


class _Job:
    __slots__ = ("expired", "future", "submitted_at", "transaction", "value", "verb", "work")

    def __init__(self, work: Work[Any], verb: str) -> None:
        self.work = work
        self.verb = verb
        self.submitted_at = time.monotonic()
        self.future: Future[Any] = Future()
        self.expired = False
        self.value: Any = None
        self.transaction: Transaction | None = None

    def expire(self) -> None:
        """Give up waiting; once it runs, its own answer comes."""
        self.expired = self.future.cancel()


class _Thread:
    """A thread with its connection and a queue of jobs."""

    def __init__(self, database: "Database", *, writes: bool) -> None:
        self._database = database
        self._writes = writes
        self._jobs: deque[_Job] = deque()
        self._urgent: deque[_Job] = deque()
        self._alone: deque[_Job] = deque()
        self._ready = threading.Condition(threading.Lock())
        self._closing = False
        self._watch_at: float | None = None
        self._began = 0.0  # when the present attempt to serve began
        self._turns = Turns(database.path) if writes and not database.in_memory else None
        self.between = threading.Lock()  # held while SQLite is at work, so that nobody forks then
        self.connection: sqlite3.Connection | None = None
        name = f"headrace-sqlite-{'writer' if writes else 'reader'}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        _THREADS.add(self)
        self._thread.start()

    def submit(self, work: Work[Any], *, urgent: bool = False, alone: bool = False, verb: str = "") -> _Job:
        """`alone`: under the lock between processes, but with a transaction of its own making."""
        with self._ready:
            if self._closing:
                raise StoreError(f"the store of {self._database.path} is closed")
            job = _Job(work, verb)
            (self._alone if alone else self._urgent if urgent else self._jobs).append(job)
            self._ready.notify()
        return job

    def close(self) -> None:
        """Finish what was submitted, then close the connection."""
        with self._ready:
            self._closing = True
            self._ready.notify()
        self._thread.join(_CLOSING_SECONDS)

    def _run(self) -> None:
        try:
            while (waiting := self._wait()) is not None:
                self._began = time.monotonic()
                try:
                    if waiting:
                        self._serve()
                    self._watch()
                except Exception as error:
                    self._fail_waiting(error)
        finally:
            _THREADS.discard(self)
            if self.connection is not None:
                self.connection.close()
            if self._turns is not None:
                self._turns.close()

    def _wait(self) -> bool | None:
        """True when a job waits, False when it is time to watch, None at the end."""
        with self._ready:
            while not self._jobs and not self._urgent and not self._alone:
                if self._closing:
                    return None
                pause = None if self._watch_at is None else self._watch_at - time.monotonic()
                if pause is not None and pause <= 0:
                    return False
                self._ready.wait(pause)
        return True

    def _watch(self) -> None:
        """Between jobs, on the thread that is here anyway: a hop from the event loop would cost ten times the look."""
        if self._writes or self.connection is None:
            return
        now = time.monotonic()
        if self._watch_at is None or now >= self._watch_at:
            self._watch_at = now + 1.0
            with self.between, suppress(sqlite3.Error):  # only hints are lost, until the next look
                pause = self._database.watch(self._database.transaction(self.connection))
                self._watch_at = None if pause is None else now + pause

    def _next(self, *, only_urgent: bool = False) -> _Job | None:
        with self._ready:
            while self._urgent or (self._jobs and not only_urgent):
                job = self._urgent.popleft() if self._urgent else self._jobs.popleft()
                if job.future.set_running_or_notify_cancel():
                    return job
        return None

    def _next_alone(self) -> _Job | None:
        with self._ready:
            job = self._alone.popleft() if self._alone else None
        return job if job is not None and job.future.set_running_or_notify_cancel() else None

    def _fail_waiting(self, error: Exception) -> None:
        """Fail whoever waited when the attempt began; a later one may find the lock free, and gets an attempt anew."""
        error = translated(error, self._database.path)
        with self._ready:
            failed: list[_Job] = []
            for jobs in (self._urgent, self._jobs, self._alone):
                while jobs and jobs[0].submitted_at <= self._began:
                    failed.append(jobs.popleft())
        for job in failed:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(error)

    def _serve(self) -> None:
        if self.connection is None:
            self.connection = self._connected()
        if not self._writes:
            with self.between:
                self._read(self.connection)
            return
        if (job := self._next_alone()) is not None:
            if job.work is connected:
                job.future.set_result(None)
                return
            with self._held(urgent=False), self.between:
                self._run_alone(self.connection, job)
            return
        urgent = bool(self._urgent)
        with self._held(urgent=urgent), self.between:
            done, error = self._write_together(self.connection, only_urgent=urgent)
        for job in done:
            if error is not None:
                job.future.set_exception(translated(error, self._database.path))
        if error is not None:
            return
        wakes: set[str] = set()
        for job in done:
            if job.transaction is not None:
                wakes |= job.transaction.wakes
                if job.transaction.cancels:
                    wakes.add("cancel")
                if self._database.job_ended is not None:
                    for end in job.transaction.job_ends:
                        self._database.job_ended(end)
            job.future.set_result(job.value)
        if wakes:
            self._database.committed(wakes)

    def _connected(self) -> sqlite3.Connection:
        """With the turn only where the file needs a change: a transaction of a user's own holds up whoever has the
        turn, and that user may be waiting for this very connection.
        """
        if self._writes and not self._database.is_made():
            with self._held(urgent=False), self.between:
                return self._database.connect(writes=True)
        with self.between:
            return self._database.connect(writes=self._writes)

    def _held(self, *, urgent: bool) -> AbstractContextManager[None]:
        return nullcontext() if self._turns is None else self._turns.taken(urgent=urgent)

    def _write_together(
        self, connection: sqlite3.Connection, *, only_urgent: bool
    ) -> tuple[list[_Job], Exception | None]:
        """Run waiting jobs in one transaction: those it carried, and the error that undid them all."""
        done: list[_Job] = []
        self._began = time.monotonic()  # whoever came during the wait for the turn waits for this, too
        connection.execute("BEGIN IMMEDIATE")
        try:
            until = time.monotonic() + _SHARED_SECONDS
            while time.monotonic() < until and (job := self._next(only_urgent=only_urgent)) is not None:
                if self._write_one(connection, job):
                    done.append(job)
                elif not connection.in_transaction:
                    # SQLite undid everything by itself (a full disk): the others did not happen either.
                    exception = job.future.exception()
                    return done, exception if isinstance(exception, Exception) else None
            for job in done:
                reached(f"store.{job.verb}.before_commit")
            connection.execute("COMMIT")
            for job in done:
                reached(f"store.{job.verb}.after_commit")
        except Exception as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return done, error
        return done, None

    def _write_one(self, connection: sqlite3.Connection, job: _Job) -> bool:
        try:
            connection.execute("SAVEPOINT job")
            job.transaction = self._database.transaction(connection)
            job.value = job.work(job.transaction)
            connection.execute("RELEASE job")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK TO job")
                connection.execute("RELEASE job")
            job.future.set_exception(translated(error, self._database.path))
            return False
        return True

    def _run_alone(self, connection: sqlite3.Connection, job: _Job) -> None:
        try:
            value = job.work(self._database.transaction(connection))
        except BaseException as error:
            job.future.set_exception(translated(error, self._database.path))
        else:
            job.future.set_result(value)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _read(self, connection: sqlite3.Connection) -> None:
        job = self._next()
        if job is None:
            return
        try:
            # One snapshot: a task that moves between two tables is seen in one of them.
            connection.execute("BEGIN")
            try:
                value = job.work(self._database.transaction(connection))
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")
        except BaseException as error:
            job.future.set_exception(translated(error, self._database.path))
        else:
            job.future.set_result(value)


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
        self.job_ended: JobEndListener | None = None
        # Looks at the file from the reading thread; seconds until it wants to look again, None: after the next read.
        self.watch: Callable[[Transaction], float | None] = lambda _: None
        self._locked_seconds = float(options.extra.get("lock_timeout", _LOCKED_SECONDS))
        self._lock = threading.Lock()
        self._threads: tuple[_Thread, _Thread] | None = None
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

    def _running(self) -> tuple[_Thread, _Thread]:
        if not self._open:
            raise StoreError(f"the store of {self.path} is not open: await store.open() first")
        if self._pid != os.getpid():
            # Threads do not survive a fork, and neither may what they held. The lock is new for the same reason.
            self._lock = threading.Lock()
            if self._threads is not None:
                _ABANDONED.extend(self._threads)
            self._threads = None
            self._pid = os.getpid()
        with self._lock:
            if self._threads is None:
                writer = _Thread(self, writes=True)
                self._threads = (writer, writer if self.in_memory else _Thread(self, writes=False))
            return self._threads

    async def write[T](self, work: Work[T], *, urgent: bool = False, verb: str = "") -> T:
        """Run `work` in a transaction that is committed and synced when this returns.

        `verb` names the fault points around the commit.
        """
        return await self._answer(self._running()[0].submit(work, urgent=urgent, verb=verb), self._locked_seconds)

    async def alone[T](self, work: Work[T]) -> T:
        """Run `work` on the writing connection outside a transaction: it makes its own."""
        patience = max(self._locked_seconds, _MIGRATION_SECONDS)
        return await self._answer(self._running()[0].submit(work, alone=True), patience)

    async def _answer(self, job: _Job, patience: float) -> Any:
        giving_up = asyncio.get_running_loop().call_later(patience, job.expire)
        try:
            return await asyncio.wrap_future(job.future)
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
        return await asyncio.wrap_future(self._running()[1].submit(work).future)

    async def close(self) -> None:
        threads, self._threads, self._open = self._threads, None, False
        if threads is not None and self._pid == os.getpid():
            for thread in dict.fromkeys(threads):
                await asyncio.to_thread(thread.close)


class Part:
    """What every module of the store builds on."""

    database: Database
