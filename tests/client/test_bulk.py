"""app.tasks.delete and the acts by filter, app.dead_letters, app.tasks.requeue_orphaned; on both stores."""

import asyncio
import random
from contextlib import closing
from datetime import timedelta

import pytest

from headrace import App, Retry
from headrace.core.errors import ArgumentError, NotFound
from headrace.core.lanes import Lane
from headrace.core.outcome import Completed
from headrace.core.settlement import Execution, settle
from headrace.core.states import TaskState
from headrace.core.task import Ref, TaskRecord, Want, WorkerRecord
from headrace.store.base import CancelAnswer, Store
from headrace.store.blobs.base import keep, path_of
from headrace.store.removing import DeleteAnswer
from tests.client.draining import drain
from tests.client.test_one_way import own_connection


def define(app: App, name: str = "welcome", **options):
    @app.task(name=name, **options)
    async def welcome(user_id: int) -> str:
        if user_id < 0:
            raise ValueError("negative")
        return f"hello {user_id}"

    return welcome


@pytest.mark.requirement("F53")
async def test_delete(app: App):
    """F53: a task that waits and one that ended are gone from the line and from the store; an unknown one is told
    apart."""
    welcome = define(app)
    ended = await welcome.aenqueue(1)
    await drain(app)
    waits = await welcome.aenqueue(2)
    assert await app.tasks.adelete(ended.id, waits.id, 999) == {
        ended.id: DeleteAnswer.DELETED,
        waits.id: DeleteAnswer.DELETED,
        999: DeleteAnswer.UNKNOWN,
    }
    assert await app.tasks.alist() == []
    assert await drain(app) == 0
    with pytest.raises(NotFound):
        await app.tasks.aget(ended.id)


async def test_a_large_result_goes_with_its_task(store_url: str, tmp_path):
    app = App(store_url, results_url=str(tmp_path / "results"))
    try:
        handle = await define(app).aenqueue(1)
        blobs = app.blobs
        assert blobs is not None

        async def complete(store: Store) -> None:
            await register(store, "w", 30)
            (claim,) = await store.claim("w", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)])
            kept = await keep(blobs, path_of(claim.id, claim.claim_no, blobs.ledger), "x" * 1000)
            outcome = Completed(result=None, result_ref=kept)
            settlement = settle(claim, outcome, Retry(), rng=random.Random(1), execution=Execution(ran_for=0.1))
            assert (await store.finish("w", [settlement])).accepted

        await app.engine.run(complete)
        stored = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
        assert stored
        assert (await app.tasks.aget(handle.id)).result_ref is not None
        assert (await app.tasks.adelete_where(names=["welcome"]))["deleted"] == 1
        assert not any(path.exists() for path in stored)
    finally:
        await app.aclose()


@pytest.mark.requirement("F48", "F49")
async def test_retry_by_filter(app: App, monkeypatch: pytest.MonkeyPatch):
    """F48: what failed is pending again, with no attempt charged, in the retry lane; what completed is left alone.
    F49: it is no dead letter any more. More than a page of them, each once, although they fail again at once."""
    monkeypatch.setattr("headrace.client.selecting.PAGE", 20)
    welcome = define(app, retry=Retry(max_attempts=1, dead_letter=True))
    failing = await welcome.aenqueue_many({"user_id": -1} for _ in range(45))
    good = await welcome.aenqueue(1)
    await drain(app)
    assert await app.dead_letters.acount() == 45
    assert await app.tasks.aretry_where(names=["welcome"], limit=10) == {"retried": 10, "refused": 0}
    assert await app.tasks.aretry_where(dead_letter=True) == {"retried": 35, "refused": 0}
    assert await app.dead_letters.acount() == 0
    record = await app.tasks.aget(failing[0].id)
    assert (record.state, record.attempt, record.lane, record.run_no) == (TaskState.PENDING, 0, Lane.RETRY, 2)
    assert (await app.tasks.aget(good.id)).run_no == 1
    await drain(app)
    assert await app.dead_letters.acount() == 45


async def test_cancel_and_delete_by_filter(app: App):
    one, two = define(app, "one"), define(app, "two", queue="mail")
    await one.aenqueue_many({"user_id": number} for number in range(5))
    await two.aenqueue_many({"user_id": number} for number in range(3))
    cancelled = await app.tasks.acancel_where(queues=["mail"])
    assert cancelled == {**dict.fromkeys(CancelAnswer, 0), "cancelled": 3}
    store_wants = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)]
    (claim,) = await app.engine.run(lambda store: store.claim("w", store_wants))
    deleted = await app.tasks.adelete_where(names=["one", "two"])
    assert deleted == {"deleted": 7, "held": 1, "needed": 0, "unknown": 0, "changed_meanwhile": 0}
    assert [record.id for record in await app.tasks.alist()] == [claim.id]
    assert await app.tasks.acancel_where(states=["claimed"]) == {
        **dict.fromkeys(CancelAnswer, 0), "cancelling": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    "mistake",
    [
        lambda tasks: tasks.delete_where(),
        lambda tasks: tasks.cancel_where(queues=()),
        lambda tasks: tasks.retry_where(states=["running"]),
        lambda tasks: tasks.cancel_where(states=["completed"]),
        lambda tasks: tasks.delete_where(states=["gone"]),
        lambda tasks: tasks.delete_where(queues=["default"], limit=0),
    ],
)
def test_mistakes_change_nothing(sqlite_app: App, mistake):
    handle = define(sqlite_app).enqueue(1)
    with pytest.raises(ArgumentError):
        mistake(sqlite_app.tasks)
    assert sqlite_app.tasks.get(handle.id).state is TaskState.PENDING


async def test_dead_letters(app: App):
    charge = define(app, "charge", retry=Retry(max_attempts=1, dead_letter=True))
    mail = define(app, "mail", queue="mail", retry=Retry(max_attempts=1, dead_letter=True))
    first, second = await charge.aenqueue(-1), await charge.aenqueue(-2)
    third = await mail.aenqueue(-3)
    fine = await charge.aenqueue(4)
    await drain(app, queues=["default", "mail"])
    page = await app.dead_letters.alist(limit=2)
    assert len(page) == 2
    last: TaskRecord = page[-1]
    assert last.finished_at is not None
    rest = await app.dead_letters.alist(before=(last.finished_at, last.id))
    assert {record.id for record in (*page, *rest)} == {first.id, second.id, third.id}
    assert await app.dead_letters.acount(errors=["KeyError"]) == 0

    tally = await app.dead_letters.areplay(first.id, fine.id)
    assert (tally.matched, tally.changed, tally.kept) == (2, 1, [fine.id])
    assert (await app.dead_letters.adiscard(queues=["mail"])).changed == 1
    tally = await app.dead_letters.areplay(errors=["ValueError"])
    assert (tally.matched, tally.changed) == (1, 1)
    assert (await app.dead_letters.adiscard()).matched == 0
    with pytest.raises(NotFound):
        await app.tasks.aget(third.id)
    with pytest.raises(ArgumentError):
        await app.dead_letters.areplay(first.id, names=["charge"])


@pytest.mark.requirement("F50")
async def test_a_retry_by_hand_is_as_old_as_the_retry(app: App):
    """F50: a task that expired and is retried by hand is pending, although it was created longer ago than its max age
    allows, and the sweeper leaves it alone: its age counts from the retry."""
    welcome = define(app, max_age=timedelta(minutes=10), retry=Retry(dead_letter=True))
    await app.queues.apause("default")
    handle = await welcome.aenqueue(1)
    await asyncio.to_thread(age, app, handle.id)
    assert await app.engine.run(lambda store: store.expire()) == 1
    assert (await app.dead_letters.areplay()).changed == 1
    assert await app.engine.run(lambda store: store.expire()) == 0
    record = await app.tasks.aget(handle.id)
    assert record.expires_at is not None
    assert record.expires_at - record.created_at > timedelta(minutes=10)
    assert record.state is TaskState.PENDING


def age(app: App, id: int) -> None:
    """As if its time were over: nobody waits for ten minutes."""
    with closing(own_connection(app)) as connection:
        past = "0" if app.url.startswith("sqlite") else "'epoch'"
        tasks = "headrace_tasks" if app.url.startswith("sqlite") else "headrace.tasks"
        connection.execute(f"UPDATE {tasks} SET expires_at = {past} WHERE id = {id}")
        connection.commit()


async def register(store: Store, worker: str, lease: float) -> None:
    now = await store.now()
    await store.register(
        WorkerRecord(
            id=worker,
            kind="worker",
            hostname="host",
            pid=1,
            state="active",
            beat=0,
            lease=lease,
            queues=("default",),
            version="1",
            started_at=now,
            last_heartbeat=now,
            stopped_at=None,
            tasks_completed=0,
            tasks_failed=0,
        )
    )


async def held_by(app: App, worker: str, *, lease: float, started: bool) -> int:
    """A task in the hands of a worker that never beats."""
    handle = await app.get_task("welcome").aenqueue(1)

    async def claim(store: Store) -> None:
        await register(store, worker, lease)
        (claimed,) = await store.claim(worker, [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)])
        if started:
            await store.start(worker, [Ref(claimed.id, claimed.claim_no)])

    await app.engine.run(claim)
    return handle.id


@pytest.mark.requirement("F52")
async def test_orphans_are_requeued_once(app: App):
    """F52: tasks of dead workers (one had begun, one not) are pending again, each counted once over two calls at once
    and a third one; what a live worker holds, and what waits in a queue, is left alone."""
    define(app, retry=Retry(max_attempts=3))
    begun = await held_by(app, "dead-1", lease=0.2, started=True)
    taken = await held_by(app, "dead-2", lease=0.2, started=False)
    alive = await held_by(app, "alive", lease=600, started=True)
    waits = (await app.get_task("welcome").aenqueue(1)).id
    now = await app.engine.run(lambda store: store.now())
    async with asyncio.timeout(30):
        while await app.engine.run(lambda store: store.now()) - now < timedelta(seconds=0.3):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    counts = await asyncio.gather(app.tasks.arequeue_orphaned(), app.tasks.arequeue_orphaned())
    assert sum(count["requeued"] for count in counts) == 2
    assert sum(count["failed"] + count["cancelled"] for count in counts) == 0
    assert await app.tasks.arequeue_orphaned() == {"workers": 0, "requeued": 0, "failed": 0, "cancelled": 0}
    records = {id: await app.tasks.aget(id) for id in (begun, taken, alive, waits)}
    assert {id: record.state for id, record in records.items()} == {
        begun: TaskState.PENDING, taken: TaskState.PENDING, alive: TaskState.RUNNING, waits: TaskState.PENDING,
    }  # fmt: skip
    assert (records[begun].attempt, records[taken].attempt) == (1, 0)


async def test_a_worker_that_beats_again_is_no_orphan(app: App):
    """Its lease is over by the clock, as after an outage; it beats while it is watched."""
    define(app)
    task = await held_by(app, "late", lease=1.0, started=True)
    began = await app.engine.run(lambda store: store.now())
    async with asyncio.timeout(30):
        while await app.engine.run(lambda store: store.now()) - began < timedelta(seconds=1.1):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    requeued = asyncio.create_task(app.tasks.arequeue_orphaned(watch=3))
    while not requeued.done():
        assert await app.engine.run(lambda store: store.heartbeat(["late"])) == {"late"}
        await asyncio.sleep(0.2)
    assert (await requeued)["requeued"] == 0
    assert (await app.tasks.aget(task)).state is TaskState.RUNNING


async def test_a_rescue_that_was_interrupted_is_taken_up_at_once(app: App):
    """Its worker is stopped by the ledger's word: nobody needs to be watched. The last attempt fails it for good."""
    define(app, retry=Retry(max_attempts=1))
    task = await held_by(app, "gone", lease=600, started=True)
    assert await app.engine.run(lambda store: store.take_over("gone", beat=0))
    assert await app.tasks.arequeue_orphaned() == {"workers": 1, "requeued": 0, "failed": 1, "cancelled": 0}
    assert (await app.tasks.aget(task)).error_class == "headrace.WorkerLost"
