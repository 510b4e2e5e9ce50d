"""An event sent in a user's own transaction: nothing before its commit, and whoever waits goes on soon after it."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from headrace.core.task import Received
from headrace.store import migrations
from headrace.store.connect import sqlite_path
from headrace.testing.store_conformance.ledger import completed, ref, suspended
from tests.support.moving import ledger_of


@asynccontextmanager
async def _sent(url: str, program: Any) -> AsyncIterator[None]:
    """Inside: the event is sent, and the transaction open."""
    if url.startswith("sqlite:"):
        with contextlib.closing(sqlite3.connect(sqlite_path(url), timeout=30)) as connection:
            _run(program, lambda statement: connection.execute(statement.sql, statement.parameters).fetchall())
            yield
            connection.commit()
        return
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            statement = next(program)
            with contextlib.suppress(StopIteration):
                while True:
                    rows = await connection.fetch(statement.sql, *statement.parameters)
                    statement = program.send([tuple(row) for row in rows])
            yield
    finally:
        await connection.close()


def _run(program: Any, execute: Any) -> None:
    statement = next(program)
    with contextlib.suppress(StopIteration):
        while True:
            statement = program.send(execute(statement))


async def test_an_event_of_a_users_transaction_resumes_who_waits_after_its_commit(store_url: str) -> None:
    migrations.upgrade(store_url, name="headrace")
    async with ledger_of(store_url) as ledger:
        store, waiting = ledger.store, await ledger.enqueue_one()
        claim = await ledger.claim_one()
        assert await store.receive("a", ref(claim), "paid", event="payment", key="7", timeout=None) is None
        await ledger.finish("a", suspended(claim, step="paid"))
        async with _sent(store_url, store.send_program("payment", "7", '{"euros":3}')):
            assert await ledger.state(waiting) == "blocked"
        assert await ledger.state(waiting) == "blocked", "the user's transaction touches no task"
        assert await store.deliver() == 1
        again = await ledger.claim_due()
        asked = store.receive("a", ref(again), "paid", event="payment", key="7", timeout=None)
        assert await asked == Received(payload='{"euros":3}')
        await ledger.finish("a", completed(again))
        assert await store.check() == []
