"""asyncpg: a connection, or one that was acquired from a pool. The module itself is not needed."""

from collections.abc import Callable
from typing import Any

from headrace.client.transactions.base import Rows
from headrace.store.base import Statement


class AsyncpgAdapter:
    dialect = "postgresql"
    awaits = True

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.database = connection
        self._transaction: Any = None

    async def execute(self, statement: Statement) -> Rows:
        return await self._connection.fetch(statement.sql, *statement.parameters)

    async def begin(self) -> bool:
        if self._connection.is_in_transaction():
            return False
        self._transaction = self._connection.transaction()
        await self._transaction.start()
        return True

    async def end(self, *, commit: bool) -> None:
        await (self._transaction.commit() if commit else self._transaction.rollback())

    def after_commit(self, act: Callable[[], None]) -> None:
        """asyncpg cannot tell; the notification is part of the transaction."""
