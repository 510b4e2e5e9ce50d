"""A batch of failures that come back costs as many steps as one of them, and every text arrives as it was.

Python gives up its lock at each step of a statement, and the thread that runs tasks keeps it for a while then: a step
for each task would hold the lock of the file for as long.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.core.clock import FakeClock
from headrace.core.lanes import Lane
from headrace.core.task import ErrorInfo, Want
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.store.sqlite.connection import Transaction
from headrace.testing.store_conformance.ledger import Ledger, failed, ref, released, snoozed, task

AWKWARD = ("", 'a "quote" and a \\', "new\nline \x01", "wide \N{SNOWMAN}\N{GRINNING FACE}", "long " * 20_000, "[1]")


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[Ledger]:
    clock = FakeClock()
    ledger = Ledger(lambda: SQLiteStore(str(path), StoreOptions(extra={"clock": clock})), clock)
    await ledger.open()
    try:
        await ledger.register("a")
        yield ledger
    finally:
        await ledger.close()


class Steps:
    """Statements, and rows that were fetched, of every transaction from here on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        rows, run, run_many = Transaction.rows, Transaction.run, Transaction.run_many

        def counted_rows(transaction: Transaction, *arguments: Any) -> Any:
            found = rows(transaction, *arguments)
            self.count += 1 + len(found)
            return found

        def counted_run(transaction: Transaction, *arguments: Any) -> Any:
            self.count += 1
            return run(transaction, *arguments)

        def counted_many(transaction: Transaction, query: str, parameters: Any) -> None:
            self.count += len(parameters)
            run_many(transaction, query, parameters)

        monkeypatch.setattr(Transaction, "rows", counted_rows)
        monkeypatch.setattr(Transaction, "run", counted_run)
        monkeypatch.setattr(Transaction, "run_many", counted_many)


async def steps_of_a_round(path: Path, steps: Steps, n: int) -> int:
    """As many fail together; when they are due the next finish carries their claim."""
    async with opened(path) as ledger:
        await ledger.enqueue(*[task() for _ in range(n + 1)])
        first, *others = await ledger.claim(n=n + 1)
        retries = Want(queue="default", pool="coroutine", lane=Lane.RETRY, n=n)
        steps.count = 0
        await ledger.finish("a", *[failed(claim, delay=0.2) for claim in others])
        await ledger.let_pass(0.3)
        report = await ledger.store.finish("a", [failed(first, delay=0.2)], wants=[retries])
        assert {claim.id for claim in report.claimed} == {claim.id for claim in others}
        counted = steps.count
        assert await ledger.store.check() == []
    return counted


async def test_many_failures_take_as_many_steps_as_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    few, many = [await steps_of_a_round(tmp_path / f"{n}.db", steps, n) for n in (2, 80)]
    assert many == few


async def test_every_text_of_a_failure_arrives_as_it_was(tmp_path: Path) -> None:
    async with opened(tmp_path / "texts.db") as ledger:
        await ledger.enqueue(*[task() for _ in AWKWARD])
        claims = await ledger.claim()
        errors = [ErrorInfo(error_class="E", message=text, traceback=text, exit_code=-9) for text in AWKWARD]
        pairs = zip(claims, errors, strict=True)
        await ledger.finish("a", *[failed(claim, error, delay=5.0) for claim, error in pairs])
        for claim, error in zip(claims, errors, strict=True):
            (attempt,) = await ledger.store.attempts(claim.id)
            assert (attempt.error_message, attempt.traceback) == (error.message, error.traceback)
            assert (attempt.exit_code, attempt.charged, attempt.attempt) == (-9, True, 1)


async def test_what_goes_back_in_one_batch_goes_back_each_in_its_way(tmp_path: Path) -> None:
    """A failure, one that sleeps, one that is given back, one that was started: lane, time and count are their own."""
    async with opened(tmp_path / "ways.db") as ledger:
        await ledger.enqueue(*[task(max_age=600.0) for _ in range(4)])
        failing, sleeping, returned, started = await ledger.claim()
        await ledger.store.start("a", [ref(started)])
        before = await ledger.store.now()
        await ledger.finish(
            "a", failed(failing, delay=7.0), snoozed(sleeping, 9.0), released(returned), failed(started)
        )
        found = await ledger.store.get([failing.id, sleeping.id, returned.id, started.id])
        waits = {id: (each.eligible_at - before).total_seconds() for id, each in found.items()}
        assert (waits[failing.id], waits[sleeping.id], waits[started.id]) == (7.0, 9.0, 0.0)
        assert [found[claim.id].attempt for claim in (failing, sleeping, returned, started)] == [1, 0, 0, 1]
        assert [found[claim.id].lane for claim in (failing, returned, started)] == [
            Lane.RETRY,
            Lane.PRIMARY,
            Lane.RETRY,
        ]
        assert {claim.id for claim in await ledger.claim()} == {returned.id, started.id}
        await ledger.let_pass(10)
        assert {claim.id for claim in await ledger.claim()} == {failing.id, sleeping.id}
        assert await ledger.store.check() == []
