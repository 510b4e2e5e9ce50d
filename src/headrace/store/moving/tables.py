"""How each table of the schema goes to the other database. A table that nobody mentions here goes row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import Boolean, Float

from headrace.store.instants import from_micros, to_micros
from headrace.store.schema import POSTGRES_ONLY, Instant, build
from headrace.store.texts import mended

type Values = list[Any]  # of one row, in the order of its layout: instants as microseconds, truth as bool

# With the task that this column names. Events are nobody's and go row by row: whoever waits for one goes too, and there
# `deliver` finds the two together, whichever came first.
OF_TASK = {
    "attempts": "task",
    "keys": "task",
    "checkpoints": "task",
    "logs": "task",
    "dependencies": "task",
    "barriers": "task",
    "waits": "task",
    "releases": "upstream",
}
# With their job.
OF_JOB = ("job_counts", "job_additions", "job_events", "job_lines")
# Of no meaning elsewhere: slots belong to claims, which end here; leases; where ids and the schema stand.
STAYING = ("slots", "leaders", "ids", "meta")
# A unit of the move by themselves.
_UNITS = ("tasks", "history", "jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns of a table, the same in both databases."""

    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    instants: frozenset[int]
    truths: frozenset[int]
    floats: frozenset[int]

    def place(self, column: str) -> int:
        return self.columns.index(column)

    def from_sqlite(self, row: Sequence[Any]) -> Values:
        return [
            value
            if value is None
            else bool(value)
            if place in self.truths
            else float(value)
            if place in self.floats
            else mended(value)
            if isinstance(value, str)
            else value
            for place, value in enumerate(row)
        ]

    def from_postgres(self, row: Sequence[Any]) -> Values:
        return [to_micros(value) if isinstance(value, datetime) else value for value in row]

    def to_postgres(self, row: Values) -> dict[str, Any]:
        """As an object for `json_populate_recordset`."""
        return {
            column: _written(value) if place in self.instants and value is not None else value
            for place, (column, value) in enumerate(zip(self.columns, row, strict=True))
        }

    def key_to_postgres(self, row: Values) -> dict[str, Any]:
        """The same with the columns of the key alone, which is all that a look needs."""
        places = [self.columns.index(column) for column in self.key]
        return {self.columns[place]: _written(row[place]) if place in self.instants else row[place] for place in places}

    def key_of(self, row: Values) -> tuple[Any, ...]:
        return tuple(row[self.columns.index(column)] for column in self.key)


@lru_cache(maxsize=10_000)
def _written(micros: int) -> str:
    """Most instants of a row, and of its neighbours, are the same."""
    return from_micros(micros).isoformat()


@cache
def layouts() -> dict[str, Layout]:
    """Of every table that both databases have, in the order of the schema."""
    found: dict[str, Layout] = {}
    for table in build("postgresql").tables.values():
        if table.name in POSTGRES_ONLY:
            continue
        columns = list(table.columns)
        found[str(table.name)] = Layout(
            table=str(table.name),
            columns=tuple(str(column.name) for column in columns),
            key=tuple(str(column.name) for column in table.primary_key.columns),
            instants=frozenset(place for place, column in enumerate(columns) if isinstance(column.type, Instant)),
            truths=frozenset(place for place, column in enumerate(columns) if isinstance(column.type, Boolean)),
            floats=frozenset(place for place, column in enumerate(columns) if isinstance(column.type, Float)),
        )
    return found


def alone() -> list[Layout]:
    """Tables whose rows go by themselves."""
    others = {*OF_TASK, *OF_JOB, *STAYING, *_UNITS}
    return [layout for layout in layouts().values() if layout.table not in others]
