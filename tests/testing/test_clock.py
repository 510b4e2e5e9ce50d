"""A clock that a test moves is the only clock of a store, on both databases."""

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headrace.core.clock import Clock, MovableClock
from headrace.core.limits import Gate
from headrace.core.task import Key
from headrace.store.base import Store, StoreOptions
from headrace.store.connect import connect
from headrace.testing.clock import FakeClock, SharedClock, SkippingClock
from headrace.testing.store_conformance import Case, Ledger, exercise, upkeep
from headrace.testing.store_conformance.ledger import failed, task

START = datetime(2031, 5, 1, 12, tzinfo=UTC)


def stores(url: str, clock: Clock) -> Ledger:
    def make() -> Store:
        return connect(url, StoreOptions(extra={"clock": clock}))

    return Ledger(make, None)


async def test_what_a_store_writes_and_compares_goes_by_the_clock_it_is_given(store_url: str) -> None:
    clock = FakeClock(instant=START)
    ledger = stores(store_url, clock)
    await ledger.open()
    try:
        store = ledger.store
        assert await store.now() == START
        later = await ledger.enqueue_one(delay=3600)
        at = await ledger.enqueue_one(run_at=START + timedelta(days=2))
        assert [(await ledger.get(id)).eligible_at for id in (later, at)] == [
            START + timedelta(hours=1),
            START + timedelta(days=2),
        ]
        assert await ledger.claim() == []
        clock.advance(timedelta(minutes=59))
        assert await ledger.claim() == []
        clock.advance(timedelta(minutes=1))
        claim = await ledger.claim_one()
        assert claim.id == later

        # A retry waits by the same clock.
        await ledger.finish("a", failed(claim, delay=600))
        clock.advance(599)
        assert await ledger.claim() == []
        clock.advance(1)
        assert (await ledger.claim_one()).id == later

        clock.move_to(START + timedelta(days=2))
        assert (await ledger.claim_one()).id == at

        # So does a leadership.
        assert await store.lead("schedules", "a", lease=30)
        assert not await store.lead("schedules", "b", lease=30)
        clock.advance(31)
        assert await store.lead("schedules", "b", lease=30)
    finally:
        await ledger.close()


async def test_ages_rates_keys_and_results_go_by_it(store_url: str) -> None:
    clock = FakeClock(instant=START)
    ledger = stores(store_url, clock)
    await ledger.open()
    try:
        old = await ledger.enqueue_one(max_age=60)
        clock.advance(61)
        assert await ledger.store.expire() == 1
        assert ((record := await ledger.get(old)).state, record.reason) == ("failed", "expired")
        assert record.finished_at == START + timedelta(seconds=61)

        key = Key(scope="idem", key="k", ttl=100)
        first = await ledger.enqueue_one(keys=(key,))
        assert [answer.id for answer in await ledger.store.enqueue([task(keys=(key,))])] == [first]
        await ledger.store.cancel([first])
        clock.advance(101)
        assert (await ledger.store.enqueue([task(keys=(key,))]))[0].created

        gates = (Gate(kind="rate", key="r", n=1, per=3600.0),)
        await ledger.enqueue(
            task("limited", queue="limited", gates=gates), task("limited", queue="limited", gates=gates)
        )
        claims = await ledger.claim(queue="limited")
        assert len((await ledger.store.admit("a", claims)).admitted) == 1
        clock.advance(1800)
        assert await ledger.claim(queue="limited") == []
        clock.advance(1801)
        again = await ledger.claim(queue="limited")
        assert len((await ledger.store.admit("a", again)).admitted) == 1
    finally:
        await ledger.close()


@pytest.mark.parametrize("case", list(upkeep.cases), ids=str)
def test_the_cases_about_time_pass_on_postgres_without_waiting(case: Case, postgres_url: str) -> None:
    clock = FakeClock()

    def make() -> Store:
        return connect(postgres_url, StoreOptions(extra={"clock": clock}))

    asyncio.run(asyncio.wait_for(exercise(case, make, clock=clock), timeout=90))


async def test_other_sessions_keep_the_servers_clock(postgres_url: str) -> None:
    """The clock of a test is found by the sessions of its own store alone."""
    clock = FakeClock(instant=START)
    ledger, plain = stores(postgres_url, clock), connect(postgres_url)
    await ledger.open()
    await plain.open()
    try:
        assert await ledger.store.now() == START
        assert abs(await plain.now() - datetime.now(UTC)) < timedelta(hours=1)
        clock.advance(1)
        assert await ledger.store.now() == START + timedelta(seconds=1)
    finally:
        await plain.close()
        await ledger.close()


@pytest.mark.parametrize("moving", [FakeClock(instant=START), SkippingClock()], ids=["fake", "skipping"])
def test_time_moves_forward_and_both_faces_move_together(moving: MovableClock) -> None:
    instant, elapsed = moving.now(), moving.monotonic()
    moving.advance(timedelta(hours=1))
    assert moving.now() - instant >= timedelta(hours=1)
    assert moving.monotonic() - elapsed >= 3600
    target = moving.now() + timedelta(days=1)
    moving.move_to(target)
    assert target <= moving.now() <= target + timedelta(minutes=1)


def test_a_fake_clock_is_not_turned_back_and_wants_a_zone() -> None:
    clock = FakeClock(instant=START)
    with pytest.raises(ValueError, match="has passed: it is 2031-05-01T12:00:00"):
        clock.move_to(START - timedelta(seconds=1))
    with pytest.raises(ValueError, match="is naive"):
        clock.move_to(datetime(2040, 1, 1))  # noqa: DTZ001
    assert clock.now() == START


def test_a_skipping_clock_goes_on_by_itself_and_is_not_turned_back() -> None:
    clock = SkippingClock()
    clock.move_to(datetime(2000, 1, 1, tzinfo=UTC))
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(minutes=1)
    first = clock.now()
    while clock.now() == first:
        pass
    assert clock.now() > first


_LOOK = """
import sys
from headrace.testing.clock import SharedClock

clock = SharedClock(sys.argv[1])
for line in sys.stdin:
    print(clock.now().isoformat(), flush=True)
"""


def test_processes_share_a_clock(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    clock = SharedClock(path, instant=START)
    with subprocess.Popen(
        [sys.executable, "-c", _LOOK, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None

        def seen() -> datetime:
            other.stdin.write("\n")  # pyright: ignore[reportOptionalMemberAccess]
            other.stdin.flush()  # pyright: ignore[reportOptionalMemberAccess]
            return datetime.fromisoformat(other.stdout.readline().strip())  # pyright: ignore[reportOptionalMemberAccess]

        assert seen() == START
        clock.advance(timedelta(minutes=5))
        assert seen() == START + timedelta(minutes=5)
        clock.move_to(START + timedelta(days=400))
        assert seen() == START + timedelta(days=400)
        assert clock.monotonic() == 400 * 86_400
        other.stdin.close()
    assert SharedClock(path).now() == clock.now()
    with pytest.raises(ValueError, match="is a clock already"):
        SharedClock(path, instant=START)
