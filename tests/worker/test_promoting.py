"""Due tasks become ready by themselves; while claims do that anyway, nobody else asks the ledger as often."""

from headrace.core.clock import FakeClock
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.testing.store_conformance.ledger import Ledger, task
from headrace.worker.services.upkeep import Promoter


async def opened(url: str, clock: FakeClock) -> Ledger:
    path = url.removeprefix("sqlite:///")
    ledger = Ledger(lambda: SQLiteStore(path, StoreOptions(extra={"clock": clock})), clock)
    await ledger.open()
    return ledger


async def test_it_leaves_what_is_due_to_the_claims_that_go_on(sqlite_url: str) -> None:
    """Every claim readies what is due. Between two looks of its own it asks nothing, and once no claim goes on it looks
    at the moment that something is due.
    """
    clock, claims = FakeClock(), True
    ledger = await opened(sqlite_url, clock)
    try:
        promoter = Promoter(store=ledger.store, poke=lambda: None, claims=lambda: claims, beside=3600.0)
        await ledger.enqueue(task(delay=0.5))
        assert await promoter.run_once() <= 0.501, "its first look"
        await ledger.let_pass(1.0)
        assert 0 < await promoter.run_once() < 0.1
        assert await ready(ledger) == 0
        claims = False
        await promoter.run_once()
        assert await ready(ledger) == 1
    finally:
        await ledger.close()


async def test_it_looks_now_and_then_beside_claims_that_have_no_room(sqlite_url: str) -> None:
    clock = FakeClock()
    ledger = await opened(sqlite_url, clock)
    try:
        promoter = Promoter(store=ledger.store, poke=lambda: None, claims=lambda: True, beside=0.0)
        await ledger.enqueue(task(delay=0.5))
        await ledger.let_pass(1.0)
        await promoter.run_once()
        assert await ready(ledger) == 1
    finally:
        await ledger.close()


async def ready(ledger: Ledger) -> int:
    return sum(queue.depths["primary"] for queue in await ledger.store.queues())
