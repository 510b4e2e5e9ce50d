"""Edges between tasks on PostgreSQL: what ends with what, and what is free when."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from headrace.core.errors import EnqueueError, GraphError
from headrace.core.lanes import Lane
from headrace.core.task import After, ClaimedTask, EdgeKind, NewJob, NewTask, Want
from headrace.store.postgres import PostgresStore
from headrace.store.postgres.connection import Connection
from headrace.testing.store_conformance.ledger import failed_for_good, suspended
from tests.store.test_postgres_connection import broken_rules, done, opened

MANY = [Want(queue="default", pool="coroutine", lane=lane, n=1000) for lane in (Lane.PRIMARY, Lane.RETRY)]


def after(*places: int, kind: EdgeKind = EdgeKind.ON_SUCCESS) -> tuple[After, ...]:
    return tuple(After(task=place, kind=kind, local=True) for place in places)


def task(*places: int, kind: EdgeKind = EdgeKind.ON_SUCCESS, critical: bool = True, approval: bool = False) -> NewTask:
    return NewTask(name="t", after=after(*places, kind=kind), critical=critical, approval=approval)


async def made(store: PostgresStore, *tasks: NewTask) -> tuple[int, list[int]]:
    job, answers = await store.create_job(NewJob(name="j", tasks=tasks))
    return job, [answer.id for answer in answers]


async def said(store: PostgresStore, ids: list[int]) -> list[str]:
    found = await store.get(ids)
    return [found[id].state if found[id].reason is None else f"{found[id].state}/{found[id].reason}" for id in ids]


async def claim(store: PostgresStore, worker: str = "w") -> list[ClaimedTask]:
    return await store.claim(worker, MANY)


async def run_all(store: PostgresStore, order: list[int] | None = None) -> None:
    """Until nothing is ready."""
    while claims := await claim(store):
        if order is not None:
            order += [found.id for found in claims]
        report = await store.finish("w", [done(found) for found in claims])
        while report.releasing and await store.release():
            pass


async def test_a_diamond_runs_in_its_order(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        job, ids = await made(store, task(), task(0), task(0), task(1, 2))
        assert await said(store, ids) == ["pending", "blocked", "blocked", "blocked"]
        order: list[int] = []
        await run_all(store, order)
        assert order == ids
        found = await store.get_job(job)
        assert found is not None
        assert (found.state, found.completed) == ("completed", 4)
        assert await broken_rules(store) == []


async def test_a_failure_cancels_the_whole_way_down_and_its_handler_runs(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        handler = NewTask(name="t", after=after(0, kind=EdgeKind.ON_FAILURE))
        job, ids = await made(
            store, task(critical=False), task(0), task(1), task(2, kind=EdgeKind.ON_DONE), handler, task(4), task()
        )
        [first, _] = await claim(store)
        await store.finish("w", [failed_for_good(first)])
        assert await said(store, ids) == [
            "failed/error", "cancelled/upstream_failed", "cancelled/upstream_failed", "pending", "pending", "blocked",
            "claimed",
        ]  # fmt: skip
        await store.finish("w", [done(claimed) for claimed in await store.held("w")])
        await run_all(store)
        found = await store.get_job(job)
        assert found is not None
        assert (found.state, found.completed, found.failed, found.cancelled) == ("completed", 4, 1, 2)
        assert await broken_rules(store) == []


async def test_a_critical_failure_ends_the_job_and_says_why_of_each(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        job, ids = await made(store, task(), task(0), task(1), task())
        first = next(found for found in await claim(store) if found.id == ids[0])
        await store.finish("w", [failed_for_good(first)])
        assert await said(store, ids) == [
            "failed/error", "cancelled/upstream_failed", "cancelled/upstream_failed", "cancelling/job_failed",
        ]  # fmt: skip
        found = await store.get_job(job)
        assert found is not None
        assert found.state == "failed"


async def test_a_handled_critical_failure_does_not_fail_the_job(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        for handles, state in ((True, "completed"), (False, "failed")):
            handler = task(0, kind=EdgeKind.ON_FAILURE if handles else EdgeKind.ON_DONE)
            job, _ = await made(store, task(), handler, task(0))
            [first] = await claim(store)
            await store.finish("w", [failed_for_good(first)])
            assert (await store.get_job(job)).state == "running"  # pyright: ignore[reportOptionalMemberAccess]
            await run_all(store)
            assert (await store.get_job(job)).state == state  # pyright: ignore[reportOptionalMemberAccess]


async def test_edges_to_tasks_that_have_ended(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        job, [good, bad, open_one] = await made(store, task(), task(critical=False), task())
        claims = {found.id: found for found in await claim(store)}
        await store.finish("w", [done(claims[good]), failed_for_good(claims[bad])])
        news = [
            NewTask(name="free", job=job, after=(After(task=good), After(task=bad, kind=EdgeKind.ON_FAILURE))),
            NewTask(name="lost", job=job, after=(After(task=bad), After(task=open_one))),
            NewTask(name="below", job=job, after=(After(task=1, local=True),)),
            NewTask(name="skipped", job=job, after=(After(task=good, kind=EdgeKind.ON_FAILURE),)),
            NewTask(name="waits", job=job, after=(After(task=open_one), After(task=good))),
        ]
        ids = [answer.id for answer in await store.enqueue(news)]
        assert await said(store, ids) == [
            "pending", "cancelled/upstream_failed", "cancelled/upstream_failed", "cancelled/skipped", "blocked",
        ]  # fmt: skip
        await store.finish("w", [done(claims[open_one])])
        await run_all(store)
        found = await store.get_job(job)
        assert found is not None
        assert (found.state, found.total, found.completed, found.cancelled) == ("completed", 8, 4, 3)
        assert await broken_rules(store) == []


async def test_edges_that_cannot_be_write_nothing(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        job, [one] = await made(store, task())
        _, [other] = await made(store, task())
        for bad in (
            [NewTask(name="t", job=job, after=(After(task=other),))],
            [NewTask(name="t", job=job, after=(After(task=12345),))],
            [NewTask(name="t", after=(After(task=one),))],
            [NewTask(name="t", job=job, after=after(0))],
            [NewTask(name="t"), NewTask(name="t", job=job, after=after(0))],
        ):
            with pytest.raises(GraphError):
                await store.enqueue(bad)
        for tasks in ((task(0),), (task(1), task()), (NewTask(name="t", after=(After(task=one),)),)):
            with pytest.raises(GraphError):
                await store.create_job(NewJob(name="bad", tasks=tasks))
        with pytest.raises(EnqueueError, match="transaction of your own"):
            next(store.enqueue_program([NewTask(name="t", job=job, after=(After(task=one),))]))
        assert [job.name for job in await store.list_jobs()] == ["j", "j"]
        assert (await store.get_job(job)).total == 1  # pyright: ignore[reportOptionalMemberAccess]


async def test_a_cleared_task_has_not_begun(postgres_url: str) -> None:
    """It had slept, and was cleared with what it waits for: when that fails now, it is cancelled like any other."""
    async with opened(postgres_url) as store:
        _, ids = await made(store, task(critical=False), task(0))
        await store.finish("w", [done(found) for found in await claim(store)])
        [sleeper] = await claim(store)
        await store.finish("w", [suspended(sleeper, delay=600.0)])
        await store.clear(ids[0])
        assert await said(store, ids) == ["pending", "blocked"]
        [first] = await claim(store)
        await store.finish("w", [failed_for_good(first)])
        assert await said(store, ids) == ["failed/error", "cancelled/upstream_failed"]
        assert await broken_rules(store) == []


async def test_a_wide_fan_out_is_released_in_parts(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        job, ids = await made(store, task(), *(task(0) for _ in range(2500)), task(*range(1, 2501)))
        [first] = await claim(store)
        report = await store.finish("w", [done(first)])
        assert report.releasing
        assert await store.claim("w", MANY) == []
        late = await store.enqueue([NewTask(name="late", job=job, after=(After(task=ids[0]),))])
        assert await said(store, [late[0].id]) == ["blocked"]  # the release comes to it
        assert [await store.release(limit=1000) for _ in range(4)] == [1000, 1000, 501, 0]
        assert set(await said(store, [*ids[1:-1], late[0].id])) == {"pending"}
        await run_all(store)
        found = await store.get_job(job)
        assert found is not None
        assert (found.state, found.completed) == ("completed", 2503)


async def test_a_create_that_nobody_heard_of_is_not_written_twice(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_url) as store:
        run = store.database.connection
        heard: list[str] = []

        @asynccontextmanager
        async def deaf() -> AsyncGenerator[Connection]:
            async with run() as connection:
                yield connection
                if not heard:
                    heard.append("the first COMMIT")
                    raise ConnectionResetError("its answer was lost")

        await store.enqueue([NewTask(name="for its ids", queue="other")])
        monkeypatch.setattr(store.database, "connection", deaf)
        job, ids = await made(store, task(), task(0))
        assert await said(store, ids) == ["pending", "blocked"]
        await run_all(store)
        found = await store.get_job(job)
        assert found is not None
        assert heard
        assert (found.state, found.total) == ("completed", 2)
        assert await broken_rules(store) == []
