"""The ledger as the suites see it: read with plain drivers, from outside headrace, and checked by its own checker."""

import asyncio
import contextlib
import fcntl
import sqlite3
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg

from headrace.core.states import TERMINAL
from headrace.store import migrations
from headrace.store.base import Store, StoreOptions, Violation
from headrace.store.connect import connect, sqlite_path
from tests.guarantees import guard

_TASK_COLUMNS = "id, name, state, reason, claim_no, attempt, losses, run_no, worker"


class TaskRow(NamedTuple):
    id: int
    name: str
    state: str
    reason: str | None
    claim_no: int
    attempt: int
    losses: int
    run_no: int
    worker: str | None
    result: str | None


class AttemptRow(NamedTuple):
    task: int
    claim_no: int
    state: str
    charged: bool
    worker: str | None
    recorded_by: str | None
    late_state: str | None


class WorkerRow(NamedTuple):
    id: str
    hostname: str
    pid: int
    state: str
    beat: int


class Step(NamedTuple):
    task: int
    before: str | None
    after: str
    claim_no: int
    run_no: int
    worker: str | None


@dataclass(slots=True)
class Ledger:
    url: str
    guarded: bool = True
    _connection: Any = None

    @property
    def sqlite(self) -> bool:
        return self.url.startswith("sqlite")

    def prepare(self) -> None:
        """Make the schema and put the guard on it."""
        if not self._made():
            migrations.upgrade(self.url, name="headrace")
        if not self.guarded:
            return
        if self.sqlite:
            # Every store sets this mode; done here so that a foreign lock can be taken before the first store opens.
            self.query("PRAGMA journal_mode = WAL")
            self._open().executescript(guard.SQLITE)
        else:
            self._open().execute(guard.POSTGRES)

    def _made(self) -> bool:
        """Most are copies of a ledger that has the schema; to learn that from a migration takes a tenth of a second."""
        if self.sqlite:
            return bool(self.query("SELECT 1 FROM sqlite_master WHERE name = 'headrace_meta'"))
        return self.query("SELECT to_regclass('headrace.meta') IS NOT NULL") == [(True,)]

    def query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """`{tasks}` is the name of a table of the ledger, `?` a parameter."""
        prefix = "headrace_" if self.sqlite else "headrace."
        for table in ("tasks", "history", "attempts", "workers", "slots", "keys"):
            sql = sql.replace(f"{{{table}}}", prefix + table)
        if not self.sqlite:
            sql = sql.replace("?", "%s")
        try:
            return self._fetch(sql, parameters)
        except psycopg.OperationalError:
            self.close()  # the server was restarted between two looks
            return self._fetch(sql, parameters)

    def _fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        cursor = self._open().execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []

    def _open(self) -> Any:
        if self._connection is None:
            if self.sqlite:
                self._connection = sqlite3.connect(sqlite_path(self.url), timeout=30, isolation_level=None)
            else:
                self._connection = psycopg.connect(self.url, autocommit=True)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def writable(self) -> bool:
        """Whether nobody holds SQLite's write lock, or the lock files beside it, at this moment."""
        if not self.sqlite:
            return True
        path = sqlite_path(self.url)
        for name in (f"{path}-turn", f"{path}-lock"):
            with contextlib.suppress(FileNotFoundError), open(name, "rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
        connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
        finally:
            connection.close()
        return True

    def tasks(self) -> dict[int, TaskRow]:
        rows = self.query(
            f"SELECT {_TASK_COLUMNS}, NULL FROM {{tasks}} UNION ALL SELECT {_TASK_COLUMNS}, result FROM {{history}}"
        )
        return {row[0]: TaskRow(*row) for row in rows}

    def task(self, task: int) -> TaskRow:
        return self.tasks()[task]

    def done(self) -> int:
        return self.query("SELECT count(*) FROM {history}")[0][0]

    def states(self) -> dict[str, int]:
        rows = self.query(
            "SELECT state, count(*) FROM (SELECT state FROM {tasks} UNION ALL SELECT state FROM {history}) AS s"
            " GROUP BY state"
        )
        return dict(rows)

    def attempts(self, task: int | None = None) -> list[AttemptRow]:
        """With the plain successes, which history alone tells of."""
        columns = "task, claim_no, state, charged, worker, recorded_by, late_state"
        found = {(row[0], row[1]): AttemptRow(*row) for row in self.query(f"SELECT {columns} FROM {{attempts}}")}
        for id, claim_no, worker in self.query("SELECT id, claim_no, worker FROM {history} WHERE state = 'completed'"):
            note = found.get((id, claim_no))
            if note is None or note.state == "refused":
                late = note.late_state if note else None
                found[id, claim_no] = AttemptRow(id, claim_no, "succeeded", True, worker, "worker", late)
        return [row for _, row in sorted(found.items()) if task is None or row.task == task]

    def workers(self) -> dict[str, WorkerRow]:
        rows = self.query("SELECT id, hostname, pid, state, beat FROM {workers} ORDER BY started_at, id")
        return {row[0]: WorkerRow(*row) for row in rows}

    def living(self) -> dict[str, WorkerRow]:
        return {worker: row for worker, row in self.workers().items() if row.state != "stopped"}

    def journal(self, task: int | None = None) -> list[Step]:
        """Every step the guard saw, in order."""
        journal = "guard_journal" if self.sqlite else "guard.journal"
        rows = self.query(f"SELECT task, before, after, claim_no, run_no, worker FROM {journal} ORDER BY step")
        return [Step(*row) for row in rows if task is None or row[0] == task]

    def outcomes(self, task: int) -> list[Step]:
        return [step for step in self.journal(task) if step.after in TERMINAL]

    def with_store[T](self, act: Callable[[Store], Coroutine[Any, Any, T]], *, lease: float = 30.0) -> T:
        """Act on the ledger through a store of this process."""

        async def run() -> T:
            store = connect(self.url, StoreOptions(lease=lease))
            await store.open()
            try:
                return await act(store)
            finally:
                await store.close()

        return asyncio.run(run())

    def violations(self) -> list[Violation]:
        return self.with_store(lambda store: store.check())
