"""Claims that go with the transaction that brings the work: one commit for both, or none for either."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headrace.core.errors import StoreError
from headrace.core.lanes import Lane
from headrace.core.task import NewTask, Want
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore, riding, thread
from headrace.store.sqlite.connection import Transaction
from headrace.testing.store_conformance.ledger import Ledger

CEILING = 20


@pytest.fixture(autouse=True)
def _no_offer_grows_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody renews them here, and the machine may be slow."""
    monkeypatch.setattr(riding, "STALE_AFTER", 60.0)


def wants(queue: str = "default", n: int = 10) -> list[Want]:
    return [Want(queue=queue, pool="coroutine", lane=Lane.PRIMARY, n=n)]


@asynccontextmanager
async def two_stores(tmp_path: Path, **options: str) -> AsyncGenerator[tuple[SQLiteStore, SQLiteStore]]:
    """Of one file, as a worker and a client in one process have them; the options are the second one's."""
    path = str(tmp_path / "ledger.db")
    ours, theirs = SQLiteStore(path, StoreOptions()), SQLiteStore(path, StoreOptions(**options))  # pyright: ignore[reportArgumentType]
    ledger = Ledger(lambda: ours, None)
    await ledger.open()
    await theirs.open()
    try:
        yield ours, theirs
    finally:
        await theirs.close()
        await ledger.close()


async def commits_of(store: SQLiteStore) -> list[str]:
    seen: list[str] = []

    def note(statement: str) -> None:
        if statement == "COMMIT":
            seen.append(statement)

    def watch(transaction: Transaction) -> None:
        transaction.connection.set_trace_callback(note)

    await store.database.alone(watch)
    return seen


async def test_a_claim_goes_with_the_enqueue_of_another_store(tmp_path: Path) -> None:
    async with two_stores(tmp_path) as (ours, theirs):
        our_commits, their_commits = await commits_of(ours), await commits_of(theirs)
        offer = ours.offer("w", wants())
        assert offer.taken_at is None
        [enqueued] = await theirs.enqueue([NewTask(name="t", arguments='{"n":1}')])
        [claim] = offer.answer.result(CEILING)
        assert (claim.id, claim.claim_no, claim.arguments) == (enqueued.id, 1, '{"n":1}')
        assert offer.taken_at is not None
        assert (len(our_commits), len(their_commits)) == (0, 1)
        record = (await ours.get([enqueued.id]))[enqueued.id]
        assert (record.state, record.worker) == ("claimed", "w")
        assert await ours.claim("other", wants()) == []


async def test_nobody_is_woken_for_what_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with two_stores(tmp_path) as (ours, theirs):
        woken: list[set[str]] = []
        monkeypatch.setattr(theirs.database, "committed", woken.append)
        offer = ours.offer("w", wants(n=2))
        await theirs.enqueue([NewTask(name="t")] * 2)
        assert len(offer.answer.result(CEILING)) == 2
        assert woken == []
        offer = ours.offer("w", wants(n=2))
        await theirs.enqueue([NewTask(name="t")] * 3)
        assert len(offer.answer.result(CEILING)) == 2
        assert woken == [{"default"}]


async def test_an_offer_goes_along_once_and_only_for_its_queues(tmp_path: Path) -> None:
    async with two_stores(tmp_path) as (ours, theirs):
        offer, withdrawn = ours.offer("w", wants("mail")), ours.offer("w", wants())
        assert withdrawn.withdraw()
        await theirs.enqueue([NewTask(name="t")])
        await theirs.enqueue([NewTask(name="t", queue="mail", delay=60)])
        assert not offer.answer.done()
        [first] = await theirs.enqueue([NewTask(name="t", queue="mail")])
        await theirs.enqueue([NewTask(name="t", queue="mail")])
        assert [claim.id for claim in offer.answer.result(CEILING)] == [first.id]
        assert not offer.withdraw()
        assert len(await ours.claim("w", wants("mail"))) == 1
        assert len(await ours.claim("w", wants())) == 1


async def test_a_store_that_syncs_less_takes_nothing_along(tmp_path: Path) -> None:
    """Else a claim would be run before it is durable as its worker wants it."""
    async with two_stores(tmp_path, synchronous="NORMAL") as (ours, theirs):
        offer = ours.offer("w", wants())
        await theirs.enqueue([NewTask(name="t")])
        assert offer.withdraw()
        assert len(await ours.claim("w", wants())) == 1


async def test_what_came_along_for_nobody_goes_back(tmp_path: Path) -> None:
    async with two_stores(tmp_path) as (ours, theirs):
        offer = ours.offer("w", wants())
        [enqueued] = await theirs.enqueue([NewTask(name="t")])
        offer.forget()
        [claim] = await ours.claim("other", wants())
        assert (claim.id, claim.claim_no, claim.attempt) == (enqueued.id, 2, 0)


async def test_a_commit_that_fails_fails_for_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with two_stores(tmp_path) as (ours, theirs):
        offer = ours.offer("w", wants())

        def reached(point: str) -> None:
            if point == "store.claim.before_commit":
                raise StoreError("the disk is gone")

        monkeypatch.setattr(thread, "reached", reached)
        with pytest.raises(StoreError, match="disk is gone"):
            await theirs.enqueue([NewTask(name="t")])
        assert isinstance(offer.answer.exception(CEILING), StoreError)
        monkeypatch.undo()
        assert await ours.claim("w", wants()) == []


async def test_a_claim_that_fails_leaves_the_enqueue_alone(tmp_path: Path) -> None:
    async with two_stores(tmp_path) as (ours, theirs):
        offer = ours.offer(object(), wants())  # pyright: ignore[reportArgumentType]
        [enqueued] = await theirs.enqueue([NewTask(name="t")])
        assert offer.answer.exception(CEILING) is not None
        assert [claim.id for claim in await ours.claim("w", wants())] == [enqueued.id]


async def test_a_forked_child_has_none_of_its_parents_offers(tmp_path: Path) -> None:
    """Their answers would reach no loop, and the parent still waits for them."""
    async with two_stores(tmp_path) as (ours, theirs):
        offer = ours.offer("w", wants())
        child = os.fork()
        if child == 0:
            os._exit(7 if riding.rider(theirs.database)([]) is None and not riding.is_any_offered() else 1)
        assert os.waitstatus_to_exitcode((await asyncio.to_thread(os.waitpid, child, 0))[1]) == 7
        assert riding.is_any_offered()
        await theirs.enqueue([NewTask(name="t")])
        assert len(offer.answer.result(CEILING)) == 1
        assert not riding.is_any_offered()


async def test_an_offer_that_nobody_renews_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker's loop is blocked: the tasks would wait behind that, while another worker is woken for them."""
    async with two_stores(tmp_path) as (ours, theirs):
        offer = ours.offer("w", wants())
        monkeypatch.setattr(riding, "STALE_AFTER", 0.0)
        [first] = await theirs.enqueue([NewTask(name="t")])
        assert offer.taken_at is None
        assert (await ours.get([first.id]))[first.id].state == "pending"
        monkeypatch.setattr(riding, "STALE_AFTER", 60.0)
        offer.renew()
        [second] = await theirs.enqueue([NewTask(name="t")])
        claims = await asyncio.wait_for(asyncio.wrap_future(offer.answer), CEILING)
        assert [claim.id for claim in claims] == [first.id, second.id]
