"""The user's own connections, each with one plain face: begin, execute, savepoint, commit, rollback, enqueue.

Sync drivers are used from plain code, async ones through a runner that keeps one loop, so that a test reads the same
for all of them. Also a program: `python -m tests.guarantees.users URL KIND...` enqueues in a transaction of each kind,
says so, and waits to be killed before its COMMIT.
"""

import asyncio
import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NoReturn

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from headrace.store.connect import sqlite_path
from tests.guarantees import tasks_lanes
from tests.guarantees.declared import Tasks

SQLITE = ("sqlite3", "sqlite3 autocommit", "session", "connection", "async session", "async connection")
POSTGRES = (
    "psycopg", "psycopg autocommit", "async psycopg", "asyncpg", "session", "connection", "async session",
    "async connection", "async session on psycopg",
)  # fmt: skip


class User:
    """A user's connection. `connection` is what headrace is given."""

    is_async = False

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def enqueue(self, task: Any, /, using: dict[str, Any] | None = None, **arguments: Any) -> Any:
        return task.using(connection=self.connection, **(using or {})).enqueue(**arguments)

    def submit(self, tasks: Tasks, argv: list[str]) -> Any:
        return tasks.app.commands.submit(argv, connection=self.connection)

    def in_block(self, tasks: Tasks, work: Callable[[bool], Any]) -> Any:
        """`with app.transaction(connection)` around `work`, which is given whether to use the async forms."""
        with tasks.app.transaction(self.connection):
            return work(False)

    def begin(self) -> None:
        """Most drivers begin by themselves."""

    def execute(self, sql: str) -> None:
        self.connection.execute(sql)

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def order(self, number: int) -> None:
        """The user's own write, which must share the fate of the task."""
        self.execute(f"INSERT INTO orders VALUES ({number})")

    def savepoint(self) -> None:
        self.execute("SAVEPOINT theirs")

    def undo_savepoint(self) -> None:
        self.execute("ROLLBACK TO SAVEPOINT theirs")


class ByStatement(User):
    """In autocommit mode the user says BEGIN and COMMIT."""

    def begin(self) -> None:
        self.execute("BEGIN")

    def commit(self) -> None:
        self.execute("COMMIT")

    def rollback(self) -> None:
        self.execute("ROLLBACK")


class Alchemy(User):
    def execute(self, sql: str) -> None:
        self.connection.execute(sqlalchemy.text(sql))


class Async(User):
    is_async = True

    def __init__(self, connection: Any, runner: asyncio.Runner) -> None:
        super().__init__(connection)
        self._runner = runner

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def enqueue(self, task: Any, /, using: dict[str, Any] | None = None, **arguments: Any) -> Any:
        return self.run(task.using(connection=self.connection, **(using or {})).aenqueue(**arguments))

    def submit(self, tasks: Tasks, argv: list[str]) -> Any:
        return self.run(tasks.app.commands.asubmit(argv, connection=self.connection))

    def in_block(self, tasks: Tasks, work: Callable[[bool], Any]) -> Any:
        async def block() -> Any:
            async with tasks.app.transaction(self.connection):
                return await work(True)

        return self.run(block())

    def execute(self, sql: str) -> None:
        self.run(self.connection.execute(sql))

    def commit(self) -> None:
        self.run(self.connection.commit())

    def rollback(self) -> None:
        self.run(self.connection.rollback())


class AsyncByStatement(Async):
    def begin(self) -> None:
        self.execute("BEGIN")

    def commit(self) -> None:
        self.execute("COMMIT")

    def rollback(self) -> None:
        self.execute("ROLLBACK")


class AsyncAlchemy(Async):
    def execute(self, sql: str) -> None:
        self.run(self.connection.execute(sqlalchemy.text(sql)))


@contextlib.contextmanager
def user(url: str, kind: str) -> Iterator[User]:
    """A connection of this kind to this database, closed (and so undone) at the end."""
    opener = _sqlite_user if url.startswith("sqlite") else _postgres_user
    with contextlib.ExitStack() as stack:
        yield opener(stack, url, kind)


def _sqlite_user(stack: contextlib.ExitStack, url: str, kind: str) -> User:
    path = sqlite_path(url)
    match kind:
        case "sqlite3":
            return User(stack.enter_context(contextlib.closing(sqlite3.connect(path, timeout=30))))
        case "sqlite3 autocommit":
            connection = sqlite3.connect(path, timeout=30, isolation_level=None)
            return ByStatement(stack.enter_context(contextlib.closing(connection)))
        case "session" | "connection":
            return _alchemy(stack, f"sqlite:///{path}", kind)
        case _:
            return _async_alchemy(stack, f"sqlite+aiosqlite:///{path}", kind)


def _postgres_user(stack: contextlib.ExitStack, url: str, kind: str) -> User:
    bare = url.removeprefix("postgresql://")
    match kind:
        case "psycopg":
            return User(stack.enter_context(contextlib.closing(psycopg.connect(url))))
        case "psycopg autocommit":
            connection = psycopg.connect(url, autocommit=True)
            return ByStatement(stack.enter_context(contextlib.closing(connection)))
        case "session" | "connection":
            return _alchemy(stack, f"postgresql+psycopg://{bare}", kind)
        case "async psycopg":
            runner = stack.enter_context(asyncio.Runner())
            found = runner.run(psycopg.AsyncConnection.connect(url))
            stack.callback(lambda: runner.run(found.close()))
            return Async(found, runner)
        case "asyncpg":
            runner = stack.enter_context(asyncio.Runner())
            raw: Any = runner.run(asyncpg.connect(url))
            stack.callback(lambda: runner.run(raw.close()))
            return AsyncByStatement(raw, runner)
        case "async session on psycopg":
            return _async_alchemy(stack, f"postgresql+psycopg://{bare}", "async session")
        case _:
            return _async_alchemy(stack, f"postgresql+asyncpg://{bare}", kind)


def _alchemy(stack: contextlib.ExitStack, url: str, kind: str) -> User:
    engine = sqlalchemy.create_engine(url)
    stack.callback(engine.dispose)
    made: Any = Session(engine) if kind == "session" else engine.connect()
    stack.callback(made.close)
    return Alchemy(made)


def _async_alchemy(stack: contextlib.ExitStack, url: str, kind: str) -> User:
    runner = stack.enter_context(asyncio.Runner())
    engine = create_async_engine(url)
    stack.callback(lambda: runner.run(engine.dispose()))
    made: Any = AsyncSession(engine) if kind == "async session" else runner.run(_connected(engine))
    stack.callback(lambda: runner.run(made.close()))
    return AsyncAlchemy(made, runner)


async def _connected(engine: Any) -> Any:
    return await engine.connect()


def main(url: str, kinds: list[str]) -> None:
    """One process for each kind of connection, begun when a line arrives and ended by whoever sent it."""
    for kind in kinds:
        sys.stdin.readline()
        child = os.fork()
        if not child:
            _enqueue_and_wait(url, kind)
        os.waitpid(child, 0)


def _enqueue_and_wait(url: str, kind: str) -> NoReturn:
    tasks = tasks_lanes.declared.on(url)
    with user(url, kind) as client:
        client.begin()
        client.order(1)
        handle = client.enqueue(tasks.tell, {"unique": "only-one"}, n=1)
        print(f"enqueued {handle.id} {os.getpid()}", flush=True)
        time.sleep(600)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
