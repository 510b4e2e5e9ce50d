"""A program that goes on with the SQLite URL after `headrace db move`: handles, keys and jobs follow the ledger."""

import asyncio
import sqlite3
from collections.abc import Iterator
from datetime import timedelta

import pytest

from headrace import App, Retry
from headrace.core.errors import DuplicateTask, MovedAway, NotFound, StoreUnavailable, TaskFailed, UniqueBusy
from headrace.store.base import CancelAnswer
from headrace.store.connect import sqlite_path
from headrace.testing.store_conformance.ledger import failed_for_good
from tests.client.draining import drain
from tests.support.moving import ledger_of, moved, mover_of

pytestmark = pytest.mark.postgres


def tasks_on(url: str) -> App:
    app = App(url)

    @app.task(name="double")
    async def double(n: int) -> int:
        return 2 * n

    @app.task(name="broken", retry=Retry(max_attempts=1))
    async def broken() -> None:
        raise ValueError("it is broken")

    return app


@pytest.fixture
def old(sqlite_url: str, postgres_url: str) -> Iterator[App]:
    """It may follow to the other database, and lets go of that before it is dropped."""
    app = tasks_on(sqlite_url)
    yield app
    app.close()


@pytest.fixture
def new(postgres_url: str) -> Iterator[App]:
    app = tasks_on(postgres_url)
    yield app
    app.close()


def move(old: App, new: App) -> None:
    asyncio.run(moved(old.url, new.url))


async def _pack(sqlite_url: str, postgres_url: str) -> None:
    async with mover_of(sqlite_url, postgres_url, follow=True) as mover:
        await mover._begin()  # pyright: ignore[reportPrivateUsage]
        await mover.flip()
        await mover._compare()  # pyright: ignore[reportPrivateUsage]
        assert await mover.source.pack_tasks(mover.move_id) or await mover.source.pack_jobs(mover.move_id)


def pack(old: App, new: App) -> None:
    """As a mover that is killed once it has taken a parcel out."""
    asyncio.run(_pack(old.url, new.url))


def test_handles_find_their_tasks_where_they_went(old: App, new: App):
    double, broken = old.get_task("double"), old.get_task("broken")
    before = double.enqueue(n=1)
    asyncio.run(drain(old))
    live, late, failing = double.enqueue(n=2), double.using(run_after=timedelta(hours=1)).enqueue(n=3), broken.enqueue()
    assert before.state() == "completed"
    move(old, new)
    assert [handle.state() for handle in (before, live, late)] == ["completed", "pending", "pending"]
    assert before.result(timeout=30) == 2
    asyncio.run(drain(new))
    assert live.result(timeout=30) == 4
    assert old.tasks.get(live.id).result == "4"
    assert [attempt.state for attempt in old.tasks.attempts(live.id)] == ["succeeded"]
    assert old.tasks.logs(live.id) == []
    assert late.cancel() is CancelAnswer.CANCELLED
    assert late.cancel() is CancelAnswer.TOO_LATE
    with pytest.raises(TaskFailed, match="it is broken") as raised:
        failing.result(timeout=30)
    assert "ValueError" in (raised.value.remote_traceback or ""), "its attempt is looked up where it is"
    assert sorted(old.tasks.retry(failing.id, late.id)) == [late.id, failing.id]
    assert (failing.state(), new.tasks.get(failing.id).run_no) == ("pending", 2)
    with pytest.raises(NotFound):
        old.tasks.get(10**9)
    with pytest.raises(NotFound):
        old.tasks.handle(10**9).cancel()


def test_a_handle_that_waits_hears_of_the_end_there(old: App, new: App):
    async def wait() -> int:
        handle = await old.get_task("double").aenqueue(n=21)
        answer = asyncio.create_task(handle.aresult(timeout=60))
        await moved(old.url, new.url)
        assert not answer.done()
        await drain(new)
        return await answer

    assert asyncio.run(wait()) == 42


def test_what_is_on_its_way_is_shown_and_not_changed(old: App, new: App):
    """The mover died with a parcel in its hands: reads answer, writes say that they can be tried again."""
    handle = old.get_task("double").using(unique="u").enqueue(n=1)
    pack(old, new)
    assert (handle.state(), old.tasks.get(handle.id).arguments) == ("pending", handle.record().arguments)
    with pytest.raises(StoreUnavailable, match="on its way"):
        handle.cancel()
    with pytest.raises(UniqueBusy, match="on its way"):
        old.get_task("double").using(unique="u").enqueue(n=2)
    move(old, new)
    assert handle.cancel() is CancelAnswer.CANCELLED


async def _copied_then_claimed(sqlite_url: str, postgres_url: str) -> int:
    """A dead letter that was copied, then retried and claimed here, then the flip: the copy is still there."""
    async with ledger_of(sqlite_url) as here, mover_of(sqlite_url, postgres_url, follow=True) as mover:
        await here.register("a")
        id = await here.enqueue_one(dead_letter=True)
        await here.finish("a", failed_for_good(await here.claim_one("a"), dead_letter=True))
        await mover._begin()  # pyright: ignore[reportPrivateUsage]
        await mover._copy_history()  # pyright: ignore[reportPrivateUsage]
        await here.store.retry([id])
        await here.claim_one("a")
        await mover.flip()
        return id


def test_what_is_held_here_is_not_retried_there(old: App, new: App):
    id = asyncio.run(_copied_then_claimed(old.url, new.url))
    assert new.tasks.get(id).state == "failed"
    assert not old.tasks.retry(id)
    assert new.tasks.get(id).state == "failed"


def test_a_job_on_its_way_is_shown(old: App, new: App):
    double = old.get_task("double")
    job = old.jobs.create("j", [double.prepare(n=1), double.prepare(n=2)], metadata={"k": 1})
    pack(old, new)
    assert old.jobs.get(job.id) == job
    with pytest.raises(StoreUnavailable, match="on its way"):
        old.jobs.add(job.id, double.prepare(n=3))
    move(old, new)
    assert old.jobs.get(job.id) == job


def test_keys_are_decided_where_their_holder_is(old: App, new: App):
    """`unique` holds among the unfinished tasks of both ledgers, and not a moment longer."""
    double = old.get_task("double")
    handle = double.using(unique="u").enqueue(n=1)
    once = double.using(idempotency_key="i").enqueue(n=2)
    move(old, new)
    again = double.using(unique="u").enqueue(n=3)
    assert (again.id, again.created) == (handle.id, False)
    with pytest.raises(DuplicateTask):
        double.using(unique="u", on_conflict="reject").enqueue(n=3)
    replaced = double.using(unique="u", on_conflict="replace").enqueue(n=4)
    assert (replaced.id, new.tasks.get(handle.id).arguments) == (handle.id, new.tasks.get(replaced.id).arguments)
    assert double.using(idempotency_key="i").enqueue(n=2).id == once.id
    asyncio.run(drain(new))
    assert handle.result(timeout=30) == 8, "the newer call's argument"
    third = double.using(unique="u").enqueue(n=5)
    assert third.created
    assert third.id != handle.id
    assert double.using(idempotency_key="i").enqueue(n=2).id == once.id
    assert double.using(unique="other").enqueue(n=6).created, "whose key nobody holds lands as before"


def test_a_call_with_keys_of_both_ledgers(old: App, new: App):
    double = old.get_task("double")
    moved_on = double.using(unique="a").enqueue(n=1)
    move(old, new)
    here = double.using(unique="b").enqueue(n=2)
    prepared = [double.using(unique=key).prepare(n=3) for key in ("b", "a", "c")]
    answers = asyncio.run(old._engine.enqueue(prepared))  # pyright: ignore[reportPrivateUsage]
    assert [answer.created for answer in answers] == [False, False, True]
    assert [answer.id for answer in answers[:2]] == [here.id, moved_on.id]


def test_in_a_transaction_of_ones_own_a_key_that_moved_is_refused(old: App, new: App):
    """The other database cannot take part in it."""
    double = old.get_task("double")
    double.using(unique="u").enqueue(n=1)
    move(old, new)
    connection = sqlite3.connect(sqlite_path(old.url), timeout=30)
    try:
        with pytest.raises(MovedAway, match="Nothing was written"):
            double.using(connection=connection, unique="u").enqueue(n=2)
        connection.rollback()
        made = double.using(connection=connection).enqueue(n=3)
        connection.commit()
    finally:
        connection.close()
    assert made.state() == "pending"


def test_jobs_follow(old: App, new: App):
    double, broken = old.get_task("double"), old.get_task("broken")
    job = old.jobs.create("j", [broken.prepare()])
    other = old.jobs.create("k", [double.prepare(n=1)])
    move(old, new)
    assert old.jobs.get(job.id).total == 1
    (added,) = old.jobs.add(other.id, double.prepare(n=2))
    assert new.tasks.get(added.id).job == other.id
    assert old.jobs.cancel(other.id).state == "cancelled"
    asyncio.run(drain(new))
    assert old.jobs.wait(job.id, timeout=30).state == "failed"
    assert len(old.jobs.retry_failed(job.id)) == 1
    with pytest.raises(NotFound):
        old.jobs.get(10**9)
    with pytest.raises(NotFound):
        old.jobs.cancel(10**9)
