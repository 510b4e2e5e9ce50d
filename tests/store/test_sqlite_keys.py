"""Keys that change hands."""

from headrace.core.clock import FakeClock
from headrace.store.base import StoreOptions
from headrace.store.connect import connect
from headrace.testing.store_conformance.keys import idempotent, unique
from headrace.testing.store_conformance.ledger import Ledger, completed


async def test_a_key_that_was_taken_over_has_its_window_again(sqlite_url: str) -> None:
    """An idempotency key counts from the enqueue that took it, a unique one from the end of its new holder."""
    clock = FakeClock()
    ledger = Ledger(lambda: connect(sqlite_url, StoreOptions(extra={"clock": clock})), clock)
    await ledger.open()
    try:
        for new in (unique, idempotent):
            await ledger.store.enqueue([new(ttl=60.0)])
            await ledger.finish("a", completed(await ledger.claim_one()))
            clock.advance(50)
            (second,) = await ledger.store.enqueue([new(ttl=60.0, on_conflict="replace")])
            assert second.created
            await ledger.finish("a", completed(await ledger.claim_one()))
            clock.advance(50)
            assert await ledger.store.enqueue([new(ttl=60.0)]) == [(second.id, False)]
            clock.advance(20)
            (third,) = await ledger.store.enqueue([new(ttl=60.0)])
            assert third.created
            await ledger.store.cancel([third.id])
        assert await ledger.store.check() == []
    finally:
        await ledger.close()
