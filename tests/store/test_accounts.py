"""What the conformance of accounts cannot ask of every store: instants of long ago, and a user's own transaction."""

import asyncio
import sqlite3
from datetime import timedelta
from typing import Any

import psycopg
from sqlalchemy import text

from headrace.core.accounts import NewAudit
from headrace.core.task import NewJob, NewTask
from headrace.store.base import AUDIT_KEPT
from headrace.store.connect import sqlite_path
from headrace.store.instants import to_micros
from tests.migrations.shape import engine_for
from tests.support.moving import ledger_of


async def test_the_audit_log_is_kept_for_a_year(store_url: str) -> None:
    async with ledger_of(store_url) as ledger:
        entry = NewAudit(actor="ada", act="tasks.retry", subject="task/1")
        ids = await ledger.store.write_audit([entry] * 5)
        old = await ledger.store.now() - timedelta(seconds=AUDIT_KEPT + 60)
        engine = engine_for(store_url)
        with engine.begin() as connection:
            sqlite = engine.dialect.name == "sqlite"
            table = "headrace_audit" if sqlite else "headrace.audit"
            connection.execute(
                text(f"UPDATE {table} SET at = :at WHERE id <= :last"),
                {"at": to_micros(old) if sqlite else old, "last": ids[2]},
            )
        engine.dispose()
        assert (await ledger.store.prunable(keep=10 * AUDIT_KEPT)).audit == 3
        assert (await ledger.store.prune(keep=10 * AUDIT_KEPT, limit=2)).audit == 2
        assert (await ledger.store.prune(keep=10 * AUDIT_KEPT)).audit == 1
        assert [entry.id for entry in await ledger.store.audit()] == [ids[4], ids[3]]


def _enqueued(url: str, program: Any) -> Any:
    """What `using(connection=…)` does."""
    if url.startswith("sqlite"):
        connection: Any = sqlite3.connect(sqlite_path(url), timeout=30)
        execute: Any = connection.execute
    else:
        connection = psycopg.connect(url)

        def execute(sql: str, parameters: tuple[Any, ...]) -> Any:
            return connection.execute(sql.replace("$1", "%s"), parameters)

    try:
        statement = next(program)
        while True:
            statement = program.send(execute(statement.sql, statement.parameters).fetchall())
    except StopIteration as end:
        connection.commit()
        return end.value
    finally:
        connection.close()


async def test_an_owner_is_written_in_a_users_own_transaction(store_url: str) -> None:
    async with ledger_of(store_url) as ledger:
        job, _ = await ledger.store.create_job(NewJob(name="j", owner="ada"))
        tasks = [NewTask(name="t", owner="bob"), NewTask(name="t"), NewTask(name="t", job=job)]
        answers = await asyncio.to_thread(_enqueued, store_url, ledger.store.enqueue_program(tasks))
        assert [(await ledger.get(answer.id)).owner for answer in answers] == ["bob", None, "ada"]
