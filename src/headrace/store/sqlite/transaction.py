"""What a verb sees of its transaction."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.store.base import JobEnd

type Row = tuple[Any, ...]
type Parameters = Sequence[Any] | Mapping[str, Any]


class Transaction:
    """What a verb sees of its transaction: named queries, one instant, and whom to wake after the commit."""

    __slots__ = ("cancels", "connection", "job_ends", "now", "queries", "wakes")

    def __init__(self, connection: sqlite3.Connection, queries: Mapping[str, str], now: int) -> None:
        self.connection = connection
        self.queries = queries
        self.now = now
        self.wakes: set[str] = set()
        self.cancels = False
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


type Work[T] = Callable[[Transaction], T]
