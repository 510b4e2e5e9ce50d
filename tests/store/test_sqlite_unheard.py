"""Callers that are cancelled while their transaction runs: what it claimed for them does not stay with nobody."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from headrace.core.lanes import Lane
from headrace.core.task import Want
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.store.sqlite.connection import Transaction
from headrace.testing.store_conformance.ledger import Ledger, completed

WANTS = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=10)]


@asynccontextmanager
async def opened(path: str) -> AsyncGenerator[tuple[Ledger, SQLiteStore]]:
    store = SQLiteStore(path, StoreOptions())
    ledger = Ledger(lambda: store, None)
    await ledger.open()
    try:
        yield ledger, store
    finally:
        await ledger.close()


async def cancelled_before_the_commit(store: SQLiteStore, call: Callable[[], Awaitable[object]]) -> None:
    commits, goes_on = threading.Event(), threading.Event()

    def trace(statement: str) -> None:
        if statement == "COMMIT" and not commits.is_set():
            commits.set()
            assert goes_on.wait(20)

    def watch(transaction: Transaction) -> None:
        transaction.connection.set_trace_callback(trace)

    await store.database.alone(watch)
    calling = asyncio.ensure_future(call())
    try:
        assert await asyncio.to_thread(commits.wait, 20)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    finally:
        goes_on.set()


async def test_what_a_cancelled_claim_took_is_given_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with opened(str(tmp_path_factory.mktemp("unheard") / "x.db")) as (ledger, store):
        task = await ledger.enqueue_one()
        await cancelled_before_the_commit(store, lambda: store.claim("a", WANTS))
        claim = await ledger.claim_due("b")
        assert (claim.id, claim.claim_no, claim.attempt, claim.losses) == (task, 2, 0, 0)
        await ledger.finish("b", completed(claim))


async def test_a_cancelled_finish_stands_and_its_claims_are_given_back(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with opened(str(tmp_path_factory.mktemp("unheard") / "x.db")) as (ledger, store):
        first, second = await ledger.enqueue_one(), await ledger.enqueue_one()
        held = await ledger.claim_one("a")
        assert held.id == first
        await cancelled_before_the_commit(store, lambda: store.finish("a", [completed(held, "1")], wants=WANTS))
        claim = await ledger.claim_due("b")
        assert (claim.id, claim.claim_no) == (second, 2)
        assert (await ledger.get(first)).result == "1"
        await ledger.finish("b", completed(claim))
        assert await store.check() == []


async def test_a_claim_that_is_cancelled_in_the_line_takes_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with opened(str(tmp_path_factory.mktemp("unheard") / "x.db")) as (ledger, store):
        await ledger.enqueue_one()
        busy, goes_on = threading.Event(), threading.Event()

        def block(_: Transaction) -> None:
            busy.set()
            assert goes_on.wait(20)

        blocking = asyncio.create_task(store.database.write(block))
        assert await asyncio.to_thread(busy.wait, 20)
        calling = asyncio.create_task(store.claim("a", WANTS))
        await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await asyncio.sleep(0)  # the cancellation reaches the line
        goes_on.set()
        await blocking
        assert (await ledger.claim_due("b")).claim_no == 1
