"""LISTEN/NOTIFY: hints arrive, are few, and come back after an outage."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from headrace.core.lanes import Lane
from headrace.core.settlement import Settlement
from headrace.core.states import TaskState
from headrace.core.task import ClaimedTask, NewTask, Want
from headrace.store.base import StoreOptions
from headrace.store.postgres.connection import Database
from headrace.store.postgres.wakeups import Waker
from tests.store.test_postgres_connection import cut, opened
from tests.support.postgres import PostgresServer


async def next_hint(hints: AsyncIterator[str], wanted: str) -> None:
    while await asyncio.wait_for(anext(hints), timeout=10) != wanted:
        pass


async def ready(hints: AsyncIterator[str]) -> None:
    """A new listener is told to look at everything once."""
    await next_hint(hints, "cancel")


async def test_an_enqueue_wakes_the_listeners_of_its_queue(postgres_url: str) -> None:
    async with opened(postgres_url) as store, store.listen("w", ["mail"]) as hints:
        await ready(hints)
        await store.enqueue([NewTask(name="t", queue="other"), NewTask(name="t", queue="mail")])
        assert await asyncio.wait_for(anext(hints), timeout=10) == "mail"


async def test_what_is_given_back_wakes_the_listeners_of_its_queue(postgres_url: str) -> None:
    """At once, where it is ready at once: one that waits wakes them when it is due."""
    async with opened(postgres_url) as store:
        await store.enqueue([NewTask(name="t", queue=queue) for queue in ("later", "mail")])
        later, mail = [
            claim
            for queue in ("later", "mail")
            for claim in await store.claim("w", [Want(queue=queue, pool="coroutine", lane=Lane.PRIMARY, n=1)])
        ]
        async with store.listen("v", ["later", "mail"]) as hints:
            await ready(hints)
            for claim, delay in ((later, 60.0), (mail, 0.0)):
                await store.finish("w", [settlement(claim, delay)])
            assert await asyncio.wait_for(anext(hints), timeout=10) == "mail"


def settlement(claim: ClaimedTask, delay: float) -> Settlement:
    return Settlement(task=claim.id, claim_no=claim.claim_no, state=TaskState.PENDING, delay=delay)


async def test_a_users_transaction_wakes_at_its_commit(postgres_url: str) -> None:
    async with opened(postgres_url) as store, store.listen("w", ["mail"]) as hints:
        await ready(hints)
        statement = next(store.enqueue_program([NewTask(name="t", queue="mail")]))
        mine = await asyncpg.connect(postgres_url)
        async with mine.transaction():
            await mine.fetch(statement.sql, *statement.parameters)
        await mine.close()
        assert await asyncio.wait_for(anext(hints), timeout=10) == "mail"


async def test_cancelling_tells_the_worker_that_holds_the_task(postgres_url: str) -> None:
    async with opened(postgres_url) as store, store.listen("w", []) as mine, store.listen("v", []) as theirs:
        await ready(mine)
        await ready(theirs)
        [answer] = await store.enqueue([NewTask(name="t")])
        await store.claim("w", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)])
        await store.cancel([answer.id])
        assert await asyncio.wait_for(anext(mine), timeout=10) == "cancel"
        assert [ref.id for ref in await store.cancelling("w")] == [answer.id]
        assert await store.cancelling("v") == []


async def test_after_an_outage_the_listener_looks_at_once(postgres_server: PostgresServer, postgres_url: str) -> None:
    async with opened(postgres_url) as store, store.listen("w", ["mail"]) as hints:
        await ready(hints)
        await cut(postgres_server, postgres_url)
        await next_hint(hints, "mail")
        await ready(hints)
        await store.enqueue([NewTask(name="t", queue="mail")])
        assert await asyncio.wait_for(anext(hints), timeout=10) == "mail"


async def test_a_burst_of_enqueues_is_a_few_notifications(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        heard: list[str] = []
        mine = await asyncpg.connect(postgres_url)
        await mine.add_listener("headrace", lambda *hint: heard.append(hint[3]))
        loop = asyncio.get_running_loop()
        begun = loop.time()
        # At once: one after the other they would be a burst only on a machine that has nothing else to do.
        await asyncio.gather(*(store.enqueue([NewTask(name="t", queue="mail")]) for _ in range(200)))
        taken = loop.time() - begun
        await store.wake(["last"])
        async with asyncio.timeout(10):
            while "last" not in heard:
                await mine.execute("SELECT 1")
        await mine.close()
        assert 1 <= heard.count("mail") <= 2 + taken / 0.005
        assert heard.count("mail") < 200


async def test_a_stream_of_enqueues_needs_no_notification_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a quiet time held back goes with the next enqueue that may notify; only the last of them has to follow."""
    late: list[str] = []
    monkeypatch.setattr(Waker, "_send_late", lambda _, queue: late.append(queue))
    waker = Waker(Database("postgresql://nowhere/none", StoreOptions()), {})
    loop = asyncio.get_running_loop()
    begun, told = loop.time(), [0.0]
    while len(told) < 10:
        now = loop.time()
        if waker.due(["mail"]):
            told.append(now)
        else:  # the promise is never due before the next enqueue that may notify
            assert waker._late["mail"].when() >= told[-1] + 0.01
    assert loop.time() - begun >= 8 * 0.005
    assert late == []  # the loop had no turn
    await asyncio.sleep(0.05)
    assert late == ["mail"]
