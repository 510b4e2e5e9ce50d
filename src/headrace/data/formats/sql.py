"""Rows of a query, as they come."""

import contextlib
from collections.abc import Generator, Iterator
from typing import Any, cast

from headrace.core.errors import DataError, MissingExtra
from headrace.data.formats.rows import BATCH_ROWS
from headrace.data.sources import SQL
from headrace.store.connect import masked_url


@contextlib.contextmanager
def rows_of(sql: SQL) -> Generator[Iterator[dict[str, Any]]]:
    where: Any = sql.where
    if isinstance(where, str):
        engine = _engine(where)
        try:
            with engine.connect() as connection, _sqlalchemy_rows(connection, sql) as rows:
                yield rows
        finally:
            engine.dispose()
    elif hasattr(where, "cursor"):
        with contextlib.closing(where.cursor()) as cursor:
            yield _driver_rows(cursor, sql)
    elif type(where).__module__.partition(".")[0] == "sqlalchemy" and hasattr(where, "connect"):
        with where.connect() as connection, _sqlalchemy_rows(connection, sql) as rows:
            yield rows
    elif hasattr(where, "execute"):
        with _sqlalchemy_rows(where, sql) as rows:
            yield rows
    else:
        raise DataError(f"SQL(query, where): where is a URL or an open connection, not {type(where).__qualname__}")


def _engine(url: str) -> Any:
    from sqlalchemy import create_engine
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    scheme, separator, rest = url.partition("://")
    if scheme.partition("+")[0] in ("postgresql", "postgres") and scheme.partition("+")[2] in ("", "asyncpg"):
        scheme = "postgresql+psycopg"  # a driver that blocks: this is a thread of its own
    try:
        return create_engine(scheme + separator + rest)
    except (ArgumentError, NoSuchModuleError):
        # Without the error's own text, which may show the whole URL.
        raise DataError(f"{masked_url(url)!r} is no URL that SQLAlchemy knows") from None
    except ImportError as error:
        raise MissingExtra(f"{scheme}:// needs a driver that is not installed: {error}") from error


@contextlib.contextmanager
def _sqlalchemy_rows(connection: Any, sql: SQL) -> Generator[Iterator[dict[str, Any]]]:
    from sqlalchemy import text

    options = {"stream_results": True, "yield_per": BATCH_ROWS}
    result = connection.execute(text(sql.query), sql.parameters or {}, execution_options=options)
    with contextlib.closing(result):
        if not result.returns_rows:
            raise DataError(f"the query gives no rows: {sql.query!r}")
        names = _checked(list(result.keys()))
        yield (dict(zip(names, row, strict=True)) for row in result)


def _driver_rows(cursor: Any, sql: SQL) -> Iterator[dict[str, Any]]:
    if sql.parameters is None:
        cursor.execute(sql.query)
    else:
        cursor.execute(sql.query, sql.parameters)
    if cursor.description is None:
        raise DataError(f"the query gives no rows: {sql.query!r}")
    names = _checked([column[0] for column in cursor.description])

    def rows() -> Iterator[dict[str, Any]]:
        while found := cast("list[Any]", cursor.fetchmany(BATCH_ROWS)):
            yield from (dict(zip(names, row, strict=True)) for row in found)

    return rows()


def _checked(names: list[str]) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"the query gives the column {name!r} twice; name one of them with `as`")
    return names
