"""What a verb sees of its transaction."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.store.base import JobEnd

type Row = tuple[Any, ...]
type Parameters = Sequence[Any] | Mapping[str, Any]


_ROWS_AT_ONCE = (250, 50, 10, 1)  # few texts: SQLite compiles each once


class Transaction:
    """What a verb sees of its transaction: named queries, one instant, and whom to wake after the commit."""

    __slots__ = ("cancels", "changed_jobs", "connection", "grown", "job_ends", "now", "queries", "releasing", "wakes")

    def __init__(self, connection: sqlite3.Connection, queries: Mapping[str, str], now: int) -> None:
        self.connection = connection
        self.queries = queries
        self.now = now
        self.wakes: set[str] = set()
        self.cancels = False
        self.changed_jobs: set[int] = set()  # in their state or counts: before the commit they are written down
        self.grown: set[str] = set()  # topics for whoever watches
        self.releasing = False  # dependents are left to `release`
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

    def insert_all(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Many rows by few statements; the query has the values of one, at the end of a line.

        Python gives up its lock around each step of a statement, and whoever runs beside it takes it then, for 5 ms:
        a statement for each row would stand still as often while this process runs tasks.
        """
        insert, _, rest = self.queries[query].partition("VALUES ")
        values, _, conflict = rest.partition("\n")
        done = 0
        for size in _ROWS_AT_ONCE:
            while len(rows) - done >= size:
                text = f"{insert}VALUES {', '.join([values] * size)} {conflict}"
                self.connection.execute(text, [value for row in rows[done : done + size] for value in row])
                done += size


type Work[T] = Callable[[Transaction], T]
