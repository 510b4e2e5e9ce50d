"""psycopg 3, sync and async."""

import contextlib
from collections.abc import Callable
from typing import Any

from headrace.client.transactions.base import Rows
from headrace.client.transactions.placeholders import converted
from headrace.store.base import Statement


class _Psycopg:
    dialect = "postgresql"

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.database = connection

    def _cursor(self) -> Any:
        import psycopg.rows

        # The user's row factory and cursor class are theirs; ours gives plain tuples.
        return self._connection.cursor(row_factory=psycopg.rows.tuple_row)

    def _each_commits(self) -> bool:
        return bool(self._connection.autocommit) and self._connection.info.transaction_status == 0

    def after_commit(self, act: Callable[[], None]) -> None:
        """psycopg cannot tell; the notification is part of the transaction."""


class PsycopgAdapter(_Psycopg):
    awaits = False

    async def execute(self, statement: Statement) -> Rows:
        with self._cursor() as cursor:
            cursor.execute(*converted(statement, "pyformat"))
            return cursor.fetchall() if cursor.description is not None else []

    async def begin(self) -> bool:
        if not self._each_commits():
            return False
        self._connection.execute("BEGIN")
        return True

    async def end(self, *, commit: bool) -> None:
        if commit:
            self._connection.execute("COMMIT")
            return
        with contextlib.suppress(Exception):
            self._connection.execute("ROLLBACK")


class AsyncPsycopgAdapter(_Psycopg):
    awaits = True

    async def execute(self, statement: Statement) -> Rows:
        async with self._cursor() as cursor:
            await cursor.execute(*converted(statement, "pyformat"))
            return await cursor.fetchall() if cursor.description is not None else []

    async def begin(self) -> bool:
        if not self._each_commits():
            return False
        await self._connection.execute("BEGIN")
        return True

    async def end(self, *, commit: bool) -> None:
        if commit:
            await self._connection.execute("COMMIT")
            return
        with contextlib.suppress(Exception):
            await self._connection.execute("ROLLBACK")
