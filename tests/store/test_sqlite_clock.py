"""The host's clock is set back while a ledger is in use."""

from datetime import timedelta

from headrace.core.clock import FakeClock
from headrace.core.limits import Gate
from headrace.store.base import StoreOptions
from headrace.store.connect import connect
from headrace.testing.store_conformance.ledger import Ledger, task


async def test_a_rate_goes_on_at_its_pace_when_the_clock_was_set_back(sqlite_url: str) -> None:
    """The bucket was last written at an instant that now lies an hour ahead; that hour is not waited for."""
    clock, gates = FakeClock(), (Gate(kind="rate", key="r", n=1, per=1.0),)
    ledger = Ledger(lambda: connect(sqlite_url, StoreOptions(extra={"clock": clock})), clock)
    await ledger.open()
    try:
        await ledger.enqueue(task(gates=gates))
        assert len((await ledger.store.admit("a", await ledger.claim())).admitted) == 1
        clock.step_wall_clock(timedelta(hours=-1))
        await ledger.enqueue(*[task(gates=gates) for _ in range(100)])
        started = 0
        for _ in range(100):  # ten seconds
            started += len((await ledger.store.admit("a", await ledger.claim(n=2))).admitted)
            clock.advance(0.1)
        assert 9 <= started <= 10
    finally:
        await ledger.close()
