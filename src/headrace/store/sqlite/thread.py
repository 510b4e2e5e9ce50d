"""One connection on its own thread: it serves its line, and shares a commit among those who write together."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Protocol

from headrace.runtime.faults import reached
from headrace.store.base import JobEndListener, StoreClosed
from headrace.store.sqlite.failures import translated
from headrace.store.sqlite.forks import forks_wait_for
from headrace.store.sqlite.job_events import note_jobs
from headrace.store.sqlite.line import Job, Line, left_over
from headrace.store.sqlite.locking import Turns
from headrace.store.sqlite.transaction import Transaction

_logger = logging.getLogger("headrace.store")

# A transaction that others wait for should be over in 20 ms; the commit itself needs some of that.
_SHARED_SECONDS = 0.012
# A thread that waits for somebody else's lock cannot be stopped; it ends with the process.
_CLOSING_SECONDS = 5.0


def connected(_: Transaction) -> None:
    """The work of `open`: it wants no more than the connection."""


class Owner(Protocol):
    """What a thread needs of its database."""

    path: str
    in_memory: bool
    is_made: Callable[[], bool]
    committed: Callable[[set[str]], None]
    grown: Callable[[set[str]], None]
    job_ended: JobEndListener | None
    watch: Callable[[Transaction], float | None]
    rider: Callable[[Sequence[Job]], Job | None]

    def transaction(self, connection: sqlite3.Connection) -> Transaction: ...

    def connect(self, *, writes: bool) -> sqlite3.Connection: ...


class Thread:
    """A thread with its connection and the line in front of it."""

    def __init__(self, database: Owner, *, writes: bool) -> None:
        self._database = database
        self._writes = writes
        self._line = Line()
        self._watch_at: float | None = None
        self._began = 0.0  # when the present attempt to serve began
        self._turns = Turns(database.path) if writes and not database.in_memory else None
        self._between = threading.Lock()  # held while SQLite is at work, so that nobody forks then
        self._connection: sqlite3.Connection | None = None
        name = f"headrace-sqlite-{'writer' if writes else 'reader'}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Job, *, urgent: bool = False, alone: bool = False) -> None:
        """`alone`: under the lock between processes, but with a transaction of its own making."""
        if not self._line.join(job, urgent=urgent, alone=alone):
            raise StoreClosed(f"the store of {self._database.path} is closed")

    def close(self) -> None:
        """Finish what was submitted, then close the connection."""
        self._line.close()
        self._thread.join(_CLOSING_SECONDS)

    def _run(self) -> None:
        with forks_wait_for(self._between):
            try:
                while (waiting := self._line.wait(self._watch_at)) is not None:
                    self._began = time.monotonic()
                    try:
                        if waiting:
                            self._serve()
                        self._watch()
                    except Exception as error:
                        self._line.fail(translated(error, self._database.path), since=self._began)
            finally:
                if self._connection is not None:
                    self._connection.close()
                if self._turns is not None:
                    self._turns.close()

    def _watch(self) -> None:
        """Between jobs, on the thread that is here anyway: a hop from the event loop would cost ten times the look."""
        if self._writes or (self._connection is None and self._watch_at is None):
            return
        now = time.monotonic()
        if self._watch_at is None or now >= self._watch_at:
            self._watch_at = now + 1.0
            with suppress(sqlite3.Error):  # only hints are lost, until the next look
                if self._connection is None:  # it was given up (see _undo); whoever listens goes on
                    self._connection = self._connected()
                with self._between:
                    pause = self._database.watch(self._database.transaction(self._connection))
                self._watch_at = None if pause is None else now + pause

    def _serve(self) -> None:
        if self._connection is None:
            self._connection = self._connected()
        if not self._writes:
            with self._between:
                self._read(self._connection)
            return
        if (job := self._line.next_alone()) is not None:
            if job.work is connected:
                job.future.set_result(None)
                return
            with self._held(urgent=False), self._between:
                self._run_alone(self._connection, job)
            return
        urgent = self._line.urgent
        with self._held(urgent=urgent), self._between:
            done, error = self._write_together(self._connection, only_urgent=urgent)
        if error is not None:
            for job in done:
                job.future.set_exception(translated(error, self._database.path))
            return
        transactions = [job.transaction for job in done if job.transaction is not None]
        self._tell_of_ends(transactions)
        # Before the answers: those wake threads of this process, which would keep the interpreter while workers wait.
        self._wake(done)
        for job in sorted(done, key=lambda job: not job.rides):
            job.future.set_result(job.value)
        self._announce(transactions)

    def _tell_of_ends(self, transactions: Iterable[Transaction]) -> None:
        """Before the answers: when a verb returns, whoever watches knows what it ended."""
        if self._database.job_ended is not None:
            for transaction in transactions:
                for end in transaction.job_ends:
                    try:
                        self._database.job_ended(end)
                    except Exception:  # it is committed: a listener that fails must not look like a failed write
                        _logger.exception("job %s ended, and who counts could not be told", end.job)

    def _wake(self, done: Sequence[Job]) -> None:
        wakes: set[str] = set()
        for job in left_over(done):
            if job.transaction is not None:
                wakes |= job.transaction.wakes
                if job.transaction.cancels:
                    wakes.add("cancel")
        if wakes:
            try:
                self._database.committed(wakes)
            except Exception:  # it is committed, and whoever waits for the answer must get it; a hint is only a hint
                _logger.exception("those who wait for %s could not be woken", ", ".join(sorted(wakes)))

    def _announce(self, transactions: Iterable[Transaction]) -> None:
        grown: set[str] = set()
        for transaction in transactions:
            if transaction.grown:
                grown |= transaction.grown
        if grown:
            try:
                self._database.grown(grown)
            except Exception:  # as above
                _logger.exception("those who watch could not be told")

    def _connected(self) -> sqlite3.Connection:
        """With the turn only where the file needs a change: a transaction of a user's own holds up whoever has the
        turn, and that user may be waiting for this very connection.
        """
        if self._writes and not self._database.is_made():
            with self._held(urgent=False), self._between:
                return self._database.connect(writes=True)
        with self._between:
            return self._database.connect(writes=self._writes)

    def _held(self, *, urgent: bool) -> AbstractContextManager[None]:
        return nullcontext() if self._turns is None else self._turns.taken(urgent=urgent)

    def _write_together(
        self, connection: sqlite3.Connection, *, only_urgent: bool
    ) -> tuple[list[Job], Exception | None]:
        """Run waiting jobs in one transaction: those it carried, and the error that undid them all."""
        done: list[Job] = []
        self._began = time.monotonic()  # whoever came during the wait for the turn waits for this, too
        connection.execute("BEGIN IMMEDIATE")
        try:
            until = time.monotonic() + _SHARED_SECONDS
            while (job := self._next(done, until, only_urgent=only_urgent)) is not None:
                if self._write_one(connection, job, first=not done):
                    done.append(job)
                elif not connection.in_transaction:
                    if done:  # SQLite undid everything by itself (a full disk), the others' work as well
                        exception = job.future.exception()
                        return done, exception if isinstance(exception, Exception) else None
                    connection.execute("BEGIN IMMEDIATE")  # it fell alone; who comes next need not wait for a turn
            for job in done:
                reached(f"store.{job.verb}.before_commit")
            connection.execute("COMMIT")
            for job in done:
                reached(f"store.{job.verb}.after_commit")
        except Exception as error:
            self._undo(connection)
            return done, error
        return done, None

    def _next(self, done: Sequence[Job], until: float, *, only_urgent: bool) -> Job | None:
        """Who stands in line, while there is time; then who wants to go with them."""
        job = self._line.next(only_urgent=only_urgent) if time.monotonic() < until else None
        return job or self._database.rider(done)

    def _undo(self, connection: sqlite3.Connection) -> None:
        """Leave no transaction open: it would lock everybody out. Raises nothing, since callers must hear of the first
        error.
        """
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        if connection.in_transaction and not self._database.in_memory:
            # To close a connection undoes as well; the next job opens another.
            self._connection = None
            with suppress(sqlite3.Error):
                connection.close()

    def _write_one(self, connection: sqlite3.Connection, job: Job, *, first: bool) -> bool:
        """The first needs no savepoint, and mostly it is the only one: with it goes nobody else's work."""
        try:
            if not first:
                connection.execute("SAVEPOINT job")
            job.transaction = self._database.transaction(connection)
            job.value = job.work(job.transaction)
            if job.transaction.changed_jobs:
                note_jobs(job.transaction)
            if not first:
                connection.execute("RELEASE job")
        except BaseException as error:
            # First of all, whatever follows: whoever waits for it must not wait for ever.
            job.future.set_exception(translated(error, self._database.path))
            if connection.in_transaction:
                try:
                    for statement in ("ROLLBACK",) if first else ("ROLLBACK TO job", "RELEASE job"):
                        connection.execute(statement)
                except sqlite3.Error:
                    raise error from None  # all the others fall with it, and should hear what it was
            return False
        return True

    def _run_alone(self, connection: sqlite3.Connection, job: Job) -> None:
        try:
            value = job.work(self._database.transaction(connection))
        except BaseException as error:
            self._undo(connection)
            job.future.set_exception(translated(error, self._database.path))
        else:
            self._undo(connection)  # what it left open was not meant to stay
            job.future.set_result(value)

    def _read(self, connection: sqlite3.Connection) -> None:
        job = self._line.next()
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
            self._undo(connection)
            job.future.set_exception(translated(error, self._database.path))
        else:
            job.future.set_result(value)
