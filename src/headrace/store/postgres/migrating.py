"""Migrations on PostgreSQL: Alembic is synchronous, asyncpg is not, and SQLAlchemy lends one to the other."""

from collections.abc import Callable
from typing import Any

import asyncpg
from sqlalchemy import Connection, NullPool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from headrace.core.errors import SchemaError, StoreUnavailable
from headrace.store.postgres.connection import NOT_CONNECTED, not_connected

_asyncpg: Any = asyncpg  # it ships no types


async def on_connection[T](dsn: str, work: Callable[[Connection], T]) -> T:
    """Do synchronous `work` in one transaction on a connection of its own."""

    async def connect() -> Any:
        try:
            return await _asyncpg.connect(dsn, statement_cache_size=0)
        except NOT_CONNECTED as error:
            raise not_connected(error, dsn) from error

    # asyncpg reads the DSN itself: SQLAlchemy would hand options such as sslmode on as arguments it does not know.
    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            return await connection.run_sync(work)
    except (OSError, asyncpg.CannotConnectNowError, asyncpg.ConnectionDoesNotExistError) as error:
        raise StoreUnavailable(f"PostgreSQL cannot be reached for the migration: {error}") from error
    except DBAPIError as error:
        raise SchemaError(f"the migration was rolled back: {error.orig}") from error
    finally:
        await engine.dispose()


def run_script(connection: Connection, script: str) -> None:
    """Run several statements at once, in the connection's transaction; only the driver's own `execute` takes them."""
    dbapi: Any = connection.connection.dbapi_connection
    dbapi.run_async(lambda driver: driver.execute(script))  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
