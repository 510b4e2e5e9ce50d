"""Whoever ends a task and whoever changes what waits for it, on PostgreSQL at the same moment.

Each race is led to the one order that could do harm, by transactions that stand still, and then run many times.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import After, ClaimedTask, EdgeKind, NewJob, NewTask, Received, Ref
from headrace.store.base import CancelAnswer, StoreOptions
from headrace.store.postgres import PostgresStore
from headrace.store.postgres.connection import Connection
from tests.store.test_postgres_connection import broken_rules, done, opened
from tests.store.test_postgres_graphs import claim, made, run_all, said, task
from tests.store.test_postgres_races import connection, somebody_waits

_TURNS = 12


@asynccontextmanager
async def two_stores(url: str) -> AsyncGenerator[tuple[PostgresStore, PostgresStore]]:
    async with opened(url) as one:
        two = PostgresStore(url, StoreOptions())
        await two.open()
        try:
            yield one, two
        finally:
            await two.close()


class Standing:
    """Holds the next transaction of a store before its COMMIT, until it is told to go on."""

    def __init__(self, store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        run = store.database.connection

        @asynccontextmanager
        async def standing() -> AsyncGenerator[Connection]:
            async with run() as found:
                if self.reached.is_set():
                    yield found
                    return
                async with found.transaction():
                    yield found
                    self.reached.set()
                    await self.go.wait()

        monkeypatch.setattr(store.database, "connection", standing)


def waits(found: ClaimedTask, awaits: str | int) -> Settlement:
    return Settlement(
        task=found.id, claim_no=found.claim_no, state=TaskState.BLOCKED, attempt=AttemptState.SUSPENDED, ran_for=0.1,
        awaits=awaits,
    )  # fmt: skip


async def test_the_two_last_of_a_fan_in_end_at_once(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-A12: the first has lowered the barrier and not committed when the second comes. It waits, sees what is left,
    and frees the continuation; a count that each made by itself would leave it blocked, or free it twice."""
    async with two_stores(postgres_url) as (one, two):
        _, ids = await made(one, task(), task(), task(0, 1))
        first, second = await claim(one)
        standing = Standing(one, monkeypatch)
        ending = asyncio.create_task(one.finish("w", [done(first)]))
        await asyncio.wait_for(standing.reached.wait(), 30)
        other = asyncio.create_task(two.finish("w", [done(second)]))
        async with connection(postgres_url) as looker:
            await somebody_waits(looker)
        standing.go.set()
        await asyncio.gather(ending, other)
        assert await said(one, ids) == ["completed", "completed", "pending"]
        for _ in range(_TURNS):
            await run_all(one)
            _, ids = await made(one, task(), task(), task(0, 1))
            first, second = await claim(one)
            await asyncio.gather(one.finish("w", [done(first)]), two.finish("w", [done(second)]))
            assert await said(one, ids) == ["completed", "completed", "pending"]
        await run_all(one)
        assert await broken_rules(one) == []


async def test_an_edge_is_added_while_its_upstream_ends(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may come first, and stand still before its commit: the task that waits is freed all the same."""
    for adds_first in (True, False):
        async with two_stores(postgres_url) as (one, two):
            job, [upstream, _] = await made(one, task(), task())
            held = next(found for found in await claim(one) if found.id == upstream)
            news = [NewTask(name="late", job=job, after=(After(task=upstream),))]
            standing = Standing(one if adds_first else two, monkeypatch)

            async def add(store: PostgresStore = one, news: list[NewTask] = news) -> list[int]:
                return [answer.id for answer in await store.enqueue(news)]

            async def end(store: PostgresStore = two, held: ClaimedTask = held) -> None:
                await store.finish("w", [done(held)])

            adding = ending = None
            if adds_first:
                adding = asyncio.create_task(add())
                await asyncio.wait_for(standing.reached.wait(), 30)
                ending = asyncio.create_task(end())
            else:
                ending = asyncio.create_task(end())
                await asyncio.wait_for(standing.reached.wait(), 30)
                adding = asyncio.create_task(add())
            async with connection(postgres_url) as looker:
                await somebody_waits(looker)
            standing.go.set()
            ids = await adding
            await ending
            assert await said(two, ids) == ["pending"]
            assert await broken_rules(two) == []


async def test_edges_are_added_while_upstreams_end(postgres_url: str) -> None:
    async with two_stores(postgres_url) as (one, two):
        job, _ = await made(one, *(task() for _ in range(_TURNS + 1)))
        for held in (await claim(one))[1:]:
            news = [NewTask(name="late", job=job, after=(After(task=held.id),)) for _ in range(3)]
            answers, _ = await asyncio.gather(one.enqueue(news), two.finish("w", [done(held)]))
            assert await said(one, [answer.id for answer in answers]) == ["pending"] * 3
        assert await broken_rules(one) == []


async def test_a_new_run_waits_for_an_end_that_is_not_committed(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts what its tasks wait for: the end that stands before its commit lowers nothing any more afterwards."""
    for verb in ("retry", "clear"):
        async with two_stores(postgres_url) as (one, two):
            _, ids = await made(one, task(critical=False), task(), task(0, 1))
            held = {found.id: found for found in await claim(one)}
            await one.finish("w", [failed(held[ids[0]]) if verb == "retry" else done(held[ids[0]])])
            standing = Standing(two, monkeypatch)
            ending = asyncio.create_task(two.finish("w", [done(held[ids[1]])]))
            await asyncio.wait_for(standing.reached.wait(), 30)
            opening = asyncio.create_task(one.retry([ids[0]]) if verb == "retry" else one.clear(ids[0]))
            async with connection(postgres_url) as looker:
                await somebody_waits(looker)
            standing.go.set()
            await ending
            assert set(await opening) == {ids[0], ids[2]}
            assert await said(one, ids) == ["pending", "completed", "blocked"]
            assert await broken_rules(one) == []
            await run_all(one)
            assert await said(one, ids) == ["completed"] * 3


async def test_one_upstream_runs_again_while_the_other_ends(postgres_url: str) -> None:
    """The dependent comes back with a barrier that was counted beside a finish: it is freed when both have ended."""
    async with two_stores(postgres_url) as (one, two):
        for _ in range(_TURNS):
            _, ids = await made(one, task(critical=False), task(), task(0, 1))
            held = {found.id: found for found in await claim(one)}
            await one.finish("w", [failed(held[ids[0]])])
            opened_again, _ = await asyncio.gather(one.retry([ids[0]]), two.finish("w", [done(held[ids[1]])]))
            assert set(opened_again) == {ids[0], ids[2]}
            assert await said(one, ids) == ["pending", "completed", "blocked"]
            await run_all(one)
            assert await said(one, ids) == ["completed"] * 3
        assert await broken_rules(one) == []


async def test_a_cleared_graph_and_a_finish_in_it(postgres_url: str) -> None:
    """Whichever is first: the finish frees what the clear blocks again, or comes too early for that."""
    async with two_stores(postgres_url) as (one, two):
        for _ in range(_TURNS):
            _, ids = await made(one, task(), task(), task(0, 1))
            first, second = await claim(one)
            await one.finish("w", [done(first)])
            cleared, _ = await asyncio.gather(one.clear(first.id), two.finish("w", [done(second)]))
            assert sorted(cleared) == sorted([ids[0], ids[2]])
            assert await said(one, [ids[2]]) == ["blocked"]
            await run_all(one)
            assert await said(one, ids) == ["completed"] * 3
        assert await broken_rules(one) == []


def failed(found: ClaimedTask) -> Settlement:
    return Settlement(
        task=found.id, claim_no=found.claim_no, state=TaskState.FAILED, reason="error", charged=True,
        attempt=AttemptState.FAILED, ran_for=0.1,
    )  # fmt: skip


async def test_an_event_comes_while_its_task_is_about_to_wait(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No `deliver` helps here: the one that comes second waits for the first and sees what it did."""
    for sends_first in (True, False):
        async with two_stores(postgres_url) as (one, two):
            [answer] = await one.enqueue([NewTask(name="t")])
            [held] = await claim(one)
            assert await one.receive("w", Ref(held.id, held.claim_no), "s", event="e", key="k", timeout=None) is None
            await two.send("e", "another", "1")  # it has its ids
            standing = Standing(two if sends_first else one, monkeypatch)
            if sends_first:
                a: asyncio.Task[object] = asyncio.create_task(two.send("e", "k", "1"))
                await asyncio.wait_for(standing.reached.wait(), 30)
                b: asyncio.Task[object] = asyncio.create_task(one.finish("w", [waits(held, "s")]))
            else:
                a = asyncio.create_task(one.finish("w", [waits(held, "s")]))
                await asyncio.wait_for(standing.reached.wait(), 30)
                b = asyncio.create_task(two.send("e", "k", "1"))
            async with connection(postgres_url) as looker:
                await somebody_waits(looker)
            standing.go.set()
            await asyncio.gather(a, b)
            assert await said(one, [answer.id]) == ["pending"]
            [again] = await claim(one)
            told = await one.receive("w", Ref(again.id, again.claim_no), "s", event="e", key="k", timeout=None)
            assert told == Received(payload="1")
            await one.finish("w", [done(again)])


async def test_a_child_ends_while_its_parent_is_about_to_wait(postgres_url: str) -> None:
    async with two_stores(postgres_url) as (one, two):
        for _ in range(_TURNS):
            await one.enqueue([NewTask(name="parent")])
            [held] = await claim(one)
            child = await one.spawn("w", Ref(held.id, held.claim_no), "child", NewTask(name="child"))
            assert child is not None
            [work] = await claim(two)
            await asyncio.gather(one.finish("w", [waits(held, child)]), two.finish("w", [done(work)]))
            assert await said(one, [held.id]) == ["pending"]
            await run_all(one)
        assert await broken_rules(one) == []


async def test_a_cancel_and_the_end_of_what_it_waits_for(postgres_url: str) -> None:
    """A blocked task is cancelled in the moment in which its last upstream completes: it ends once."""
    async with two_stores(postgres_url) as (one, two):
        for _ in range(_TURNS):
            job, ids = await made(one, task(), task(0), task(1), NewTask(name="t", after=(_done(1), _done(2))))
            [held] = await claim(one)
            answers, _ = await asyncio.gather(one.cancel([ids[1]]), two.finish("w", [done(held)]))
            assert answers[ids[1]] is CancelAnswer.CANCELLED
            assert await said(one, ids[1:]) == ["cancelled/user", "cancelled/upstream_failed", "pending"]
            await run_all(one)
            found = await one.get_job(job)
            assert found is not None
            assert (found.state, found.completed, found.cancelled) == ("completed", 2, 2)
        assert await broken_rules(one) == []


def _done(place: int) -> After:
    return After(task=place, kind=EdgeKind.ON_DONE, local=True)


async def test_a_job_is_cancelled_while_its_tasks_end(postgres_url: str) -> None:
    async with two_stores(postgres_url) as (one, two):
        for _ in range(_TURNS):
            hook = NewTask(name="hook", queue="hooks")
            grid = [task(), task(), *(task(0, 1) for _ in range(6)), task(*range(2, 8))]
            job, _ = await one.create_job(NewJob(name="j", tasks=grid, on_success=hook, on_failure=hook))
            first, second = await claim(one)
            await asyncio.gather(one.finish("w", [done(first)]), two.cancel_job(job), two.finish("w", [done(second)]))
            found = await one.get_job(job)
            assert found is not None
            assert (found.state, found.open) == ("cancelled", 0)
            assert await claim(one) == []
        assert await broken_rules(one) == []


async def test_a_wide_fan_is_released_by_two(postgres_url: str) -> None:
    async with two_stores(postgres_url) as (one, two):
        _, ids = await made(one, task(), *(task(0) for _ in range(1200)), task(*range(1, 1201)))
        [first] = await claim(one)
        assert (await one.finish("w", [done(first)])).releasing

        async def release(store: PostgresStore) -> int:
            return sum([await store.release(limit=40) for _ in range(30)])

        looked = sum(await asyncio.gather(release(one), release(two), release(two)))
        while n := await one.release(limit=100):
            looked += n
        assert looked == 1200, "each was looked at once"
        assert set(await said(one, ids[1:-1])) == {"pending"}
        assert await said(one, ids[-1:]) == ["blocked"]
        assert await broken_rules(one) == []


async def test_two_run_the_same_task_again(postgres_url: str) -> None:
    async with two_stores(postgres_url) as (one, two):
        for _ in range(_TURNS):
            _, ids = await made(one, task(), task(0), task(1))
            [held] = await claim(one)
            await one.finish("w", [failed(held)])
            mine, theirs = await asyncio.gather(one.retry([ids[0]]), two.retry([ids[0]]))
            assert sorted(mine + theirs) == ids
            await run_all(one)
            assert await said(one, ids) == ["completed"] * 3
        assert await broken_rules(one) == []
