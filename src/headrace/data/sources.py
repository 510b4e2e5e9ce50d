"""What an object can be made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

type Row = Mapping[str, Any]
# Rows; or what gives Arrow's record batches (a table, a batch, a reader, several batches, a pandas or polars frame); or
# a path or URL of Parquet or CSV; or SQL. The libraries are optional, so their classes are not named.
type Source = Iterable[Row] | str | PathLike[str] | SQL | Any
# A pyarrow.Schema, or columns and their types: {"id": pa.int64(), "name": "string"}.
type SchemaLike = Mapping[str, Any] | Any


@dataclass(frozen=True, slots=True, kw_only=False)
class SQL:
    """Rows that a query gives: `SQL("select …", "postgresql://reader@host/shop")`.

    `where` is a URL for SQLAlchemy, or an open connection (SQLAlchemy's, or one of a DB-API driver, which the thread
    that makes the object must be allowed to use). Without it, the place where the object goes runs the query itself, if
    it can. `parameters` go to the query as `:name`, or, with a DB-API connection, in the style of its driver.
    """

    query: str
    where: Any = field(default=None, repr=False)  # may hold a password
    parameters: Any = None
