"""Successes are written by statements of their own; the ledger must not tell them from those written one by one."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.core.clock import FakeClock
from headrace.core.limits import Gate
from headrace.core.outcome import Completed
from headrace.core.settlement import Execution, Settlement
from headrace.core.task import ClaimedTask, Key, NewJob
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, ref, settled, task

TABLES = ("tasks", "history", "attempts", "keys", "slots", "jobs", "job_counts", "workers")
GATE = Gate(kind="limit", key="g", n=1)


def outcomes(claims: list[ClaimedTask]) -> list[Settlement]:
    """Different in everything that a success may differ in, and one that is none."""
    first, second, third, *rest, last = claims
    ran = Execution(ran_for=0.25, executor="coroutine", result_ttl=60.0)
    return [
        settled(first, Completed(result='"text"'), execution=ran),
        settled(second, Completed(result=None), execution=replace(ran, ran_for=None)),
        settled(third, Completed(result_ref="results/1/1"), execution=replace(ran, ran_for=1e6, recorded_by="rescuer")),
        *map(completed, rest),
        failed(last, delay=30.0),
    ]


async def written(path: Path) -> dict[str, list[tuple[object, ...]]]:
    clock = FakeClock()
    ledger = Ledger(lambda: SQLiteStore(str(path), StoreOptions(extra={"clock": clock})), clock)
    await ledger.open()
    try:
        await ledger.register("a")
        keys = (Key(scope="unique", key="u", ttl=60.0), Key(scope="idem", key="i", ttl=60.0))
        await ledger.enqueue(task(), task(max_age=600.0), task(priority=3), task(keys=keys), task(gates=(GATE,)))
        await ledger.store.create_job(NewJob(name="j", tasks=(task(), task()), on_success=task("hook")))
        await ledger.enqueue(task(gates=(GATE,), queue="parked"), task(dead_letter=True), task())
        clock.advance(5)
        claims = await ledger.claim()
        await ledger.store.admit("a", [claim for claim in claims if claim.gated])
        await ledger.store.admit("b", await ledger.claim("b", queue="parked"))
        clock.advance(1)
        await ledger.store.start("a", [ref(claim) for claim in claims[4:6]])
        clock.advance(1)
        await ledger.store.cancel([claims[5].id])
        report = await ledger.store.finish("a", outcomes(sorted(claims)))
        assert report.accepted == set(map(ref, claims))
        assert await ledger.store.check() == []
    finally:
        await ledger.close()
    connection = sqlite3.connect(path)
    try:
        return {name: connection.execute(f"SELECT * FROM headrace_{name} ORDER BY 1, 2").fetchall() for name in TABLES}
    finally:
        connection.close()


async def test_both_ways_write_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Job with its hook, keys, a gate that frees a waiter, results and their time, a start, a cancellation."""
    together = await written(tmp_path / "together.db")
    assert len(together["history"]) == 8
    # The recorded one, the two that were started, the failure: the attempts of the others are their history rows.
    assert len(together["attempts"]) == 4

    def none_is(_: Settlement) -> bool:
        return False

    monkeypatch.setattr("headrace.store.sqlite.finishing.succeeded", none_is)
    assert await written(tmp_path / "one by one.db") == together
