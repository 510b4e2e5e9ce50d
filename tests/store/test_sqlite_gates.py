"""Rows of gates do not pile up, however many keys there were."""

import sqlite3

from headrace.core.clock import FakeClock
from headrace.core.limits import Gate
from headrace.store.base import StoreOptions
from headrace.store.connect import connect, sqlite_path
from headrace.testing.store_conformance.ledger import Ledger, completed, task

DAY, WEEK = 86_400.0, 604_800.0


def gate_rows(url: str) -> set[str]:
    connection = sqlite3.connect(sqlite_path(url))
    try:
        return {key for (key,) in connection.execute("SELECT key FROM headrace_gates")}
    finally:
        connection.close()


async def test_a_bucket_that_has_been_full_for_a_day_is_pruned(sqlite_url: str) -> None:
    """A slow rate is not forgotten while it still holds somebody back."""
    clock = FakeClock()
    quick, slow = Gate(kind="rate", key="quick", n=5, per=1.0), Gate(kind="rate", key="slow", n=1, per=WEEK)
    ledger = Ledger(lambda: connect(sqlite_url, StoreOptions(extra={"clock": clock})), clock)
    await ledger.open()
    try:
        await ledger.enqueue(task(gates=(quick,)), task(gates=(slow,)))
        claims = await ledger.claim()
        assert len((await ledger.store.admit("a", claims)).admitted) == 2
        await ledger.finish("a", *map(completed, claims))
        clock.advance(DAY - 10)
        await ledger.store.prune(keep=WEEK)
        assert gate_rows(sqlite_url) == {"rate:quick", "rate:slow"}
        clock.advance(20)
        await ledger.store.prune(keep=WEEK)
        assert gate_rows(sqlite_url) == {"rate:slow"}
        await ledger.enqueue(task(gates=(slow,)))
        assert len((await ledger.store.admit("a", await ledger.claim())).parked) == 1
        clock.advance(WEEK + DAY)
        await ledger.store.prune(keep=2 * WEEK)
        assert gate_rows(sqlite_url) == set()
    finally:
        await ledger.close()
