"""Transactions that meet on a PostgreSQL server, in the one order that could do harm."""

import asyncio
import statistics
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from headrace.core.errors import StoreUnavailable
from headrace.core.states import TaskState
from headrace.core.task import Key, NewJob, NewTask
from headrace.store.expecting import Expected
from headrace.store.postgres.enqueueing import document
from headrace.store.removing import DeleteAnswer
from headrace.testing.store_conformance.ledger import failed_for_good
from tests.store.test_postgres_connection import WANTS, broken_rules, done, opened

_asyncpg: Any = asyncpg
_WAITS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@asynccontextmanager
async def connection(url: str) -> AsyncGenerator[Any]:
    found = await _asyncpg.connect(url)
    try:
        yield found
    finally:
        await found.close()


async def somebody_waits(looker: Any) -> None:
    async with asyncio.timeout(20):
        while not await looker.fetchval(_WAITS):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_repeat_that_overtakes_its_first_try_is_counted_once(postgres_url: str) -> None:
    """The line broke while the server was still at work: the repeat begins before the first try has committed. Counted
    twice, the job would wait for ever for a task that does not exist."""
    statement = "SELECT * FROM headrace.enqueue_v1($1)"
    async with opened(postgres_url) as store, connection(postgres_url) as one, connection(postgres_url) as two:
        job, _ = await store.create_job(NewJob(name="j", tasks=(NewTask(name="t"),)))
        for number, keys in enumerate(((), (Key(scope="unique", key="k"),))):
            tasks, ids = [NewTask(name="t", job=job, keys=keys)], [1_000_000 + number]
            transaction = one.transaction()
            await transaction.start()
            await one.fetch(statement, document(tasks, ids=ids, own=True))
            repeat = asyncio.create_task(two.fetch(statement, document(tasks, ids=ids, own=True, repeated=True)))
            async with connection(postgres_url) as looker:
                await somebody_waits(looker)
            await transaction.commit()
            assert [tuple(row) for row in await repeat] == [(1, ids[0], True)]
        found = await store.get_job(job)
        assert found is not None
        assert found.total == 3
        assert await broken_rules(store) == []


async def test_a_job_ends_once_the_open_transaction_that_holds_its_hooks_key_does(postgres_url: str) -> None:
    """The wait for the key is bounded; the finish insists instead of failing with the database's own error."""
    key = Key(scope="unique", key="report")
    async with opened(postgres_url) as store, connection(postgres_url) as user:
        hook = NewTask(name="hook", keys=(key,))
        job, _ = await store.create_job(NewJob(name="j", on_failure=hook))
        transaction = user.transaction()
        await transaction.start()
        await user.fetch("SELECT * FROM headrace.enqueue_v1($1)", document([hook], own=False))
        ending = asyncio.create_task(store.cancel_job(job))
        await asyncio.sleep(2.5)  # longer than the patience with a key
        assert not ending.done()
        await transaction.rollback()
        async with asyncio.timeout(20):
            assert (await ending).state == "cancelled"
        assert await broken_rules(store) == []


async def test_claims_are_not_lost_with_the_note_of_a_late_report(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finish that also claims; the line breaks for good between its commit and the note of the report it refused."""

    async def cut(*_: object) -> None:
        raise StoreUnavailable("the line was cut")

    async with opened(postgres_url) as store:
        await store.enqueue([NewTask(name="t")])
        [late] = await store.claim("a", WANTS)
        assert await store.deregister("a") == 1
        with monkeypatch.context() as patched:
            patched.setattr(store.finish.__self__, "_record_late", cut)  # pyright: ignore[reportFunctionMemberAccess]
            with pytest.raises(StoreUnavailable):
                await store.finish("a", [done(late)], wants=WANTS)
        [again] = await store.claim("a", WANTS)
        assert (again.id, again.claim_no) == (late.id, late.claim_no + 2), "the claim nobody heard of was given back"


async def test_critical_failures_of_one_job_do_not_wait_for_each_other_in_a_circle(postgres_url: str) -> None:
    """Each ends the job, and with it what the others are finishing. The server finds a circle after a second."""
    took: list[float] = []
    async with opened(postgres_url) as store:
        for _ in range(10):
            job, _ = await store.create_job(NewJob(name="j", tasks=tuple(NewTask(name="t") for _ in range(6))))
            claims = await store.claim("a", WANTS)
            begun = time.monotonic()
            await asyncio.gather(*[store.finish("a", [failed_for_good(claim)]) for claim in claims])
            took.append(time.monotonic() - begun)
            found = await store.get_job(job)
            assert found is not None
            assert (found.state, found.open) == ("failed", 0)
        assert await broken_rules(store) == []
    assert statistics.median(took) < 0.9


@pytest.mark.parametrize("act", ["retry", "delete"])
async def test_an_act_that_waited_for_a_replay_does_not_undo_it(postgres_url: str, act: str) -> None:
    """It found the dead letter and waits for its row; whoever had that commits. Then the row is somewhere else."""
    async with opened(postgres_url) as store, connection(postgres_url) as other, connection(postgres_url) as looker:
        (made,) = await store.enqueue([NewTask(name="t", dead_letter=True)])
        (claim,) = await store.claim("w", WANTS)
        await store.finish("w", [failed_for_good(claim, dead_letter=True)])
        expected = Expected(states=(TaskState.FAILED,), until=await store.now())
        transaction = other.transaction()
        await transaction.start()
        assert await other.fetchval("SELECT headrace.reopen_v1($1)", [made.id]) == [made.id]
        late = asyncio.create_task(getattr(store, act)([made.id], expected=expected))
        await somebody_waits(looker)
        await transaction.commit()
        assert await late == ([] if act == "retry" else {made.id: DeleteAnswer.CHANGED_MEANWHILE})
        record = (await store.get([made.id]))[made.id]
        assert (record.state, record.run_no) == (TaskState.PENDING, 2)
        assert await broken_rules(store) == []
