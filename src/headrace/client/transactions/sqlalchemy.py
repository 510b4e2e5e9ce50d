"""SQLAlchemy: Session, AsyncSession, Connection, AsyncConnection, on whatever driver they use."""

from collections.abc import Callable
from typing import Any

from headrace.client.transactions.base import Rows
from headrace.client.transactions.placeholders import converted
from headrace.core.errors import OptionError
from headrace.store.base import Statement

_DIALECTS = ("sqlite", "postgresql")


def adapt_sqlalchemy(connection: Any, kind: str) -> "_SQLAlchemy":
    return (AsyncAdapter if kind.startswith("Async") else SyncAdapter)(connection, is_session=kind.endswith("Session"))


class _SQLAlchemy:
    awaits = False

    def __init__(self, connection: Any, *, is_session: bool) -> None:
        self._given = connection
        self._is_session = is_session
        bind = connection.get_bind() if is_session else connection
        self._engine: Any = bind.engine
        self.database: object = self._engine
        self.dialect: str = self._engine.dialect.name
        self._style: str = self._engine.dialect.paramstyle
        if self.dialect not in _DIALECTS:
            raise OptionError(f"the session is on {self.dialect}; headrace enqueues on {' and '.join(_DIALECTS)}")

    def _prepared(self, statement: Statement) -> tuple[str, Any]:
        # SQLite's statements are written with `?`, which both of its drivers take as they are.
        return (statement.sql, statement.parameters) if self.dialect == "sqlite" else converted(statement, self._style)

    async def execute(self, statement: Statement) -> Rows:
        raise NotImplementedError

    async def begin(self) -> bool:
        return False  # SQLAlchemy opens its transaction with the first statement

    async def end(self, *, commit: bool) -> None:
        pass

    def after_commit(self, act: Callable[[], None]) -> None:
        if not self._is_session:
            return  # a Connection has only an event before the commit
        from sqlalchemy import event

        session = getattr(self._given, "sync_session", self._given)

        def committed(_: Any) -> None:
            act()

        event.listen(session, "after_commit", committed, once=True)


class SyncAdapter(_SQLAlchemy):
    async def execute(self, statement: Statement) -> Rows:
        connection = self._given.connection() if self._is_session else self._given
        result = connection.exec_driver_sql(*self._prepared(statement))
        return result.fetchall() if result.returns_rows else []


class AsyncAdapter(_SQLAlchemy):
    awaits = True

    async def execute(self, statement: Statement) -> Rows:
        connection = await self._given.connection() if self._is_session else self._given
        result = await connection.exec_driver_sql(*self._prepared(statement))
        return result.fetchall() if result.returns_rows else []
