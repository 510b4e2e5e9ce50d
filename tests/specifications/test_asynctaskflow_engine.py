"""Lines of AsyncTaskFlow that are the engine's: what its Redis keys and its mover of due tasks mean on the ledger."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest

from headrace import App, Retry, current
from headrace.core.breaker import BreakerStatus
from headrace.core.errors import BreakerOpen
from headrace.core.lanes import Lane
from headrace.core.states import TaskState
from headrace.core.task import ClaimedTask, NewTask, Want
from headrace.store.base import Store
from headrace.testing import override
from headrace.testing.background import BackgroundWorker
from headrace.worker.services.upkeep import Promoter
from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template
from tests.support.waiting import eventually

SENTINEL = "a text that is nowhere else"
WANTS = [Want(queue="default", pool="coroutine", lane=lane, n=1000) for lane in Lane]


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_DATABASE_URL", raising=False)


@pytest.fixture
def app(store_url: str) -> Iterator[App]:
    made = App(store_url, preset="asynctaskflow", lease=6)
    with override(made, url=store_url):
        yield made


def run[T](app: App, act: Any) -> Any:
    return asyncio.run(app.engine.run(act))


def claimed(app: App) -> list[ClaimedTask]:
    return run(app, lambda store: store.claim("w", WANTS))


def _connected(url: str) -> Any:
    """A connection of the user's own."""
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    return psycopg.connect(url, autocommit=True)


def everywhere(url: str, text: str) -> dict[str, int]:
    """How many rows of each table hold the text, in whatever column."""
    if url.startswith("sqlite"):
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'headrace%'"
        look = "SELECT * FROM {}"
    else:
        tables = "SELECT 'headrace.' || tablename FROM pg_tables WHERE schemaname = 'headrace'"
        look = "SELECT t::text FROM {} AS t"
    found: dict[str, int] = {}
    with closing(_connected(url)) as connection:
        for (table,) in connection.execute(tables).fetchall():
            rows = connection.execute(look.format(table)).fetchall()
            if n := sum(text in repr(row) for row in rows):
                found[table.removeprefix("headrace").lstrip("._")] = n
    return found


# --- one record, one way ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("F45")
@pytest.mark.parametrize("fate", ["commit", "rollback"])
def test_record_and_queue_entry_are_one_write(app: App, fate: str):
    """F45: until the commit nobody sees the record and no worker can take it; after the commit both, after a rollback
    neither. There is no moment with one of them."""

    @app.task(name="text")
    async def text(content: str) -> None: ...

    with closing(_connected(app.url)) as connection:
        connection.execute("BEGIN")
        with app.transaction(connection):
            handle = text.enqueue(content=SENTINEL)
        if not app.url.startswith("sqlite"):  # there a claim would wait for this very transaction
            assert claimed(app) == []
        assert app.tasks.list() == []
        connection.execute(fate.upper())
    records, claims = app.tasks.list(), claimed(app)
    expected = [handle.id] if fate == "commit" else []
    assert [record.id for record in records] == expected
    assert [claim.id for claim in claims] == expected


@pytest.mark.requirement("F46", "F63")
def test_a_task_is_one_row_and_is_dispatched_by_it_alone(app: App):
    """F63: what was enqueued is in one row of one table while it waits, while it runs and after: queues hold no copy.
    F46: being claimed takes it out of every queue, since there is nothing else to take: of many that claim at once,
    one gets it, and afterwards nothing is left to dispatch."""

    @app.task(name="text")
    async def text(content: str) -> None: ...

    text.enqueue(content=SENTINEL)
    assert everywhere(app.url, SENTINEL) == {"tasks": 1}

    async def race(store: Store) -> list[list[ClaimedTask]]:
        return list(await asyncio.gather(*[store.claim(f"w{n}", WANTS) for n in range(8)]))

    hands = run(app, race)
    assert sorted(len(hand) for hand in hands) == [0] * 7 + [1]
    assert everywhere(app.url, SENTINEL) == {"tasks": 1}
    assert claimed(app) == []


@pytest.mark.requirement("F46")
def test_two_workers_run_each_task_once(app: App):
    """F46: forty tasks, two workers that both look for work: forty executions."""
    ran: list[int] = []
    lock = threading.Lock()

    @app.task(name="note")
    async def note(n: int) -> None:
        with lock:
            ran.append(n)

    with BackgroundWorker(app), BackgroundWorker(app):
        handles = note.enqueue_many([{"n": n} for n in range(40)])
        for handle in handles:
            handle.wait(timeout=60)
    assert sorted(ran) == list(range(40))


@pytest.mark.requirement("F64")
def test_the_dead_are_listed_with_their_details_and_are_no_copies(app: App):
    """F64: a dead task is in the list of the dead with its error; it is the same record (its text is in one row of one
    table), and it leaves the list when it is retried."""

    @app.task(name="text", retry=Retry(max_attempts=1, dead_letter=True))
    async def text(content: str) -> None:
        raise ValueError("this content cannot be read")

    with BackgroundWorker(app):
        handle = text.enqueue(content=SENTINEL)
        handle.wait(timeout=60)
    (dead,) = app.tasks.list(dead_letter=True)
    assert (dead.id, dead.error_message) == (handle.id, "this content cannot be read")
    assert (dead.error_class or "").endswith("ValueError")
    assert everywhere(app.url, SENTINEL) == {"history": 1}
    app.tasks.retry(handle.id)
    assert app.tasks.list(dead_letter=True) == []
    assert everywhere(app.url, SENTINEL) == {"tasks": 1}


@pytest.mark.requirement("F65")
def test_depths_and_states_are_figures_of_the_ledger(app: App):
    """F65: depths by queue and counts by state without a key of their own: they are right at once, with no step that
    could be forgotten."""

    @app.task(name="text")
    async def text(n: int) -> None: ...

    text.enqueue_many([{"n": n} for n in range(5)])
    text.using(queue="mail", run_after=3600).enqueue(n=0)
    depths = {queue.name: {name: n for name, n in queue.depths.items() if n} for queue in app.queues.list()}
    assert depths == {"default": {"primary": 5}, "mail": {"scheduled": 1}}
    assert app.tasks.counts() == {"pending": 6}
    run(app, lambda store: store.claim("w", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=2)]))
    assert app.tasks.counts() == {"pending": 4, "claimed": 2}


@pytest.mark.requirement("F66")
def test_tasks_and_results_are_in_one_place(store_url: str, monkeypatch: pytest.MonkeyPatch):
    """F66: one URL is broker and result backend: whoever has it and nothing else, with Redis or without, enqueues,
    works and reads the result. A REDIS_URL of the environment where nothing listens is no hindrance."""
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1/0")

    def made() -> App:
        app = App(store_url, preset="asynctaskflow")

        @app.task(name="double")
        async def double(n: int) -> int:
            return 2 * n

        return app

    sender, worker, reader = made(), made(), made()
    with override(sender, url=store_url), override(worker, url=store_url), override(reader, url=store_url):
        handle = sender.get_task("double").enqueue(n=21)
        with BackgroundWorker(worker):
            assert reader.tasks.handle(handle.id).result(timeout=60) == 42


# --- the mover of due tasks -------------------------------------------------------------------------------------------


@pytest.mark.requirement("F59")
async def test_what_is_due_is_looked_for_each_second(app: App):
    """F59: the promoter comes again after a second at most, whatever waits, sooner for what is due sooner, and makes
    ready what is due."""
    store = app.new_store()
    await store.open()
    try:
        pokes: list[None] = []
        promoter = Promoter(store=store, poke=lambda: pokes.append(None))
        assert await promoter.run_once() == 1.0
        await store.enqueue([NewTask(name="later", delay=3600.0)])
        assert await promoter.run_once() == 1.0
        (soon,) = await store.enqueue([NewTask(name="soon", delay=0.3)])
        assert await promoter.run_once() <= 0.31

        async def moved() -> bool:
            await promoter.run_once()
            return any(queue.depths["primary"] for queue in await store.queues())

        await eventually(moved)
        assert pokes
        assert [claim.id for claim in await store.claim("w", WANTS)] == [soon.id]
    finally:
        await store.close()


@pytest.mark.requirement("F59", "F62", "F11")
def test_an_idle_worker_finds_what_comes_due_and_what_grows_old(app: App):
    """F59, F11: a retry that comes due is found and run by a worker that has nothing else to wake it. F62: a task of a
    paused queue, which nobody picks, is a dead letter when its age is over."""

    @app.task(name="once_more", retry=Retry(max_attempts=2, backoff="fixed", base=0.3, jitter=0.0))
    async def once_more() -> int:
        if current.attempt == 1:
            raise ConnectionError("the first is lost")
        return current.attempt

    @app.task(name="old", queue="paused", max_age=0.2)
    async def old() -> None: ...

    app.queues.pause("paused")
    with BackgroundWorker(app):
        handle, aged = once_more.enqueue(), old.enqueue()
        assert handle.result(timeout=60) == 2
        assert aged.wait(timeout=60) is TaskState.FAILED
    assert app.tasks.get(handle.id).lane is Lane.RETRY
    record = app.tasks.get(aged.id)
    assert (record.reason, record.dead_letter, record.attempt) == ("expired", True, 0)


# --- the breaker ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("F34", "F41", "F69")
async def test_a_breaker_counts_what_coroutines_came_to(sqlite_url: str, monkeypatch: pytest.MonkeyPatch):
    """F41: ten calls that fail after they were awaited open it (making the coroutine is no success). F34: the breaker
    of another service stays CLOSED. F69: the thresholds of the environment are those that it goes by."""
    monkeypatch.setenv("CIRCUIT_VOLUME_THRESHOLD", "4")
    monkeypatch.setenv("CIRCUIT_FAILURE_THRESHOLD", "0.75")
    app = App(sqlite_url, preset="asynctaskflow")
    breaker, other = app.breaker("openrouter"), app.breaker("another")

    async def call(*, works: bool) -> None:
        async with breaker.call():
            await asyncio.sleep(0)
            if not works:
                raise ConnectionError("down")

    await call(works=True)
    for _ in range(2):
        with suppress(ConnectionError):
            await call(works=False)
    assert breaker.status is BreakerStatus.CLOSED
    with suppress(ConnectionError):
        await call(works=False)
    assert breaker.status is BreakerStatus.OPEN
    assert other.status is BreakerStatus.CLOSED
    with pytest.raises(BreakerOpen):
        await call(works=True)
    await app.aclose()
