"""Handles: states, results, failures, cancellation."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from headrace import App, Permanent, Resource, Retry, injected
from headrace.core.errors import NotFound, ResultExpired, StoreError, TaskCancelled, TaskFailed
from headrace.core.states import TaskState
from headrace.store.base import CancelAnswer
from tests.client.draining import drain
from tests.support.waiting import eventually


@dataclass
class Point:
    x: int
    at: datetime


NOW = datetime(2030, 1, 1, tzinfo=UTC)


def define(app: App):
    @app.task(name="move")
    async def move(point: Point, by: timedelta) -> Point:
        return Point(point.x + 1, point.at + by)

    return move


async def test_a_typed_result(app: App):
    move = define(app)
    handle = await move.aenqueue(Point(1, NOW), by=timedelta(hours=1))
    assert await drain(app) == 1
    assert await handle.aresult(timeout=10) == Point(2, NOW + timedelta(hours=1))
    assert await handle == Point(2, NOW + timedelta(hours=1))
    assert await handle.await_() is TaskState.COMPLETED
    # Found again by its id, the task's annotation still gives the type.
    assert await app.tasks.handle(handle.id).aresult() == Point(2, NOW + timedelta(hours=1))


def test_the_blocking_forms(app: App):
    move = define(app)
    handle = move.enqueue(Point(1, NOW), by=timedelta(0))
    asyncio.run(drain(app))
    assert handle.wait(timeout=10) is TaskState.COMPLETED
    assert handle.result(timeout=timedelta(seconds=10)) == Point(2, NOW)
    assert handle.state() is TaskState.COMPLETED


async def test_a_failure_brings_the_remote_traceback(app: App):
    @app.task(name="break", retry=Retry(max_attempts=3, backoff="fixed", base=0, jitter=0))
    def breaks(deep: int) -> None:
        raise ValueError(f"no {deep}")

    handle = await breaks.aenqueue(5)
    assert await drain(app) == 3
    with pytest.raises(TaskFailed) as failed:
        await handle.aresult(timeout=10)
    assert failed.value.task_id == handle.id
    assert (failed.value.reason, failed.value.error_class) == ("error", "builtins.ValueError")
    assert "ValueError: no 5" in str(failed.value)
    assert 'raise ValueError(f"no {deep}")' in (failed.value.remote_traceback or "")
    assert "Traceback in the worker" in failed.value.__notes__[0]
    assert [attempt.attempt for attempt in await app.tasks.aattempts(handle.id)] == [1, 2, 3]


async def test_a_permanent_failure_is_not_retried(app: App):
    @app.task(name="never")
    def never() -> None:
        raise Permanent("not again")

    handle = await never.aenqueue()
    assert await drain(app) == 1
    with pytest.raises(TaskFailed, match="not again"):
        await handle.aresult(timeout=10)


async def test_a_timeout_leaves_the_task_alone(app: App):
    move = define(app)
    handle = await move.aenqueue(Point(1, NOW), by=timedelta(0))
    started = time.monotonic()
    for wait in (handle.aresult, handle.await_):
        with pytest.raises(TimeoutError, match=f"task {handle.id} has not ended within 0.05 s"):
            await wait(timeout=0.05)
    assert time.monotonic() - started < 5
    assert await handle.astate() is TaskState.PENDING


async def test_cancelling(app: App):
    move = define(app)
    handle = await move.aenqueue(Point(1, NOW), by=timedelta(0))
    assert await handle.acancel() is CancelAnswer.CANCELLED
    assert await handle.acancel() is CancelAnswer.TOO_LATE
    with pytest.raises(TaskCancelled) as cancelled:
        await handle.aresult(timeout=10)
    assert (cancelled.value.task_id, cancelled.value.reason) == (handle.id, "user")


async def test_cancelling_what_has_ended_is_too_late(app: App):
    move = define(app)
    handle = await move.aenqueue(Point(1, NOW), by=timedelta(0))
    await drain(app)
    assert await handle.acancel() is CancelAnswer.TOO_LATE
    assert await handle.aresult() == Point(2, NOW)


async def test_an_id_that_is_not_there(app: App):
    handle = app.tasks.handle(123_456_789)
    for ask in (handle.astate, handle.aresult, handle.await_, handle.acancel):
        with pytest.raises(NotFound, match="123456789"):
            await ask()


async def test_an_expired_result(app: App):
    move = define(app).using(result_ttl=0.001)
    handle = await move.aenqueue(Point(1, NOW), by=timedelta(0))
    # The worker passes the stored time to live on; here it is set the way a worker sets it.
    store = app.new_store()
    await store.open()
    try:
        await _finish_with_ttl(app, store)
        deadline = time.monotonic() + 20
        while (await app.tasks.aget(handle.id)).result is not None:
            assert time.monotonic() < deadline
            await store.prune(keep=3600)
    finally:
        await store.close()
    with pytest.raises(ResultExpired, match=str(handle.id)):
        await handle.aresult(timeout=10)


async def _finish_with_ttl(app: App, store):
    import json
    import random

    from headrace.core.lanes import Lane
    from headrace.core.outcome import Completed
    from headrace.core.settlement import Execution, settle
    from headrace.core.task import Want
    from tests.client.draining import registered

    worker = await registered(store)
    [claim] = await store.claim(worker, [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)])
    ttl = json.loads(claim.options)["result_ttl"]
    outcome = Completed(result=app.get_task(claim.name).dump_result(Point(1, NOW)))
    execution = Execution(ran_for=0.001, result_ttl=ttl)
    await store.finish(worker, [settle(claim, outcome, Retry(), rng=random.Random(1), execution=execution)])


async def test_many_waiting_handles_share_their_queries(app: App):
    """Five hundred waiting handles cost some dozens of queries, not thousands."""

    @app.task(name="same")
    async def same(number: int) -> int:
        return number

    handles = await same.aenqueue_many({"number": number} for number in range(500))
    engine = app.engine
    await engine.opened_store()
    poller = engine._connected.poller
    queries = 0
    read = poller._read

    async def counted(ids):
        nonlocal queries
        queries += 1
        return await read(ids)

    poller._read = counted
    waiting = asyncio.gather(*(handle.aresult(timeout=60) for handle in handles))
    await drain(app)
    assert await waiting == list(range(500))
    assert queries < 250


async def test_waiting_ends_soon_after_the_task(app: App):
    """The pause between two looks never exceeds a quarter of a second."""
    move = define(app)
    handle = await move.aenqueue(Point(1, NOW), by=timedelta(0))
    waiting = asyncio.create_task(handle.aresult(timeout=60))
    await asyncio.sleep(0)
    await drain(app)
    ended = time.monotonic()
    assert await waiting == Point(2, NOW)
    assert time.monotonic() - ended < 2


async def test_a_cancelled_waiter_is_forgotten(app: App):
    move = define(app)
    handle = await move.aenqueue(Point(1, NOW), by=timedelta(0))
    waiting = asyncio.create_task(handle.aresult())
    await eventually(lambda: len(waiters(app, handle.id)) == 1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await eventually(lambda: len(waiters(app, handle.id)) == 0)


def waiters(app: App, task: int) -> Sequence[object]:
    """Who is polled for; nobody before the store is open."""
    connected = app.engine._connected
    return () if connected is None else list(connected.poller._waiting.get(task, ()))


async def test_whoever_waits_hears_that_the_app_was_closed(app: App):
    """Nobody polls for them any more: they would wait for ever."""
    handle = await define(app).aenqueue(Point(1, NOW), by=timedelta(0))
    waiting = [asyncio.create_task(handle.aresult()), asyncio.create_task(handle.await_())]
    async with asyncio.timeout(10):
        await eventually(lambda: len(waiters(app, handle.id)) == 2)
        await app.aclose()
        for outcome in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(outcome, StoreError)
            assert "the task goes on" in str(outcome)
    assert await handle.astate() is TaskState.PENDING


class Pool: ...


async def test_resources_are_injected_from_the_lifespan(app: App):
    @app.lifespan
    async def lifespan():
        yield {"pool": Pool()}

    @app.task(name="uses")
    async def uses(number: int, pool: Resource[Pool] = injected) -> str:
        return f"{number} {type(pool).__name__}"

    handle = await uses.aenqueue(3)
    async with app.lifespan_context() as resources:
        await drain(app, resources=dict(resources))
    assert await handle.aresult(timeout=10) == "3 Pool"


async def test_what_a_lifespan_may_yield():
    import contextlib

    class Single: ...

    def nothing():
        return contextlib.nullcontext()

    async def single():
        yield Single()

    for function, names in ((single, ["test_what_a_lifespan_may_yield.<locals>.Single"]), (nothing, [])):
        app = App("sqlite://")
        app.lifespan(function)
        async with app.lifespan_context() as resources:
            assert list(resources) == names
        with pytest.raises(Exception, match="lifespan already"):
            app.lifespan(function)
    async with App("sqlite://").lifespan_context() as resources:
        assert resources == {}
