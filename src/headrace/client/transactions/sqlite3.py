"""The standard library's sqlite3."""

import contextlib
from collections.abc import Callable
from typing import Any

from headrace.client.transactions.base import Rows
from headrace.store.base import Statement


class SQLite3Adapter:
    dialect = "sqlite"
    awaits = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.database = connection

    async def execute(self, statement: Statement) -> Rows:
        cursor = self._connection.cursor()
        cursor.row_factory = None  # the user's may give dictionaries
        try:
            return cursor.execute(statement.sql, statement.parameters).fetchall()
        finally:
            cursor.close()

    async def begin(self) -> bool:
        # With isolation_level None (or autocommit=True) nothing opens a transaction: our statements would part.
        each_commits = self._connection.isolation_level is None or getattr(self._connection, "autocommit", -1) is True
        if not each_commits or self._connection.in_transaction:
            return False
        self._connection.execute("BEGIN IMMEDIATE")
        return True

    async def end(self, *, commit: bool) -> None:
        if commit:
            self._connection.execute("COMMIT")
            return
        with contextlib.suppress(Exception):  # the error that led here is the one to tell
            self._connection.execute("ROLLBACK")

    def after_commit(self, act: Callable[[], None]) -> None:
        """sqlite3 cannot tell; workers notice a changed file by themselves."""
