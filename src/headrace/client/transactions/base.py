"""What an adapter to a user's connection does, and which one an object needs.

No driver is imported here: an object of a driver's class brings its module along, so the kind is read from the class.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from headrace.core.errors import OptionError
from headrace.store.base import Statement

type Rows = Sequence[Sequence[Any]]


class Adapter(Protocol):
    """One connection of the user. `execute` of a sync driver blocks and never suspends."""

    dialect: str  # "sqlite" | "postgresql"
    awaits: bool  # an async driver: it must not be touched by a blocking face, which has no loop to run it on
    database: object  # what stands for the database behind it: checked once, while this object lives

    async def execute(self, statement: Statement) -> Rows: ...

    async def begin(self) -> bool:
        """Open a transaction when the connection has none and would commit each statement; True if it did."""
        ...

    async def end(self, *, commit: bool) -> None:
        """End what `begin` opened."""
        ...

    def after_commit(self, act: Callable[[], None]) -> None:
        """Call this when the user has committed, where the driver can tell."""
        ...


def adapt(connection: Any) -> Adapter:
    """The adapter for this object; OptionError when it is no connection that headrace knows."""
    for cls in type(connection).__mro__:
        match cls.__module__.partition(".")[0], cls.__name__:
            case "sqlite3" | "_sqlite3", "Connection":
                from headrace.client.transactions.sqlite3 import SQLite3Adapter

                return SQLite3Adapter(connection)
            case "psycopg", "Connection" | "AsyncConnection" as name:
                from headrace.client.transactions.psycopg import AsyncPsycopgAdapter, PsycopgAdapter

                return PsycopgAdapter(connection) if name == "Connection" else AsyncPsycopgAdapter(connection)
            case "asyncpg", "Connection" | "PoolConnectionProxy":
                from headrace.client.transactions.asyncpg import AsyncpgAdapter

                return AsyncpgAdapter(connection)
            case "sqlalchemy", "scoped_session" | "async_scoped_session":
                return adapt(connection.registry())
            case "sqlalchemy", "Session" | "AsyncSession" | "Connection" | "AsyncConnection" as name:
                from headrace.client.transactions.sqlalchemy import adapt_sqlalchemy

                return adapt_sqlalchemy(connection, name)
            case _:
                continue
    raise OptionError(
        f"a {type(connection).__module__}.{type(connection).__qualname__} is not a connection that headrace knows: "
        "give an SQLAlchemy Session or Connection (sync or async), or one of psycopg, asyncpg or sqlite3"
    )
