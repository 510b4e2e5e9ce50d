"""The pool, and how a verb survives what a database does: deadlocks, lost connections, a missing schema.

Nothing here leaves state in a session (no SET, no advisory lock), so that a transaction pooler may stand in between.
The clock of a test does (see `clock`); a store has none unless it is given one.
"""

import asyncio
import logging
import random
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import asyncpg

from headrace.core.errors import SchemaError, StoreError, StoreUnavailable
from headrace.runtime.faults import reached
from headrace.store.base import JobEndListener, StoreOptions
from headrace.store.postgres.clock import SessionClock

type Rows = list[Any]

_asyncpg: Any = asyncpg  # it ships no types


class Connection(Protocol):
    """What we use of asyncpg's connection."""

    async def fetch(self, query: str, *arguments: Any) -> Rows: ...

    async def fetchval(self, query: str, *arguments: Any) -> Any: ...

    async def execute(self, query: str, *arguments: Any) -> str: ...

    def transaction(self) -> AbstractAsyncContextManager[None]: ...


# What a transaction may lose against another: nothing was written, and the next try usually passes. A lock that was not
# to be had in time is a key that an open transaction holds (an enqueue says UniqueBusy; the end of a job insists).
_CONTENTION = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError)
_CONTENTION_TRIES = 8
# The server has become a standby, and others may lead to the new primary: a line to it is of no more use.
_DEMOTED = asyncpg.ReadOnlySQLTransactionError
# The server is gone, starting, stopping, full, without disk or memory, read-only for now, or cut the line.
_OUTAGE = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what the driver says when the line is cut in the middle of its own conversation
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresSystemError,
    _DEMOTED,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)
# Of these, what no other try mends when it is met at the very beginning: the URL is wrong, or not known to the server.
_REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError, ValueError)
NOT_CONNECTED = (*_OUTAGE, *_REFUSED)
_OUTAGE_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
# What stands between us and the server may forget a line that is silent for long.
_LONGEST_IDLE = 240.0
_ASIDE = 3  # two finishes and a claim
_NO_SCHEMA = (asyncpg.InvalidSchemaNameError, asyncpg.UndefinedTableError, asyncpg.UndefinedFunctionError)


class _PlainConnection(asyncpg.Connection):
    """A connection that is returned to the pool without a round trip: there is no session state to reset."""

    __slots__ = ()

    def get_reset_query(self) -> str:
        return ""


_log = logging.getLogger("headrace.store.sql")


async def _echo_statements(connection: Any) -> None:
    """For `echo`: every statement goes to the log, without its parameters, which may hold secrets."""

    def log(query: Any) -> None:
        _log.info("%s (%.1f ms)", query.query, query.elapsed * 1000)

    connection.add_query_logger(log)


class Database:
    """One pool. `fetch` runs one statement, `run` a function in one transaction; both translate errors.

    A few connections are kept aside between their uses, and the one that was used last is used next: through the pool
    and back costs as much as a short statement itself (an asyncio task to give it back, among others), and while one is
    on its way back another one is taken, with plans and caches of its own.
    """

    def __init__(self, dsn: str, options: StoreOptions) -> None:
        self.dsn = dsn
        self.name = options.name
        self.masked = masked(dsn)
        self._options = options
        self._pool: Any = None
        self._aside: list[tuple[Any, float]] = []  # connections of the pool, and since when they are idle
        self._waiting = 0  # for one of the pool
        self.job_ended: JobEndListener | None = None
        clock = options.extra.get("clock")
        self._clock = None if clock is None else SessionClock(clock, options.name)

    @property
    def is_open(self) -> bool:
        return self._pool is not None

    async def open(self) -> None:
        if self._pool is not None:
            return
        try:
            self._pool = await _asyncpg.create_pool(
                self.dsn,
                min_size=1,
                max_size=self._options.pool_size,
                connection_class=_PlainConnection,
                **self.connect_arguments(),
            )
            if self._clock is not None:
                async with self.connection() as connection:
                    await self._clock.install(connection)
        except NOT_CONNECTED as error:
            raise not_connected(error, self.dsn) from error

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        aside, self._aside = self._aside, []
        try:
            for connection, _ in aside:
                if _is_sound(connection):
                    await pool.release(connection)
            await asyncio.wait_for(pool.close(), timeout=5)
        except (TimeoutError, *_OUTAGE):
            pool.terminate()
        except asyncio.CancelledError:
            pool.terminate()
            raise

    def connect_arguments(self) -> dict[str, Any]:
        """How this store connects, beside the DSN. A pooler in transaction mode wants statement_cache_size=0."""
        extra = self._options.extra
        arguments: dict[str, Any] = {"timeout": extra.get("connect_timeout", 10)}
        if "statement_cache_size" in extra:
            arguments["statement_cache_size"] = extra["statement_cache_size"]
        if extra.get("echo"):
            arguments["init"] = _echo_statements
        if self._clock is not None:
            arguments["server_settings"] = self._clock.server_settings
        return arguments

    async def fetch(self, sql: str, *arguments: Any, repeatable: bool = False, verb: str = "") -> Rows:
        """One statement, its own transaction. `repeatable`: run it again when the connection was lost on the way.

        `verb` names the fault points around the commit.
        """

        async def work(connection: Connection) -> Rows:
            return await connection.fetch(sql, *arguments)

        return await self._persist(work, repeatable=repeatable, transaction=False, verb=verb)

    async def run[T](
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        repeatable: bool = False,
        transaction: bool = True,
        verb: str = "",
    ) -> T:
        """`work` in one transaction; after a deadlock from its beginning, so it must not keep anything outside.

        `transaction=False` where `work` is a single statement, which needs no BEGIN and COMMIT of its own.
        """
        return await self._persist(work, repeatable=repeatable, transaction=transaction, verb=verb)

    async def _persist[T](
        self, work: Callable[[Connection], Awaitable[T]], *, repeatable: bool, transaction: bool, verb: str
    ) -> T:
        contended = 0
        outages = 0
        while True:
            try:
                async with self.connection() as connection:
                    if not transaction:
                        reached(f"store.{verb}.before_commit")
                        answer = await work(connection)
                    else:
                        async with connection.transaction():
                            answer = await work(connection)
                            reached(f"store.{verb}.before_commit")
                    reached(f"store.{verb}.after_commit")
                    return answer
            except _CONTENTION as error:
                contended += 1
                if contended == _CONTENTION_TRIES:
                    raise StoreUnavailable(
                        f"{self.masked}: still contended after {contended} tries: {error}"
                    ) from error
                await asyncio.sleep(random.uniform(0, 0.005 * 2**contended))
            except StoreUnavailable:
                if not repeatable or outages == len(_OUTAGE_PAUSES):
                    raise
                await asyncio.sleep(_OUTAGE_PAUSES[outages] * random.uniform(0.8, 1.2))
                outages += 1

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        """A connection of the pool, with errors translated; most callers want `fetch` or `run`."""
        pool = self._pool
        if pool is None:
            raise StoreError(f"{self.masked}: the store is not open; await store.open() first")
        try:
            connection, kept = await self._take(pool), False
            try:
                if self._clock is not None:
                    await self._clock.set(connection)
                yield connection
                kept = self._keep(pool, connection)
            except _DEMOTED:
                connection.terminate()
                raise
            finally:
                if not kept:
                    await pool.release(connection)
        except asyncpg.PostgresError as error:
            raise self._translated(error) from error
        except (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
            if isinstance(error, asyncpg.DataError):  # both: an argument that the driver cannot encode
                raise
            raise self.unavailable(error) from error

    async def _take(self, pool: Any) -> Any:
        now = time.monotonic()
        while self._aside and now - self._aside[0][1] >= _LONGEST_IDLE:  # the one at the bottom is idle for longest
            connection, _ = self._aside.pop(0)
            if _is_sound(connection):
                connection.terminate()
                await pool.release(connection)
        while self._aside:
            connection, _ = self._aside.pop()
            if _is_sound(connection):
                return connection
        self._waiting += 1
        try:
            return await pool.acquire()
        finally:
            self._waiting -= 1

    def _keep(self, pool: Any, connection: Any) -> bool:
        """Set aside what the pool need not have back: nobody waits for it, and it is sound."""
        if len(self._aside) >= _ASIDE or self._waiting or self._pool is not pool or not _is_sound(connection):
            return False
        self._aside.append((connection, time.monotonic()))
        return True

    def _translated(self, error: asyncpg.PostgresError) -> Exception:
        if isinstance(error, _NO_SCHEMA):
            return SchemaError(
                f"{self.masked}: the schema {self.name!r} is missing or incomplete ({error}); "
                "run `headrace db upgrade -d` with this URL, or with module:app"
            )
        if isinstance(error, _OUTAGE):
            return self.unavailable(error)
        return error

    def unavailable(self, error: BaseException) -> StoreUnavailable:
        return _unavailable(error, self.masked)


def _is_sound(connection: Any) -> bool:
    """Whether it can be used. One that the server cut while it was aside is in the pool's hands already."""
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        return False


def not_connected(error: BaseException, dsn: str) -> StoreError:
    """Why there is no connection: an outage, or what only a change of the URL or of the server's settings mends."""
    if isinstance(error, _REFUSED):
        return StoreError(
            f"{masked(dsn)}: {type(error).__name__}: {error}; check this URL: its user, password and database"
        )
    return _unavailable(error, masked(dsn))


def _unavailable(error: BaseException, shown: str) -> StoreUnavailable:
    return StoreUnavailable(f"{shown}: {type(error).__name__}: {error or 'no answer'}; it is safe to try again")


def masked(dsn: str) -> str:
    """The DSN without its password."""
    return re.sub(r"(password=)[^&\s]*", r"\1***", re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", dsn))


def column(rows: Rows) -> list[Any]:
    """The first column of every row."""
    return [row[0] for row in rows]
