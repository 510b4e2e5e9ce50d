"""Steps, sleeps, waits and calls on real ledgers: what is stored, what goes on, what is charged."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from headrace import App, Context, Retry, current, injected
from headrace.client.durable import DurableLedger
from headrace.core.errors import (
    ArgumentError,
    DurableError,
    LeaseLost,
    NoCurrentTask,
    TaskCancelled,
    TaskFailed,
    WaitTimeout,
)
from headrace.core.lanes import Lane
from headrace.core.states import AttemptState, JobState, TaskState
from headrace.core.task import Want
from headrace.store.connect import sqlite_path
from headrace.testing import drain, inline, override
from headrace.testing.background import BackgroundWorker
from headrace.worker.options import WorkerOptions
from headrace.worker.worker import worker_record
from tests.support.waiting import wait_until

ONCE = Retry(max_attempts=1)  # a charge would fail the task


@pytest.fixture
def app(store_url: str) -> Iterator[App]:
    made = App(store_url)
    with override(made, url=store_url):
        yield made
    made.close()


@pytest.fixture
def sqlite_app(sqlite_url: str) -> Iterator[App]:
    """For what does not depend on the store."""
    made = App(sqlite_url)
    with override(made, url=sqlite_url):
        yield made
    made.close()


@contextlib.contextmanager
def own_connection(url: str) -> Iterator[Any]:
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(sqlite_path(url), autocommit=False)) as connection:
            yield connection
    else:
        with psycopg.connect(url) as connection:
            yield connection


def suspensions(app: App, task: int) -> int:
    states = [attempt.state for attempt in app.tasks.attempts(task)]
    assert states[-1] is AttemptState.SUCCEEDED
    assert set(states[:-1]) <= {AttemptState.SUSPENDED}
    return len(states) - 1


def stored(app: App, task: int) -> dict[str, str]:
    return asyncio.run(app.engine.run(lambda store: store.checkpoints(task)))


# --- going on ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["async def", "def"])
def test_a_task_goes_on_where_it_gave_its_slot_back(app: App, kind: str) -> None:
    ran: list[str] = []

    def work(word: str) -> str:
        ran.append(word)
        return word.upper()

    @app.task(name="child", retry=ONCE)
    async def child(n: int) -> int:
        return 2 * n

    @app.task(retry=ONCE, name="parent")
    async def waits() -> list[Any]:
        first = await current.step("first", work, "a")
        await current.sleep(timedelta(days=30))
        called = await current.call(child.s(21))
        return [first, called, await current.step("last", work, "b"), current.attempt]

    @app.task(retry=ONCE, name="blocking parent")
    def blocks() -> list[Any]:
        first = current.step("first", work, "a")
        current.sleep(timedelta(days=30))
        called = current.call(child.s(21))
        return [first, called, current.step("last", work, "b"), current.attempt]

    with inline(app):
        handle = (waits if kind == "async def" else blocks).enqueue()
        assert handle.result() == ["A", 42, "B", 1]
    assert ran == ["a", "b"]
    assert suspensions(app, handle.id) == 2
    assert handle.record().attempt == 1
    assert set(stored(app, handle.id)) == {"first", "sleep:1", "call:1", "call:1/ended", "last"}
    assert app.check() == []


def test_a_failed_attempt_does_not_do_its_steps_again(sqlite_app: App) -> None:
    app = sqlite_app
    ran: list[int] = []

    @app.task(name="flaky", retry=Retry(max_attempts=3, backoff="fixed", base=0, jitter=0))
    def flaky() -> int:
        total = sum(current.step(f"step {n}", lambda n=n: ran.append(n) or n) for n in range(3))
        if current.attempt < 3:
            raise ConnectionError("after the steps")
        return total

    with inline(app):
        handle = flaky.enqueue()
        assert handle.result() == 3
    assert ran == [0, 1, 2]
    assert handle.record().attempt == 3


def test_an_injected_context_makes_the_same_calls(sqlite_app: App) -> None:
    app = sqlite_app

    @app.task(name="told")
    def told(context: Context = injected) -> int:
        return context.step("one", lambda: 1)

    with inline(app):
        assert told.enqueue().result() == 1


def test_a_retry_by_hand_goes_on_from_the_steps(app: App) -> None:
    ran: list[str] = []
    broken = [True]

    @app.task(name="pay", retry=ONCE)
    def pay() -> str:
        receipt = current.step("charge", lambda: ran.append("charge") or "r-1")
        if broken[0]:
            raise ConnectionError("the printer")
        return receipt

    with inline(app):
        handle = pay.enqueue()
        assert handle.state() is TaskState.FAILED
        broken[0] = False
        app.tasks.retry(handle.id)
        assert handle.result() == "r-1"
    assert ran == ["charge"]


# --- events -----------------------------------------------------------------------------------------------------------


def waiter(app: App) -> Any:
    @app.task(name="wait_for_payment", retry=ONCE)
    async def wait_for_payment(order: str, timeout: float | None = None) -> Any:
        try:
            return await current.wait("paid", order, timeout=timeout)
        except WaitTimeout as late:
            return str(late)

    return wait_for_payment


def test_an_event_may_come_before_or_after_the_wait(app: App) -> None:
    task = waiter(app)
    with inline(app):
        after = task.enqueue("o-1")
        assert (after.state(), after.record().waiting_on) == (TaskState.BLOCKED, "event:paid/o-1")
        app.send("paid", "o-2", "another's")
        assert after.state() is TaskState.BLOCKED
        app.send("paid", "o-1", {"amount": 5})
        assert after.result() == {"amount": 5}
        assert after.record().attempt == 1

    first = task.enqueue("o-3")
    app.send("paid", "o-3", [1, None, "é"])
    drain(app)
    assert first.result() == [1, None, "é"]
    assert suspensions(app, first.id) == 0, "it was there before it was waited for"


def test_each_wait_takes_an_event_of_its_own_and_keeps_it(app: App) -> None:
    @app.task(name="two", retry=ONCE)
    async def two() -> list[Any]:
        one = await current.wait("tick")
        await current.sleep(1)
        return [one, await current.wait("tick")]

    with inline(app):
        handle = two.enqueue()
        app.send("tick", payload="first")
        assert handle.state() is TaskState.BLOCKED
        app.send("tick", payload="second")
        assert handle.result() == ["first", "second"]


def test_a_wait_that_is_over_stays_over(app: App) -> None:
    @app.task(name="patient", retry=ONCE)
    async def patient() -> str:
        try:
            await current.wait("paid", "o-1", timeout=60)
        except WaitTimeout:
            await current.sleep(3600)
            return "late"
        return "paid"

    handle = patient.enqueue()
    drain(app)
    assert handle.state() is TaskState.BLOCKED
    clock: Any = app.engine.clock
    clock.advance(61)
    drain(app)
    app.send("paid", "o-1", None)  # too late
    drain(app, with_retries=True)
    assert handle.result() == "late"
    assert handle.record().attempt == 1


def test_a_wait_ends_by_the_clock_of_the_store(app: App) -> None:
    task = waiter(app)
    with BackgroundWorker(app):
        said = task.enqueue("o-1", timeout=0.2).result(timeout=60)
    assert said.endswith("the event 'paid' with the key 'o-1' did not come within 0.2 s")


@pytest.mark.parametrize("commit", [True, False])
def test_an_event_of_your_own_transaction(app: App, store_url: str, commit: bool) -> None:
    handle = waiter(app).enqueue("o-1")
    drain(app)
    with own_connection(store_url) as connection:
        with app.transaction(connection):
            app.send("paid", "o-1", 7)
        (connection.commit if commit else connection.rollback)()
    drain(app)
    if commit:
        assert handle.result() == 7
    else:
        assert handle.state() is TaskState.BLOCKED


def test_a_worker_resumes_what_a_transaction_sent(app: App, store_url: str) -> None:
    task = waiter(app)
    with BackgroundWorker(app):
        handle = task.enqueue("o-1")
        wait_until(lambda: handle.state() is TaskState.BLOCKED)
        with own_connection(store_url) as connection:
            with app.transaction(connection):
                app.send("paid", "o-1", "soon")
            connection.commit()
        assert handle.result(timeout=60) == "soon"


@pytest.mark.parametrize(
    ("event", "key", "payload"), [("", "k", 1), ("e" * 201, "k", 1), ("e", "k\0", 1), ("e", 7, 1), ("e", "k", {1, 2})]
)
def test_an_event_that_cannot_be_is_refused(sqlite_app: App, event: Any, key: Any, payload: Any) -> None:
    app = sqlite_app
    with pytest.raises((ArgumentError, ValueError)):
        app.send(event, key, payload)
    with pytest.raises(ValueError, match="1,048,576 are the most"):
        app.send("e", "k", "x" * 1_100_000)


# --- calls ------------------------------------------------------------------------------------------------------------


def test_a_childs_failure_is_raised_and_may_be_caught(app: App) -> None:
    @app.task(name="boom", retry=ONCE)
    def boom() -> None:
        raise LookupError("no such thing")

    @app.task(name="catches", retry=ONCE)
    async def catches() -> list[str]:
        try:
            await current.call(boom.s())
        except TaskFailed as failed:
            await current.sleep(60)  # the failure is the same when it goes on
            return [str(failed.error_class), str("LookupError: no such thing" in (failed.remote_traceback or ""))]
        return []

    @app.task(name="raises", retry=ONCE)
    async def raises() -> None:
        await current.call(boom.s())

    with inline(app):
        assert catches.enqueue().result() == ["builtins.LookupError", "True"]
        with pytest.raises(TaskFailed, match=r"TaskFailed: task .* no such thing"):
            raises.enqueue().result()


def test_a_cancelled_child_is_told_apart(app: App) -> None:
    @app.task(name="never")
    async def never() -> None: ...

    @app.task(name="calls", retry=ONCE)
    async def calls() -> str:
        try:
            await current.call(never.using(run_after=3600).s())
        except TaskCancelled as cancelled:
            return str(cancelled.reason)
        return "ended"

    handle = calls.enqueue()
    drain(app)
    (child,) = [record for record in app.tasks.list(limit=10) if record.name.endswith("never")]
    app.tasks.cancel(child.id)
    drain(app)
    assert handle.result() == "user"


def test_in_a_job_a_child_belongs_to_it_and_its_failure_is_the_callers(app: App) -> None:
    @app.task(name="boom", retry=ONCE)
    async def boom() -> None:
        raise LookupError("no")

    @app.task(name="catches", retry=ONCE)
    async def catches() -> str:
        try:
            await current.call(boom.s())
        except TaskFailed:
            return "handled"
        return "?"

    with inline(app):
        job = catches.s().enqueue(name="called")
        record = app.jobs.get(job.id)
    assert (record.state, record.total, record.completed, record.failed) == (JobState.COMPLETED, 2, 1, 1)


def test_what_is_no_call_is_refused(sqlite_app: App) -> None:
    app = sqlite_app

    @app.task(name="calls", retry=ONCE)
    async def calls(what: str) -> None:
        await current.call({"task": calls, "text": "calls"}[what])

    with inline(app):
        for what in ("task", "text"):
            with pytest.raises(TaskFailed, match=r"current\.call takes a signature"):
                calls.enqueue(what).result()


# --- ending -----------------------------------------------------------------------------------------------------------


def test_what_waits_is_cancelled_and_runs_no_more(app: App) -> None:
    ran: list[int] = []

    @app.task(name="waits")
    async def waits() -> None:
        ran.append(1)
        await current.wait("never")

    handle = waits.enqueue()
    drain(app)
    assert str(handle.cancel()) == "cancelled"
    app.send("never")
    drain(app)
    assert handle.state() is TaskState.CANCELLED
    assert ran == [1]
    assert app.check() == []


def test_a_suspension_that_is_caught_fails_the_task_for_good(sqlite_app: App) -> None:
    app = sqlite_app

    @app.task(name="catches")
    async def catches() -> str:
        with contextlib.suppress(BaseException):
            await current.sleep(60)
        return "went on"

    with inline(app), pytest.raises(TaskFailed, match="caught what 'sleep:1' raises") as failed:
        catches.enqueue().result()
    assert failed.value.error_class == "headrace.DurableError"
    assert issubclass(DurableError, RuntimeError)


async def test_an_attempt_that_lost_its_task_stores_nothing(store_url: str) -> None:
    """The fence: a late worker's step is refused, and the value of the one that holds the task stands."""
    app = App(store_url)

    @app.task(name="task")
    def task() -> None: ...

    store = app.new_store()
    await store.open()
    try:
        for worker in ("one", "two"):
            await store.register(worker_record(worker, WorkerOptions(lease=60.0)))
        handle = await task.aenqueue()
        want = [Want(queue="default", pool="child", lane=Lane.PRIMARY, n=1)]
        (claim,) = await store.claim("one", want)
        late = DurableLedger(app.engine, claim, "one")
        assert await late.save("charge", '"first"') == '"first"'
        assert await store.deregister("one") == 1
        (again,) = await store.claim("two", want)
        holder = DurableLedger(app.engine, again, "two")
        with pytest.raises(LeaseLost, match=f"task {handle.id}: 'charge' was not stored"):
            await late.save("charge", '"late"')
        with pytest.raises(LeaseLost):
            await late.receive("wait:1", event="e", key="", timeout=None)
        with pytest.raises(LeaseLost):
            await late.spawn("call:1", task.s())
        assert await holder.save("charge", '"second"') == '"first"', "once stored, it stands"
        assert dict(await holder.checkpoints()) == {"charge": '"first"'}
    finally:
        await store.close()
        await app.aclose()


class Reversed:
    name = "reversed/1"

    def encode(self, text: str, /) -> str:
        return text[::-1]

    def decode(self, text: str, /) -> str:
        return text[::-1]


def test_what_an_apps_codec_hides_is_hidden_in_steps_and_events(sqlite_url: str) -> None:
    app = App(sqlite_url, codec=Reversed())

    @app.task(name="child", retry=ONCE)
    async def child(text: str) -> str:
        return text + "!"

    @app.task(name="parent", retry=ONCE)
    async def parent() -> list[Any]:
        first = await current.step("first", lambda: "a secret")
        await current.sleep(60)
        return [first, await current.call(child.s("a secret")), await current.wait("said", timeout=600)]

    with override(app, url=sqlite_url), inline(app):
        handle = parent.enqueue()
        app.send("said", payload={"said": "a secret"})
        assert handle.result() == ["a secret", "a secret!", {"said": "a secret"}]
        kept = stored(app, handle.id)
        assert set(kept) == {"first", "sleep:1", "call:1", "call:1/ended", "wait:1"}
        assert "a secret" not in str(kept)
        assert "terces a" in kept["first"]
    app.close()


# --- the job of the running task --------------------------------------------------------------------------------------


@pytest.mark.requirement("A2", "A26", "A27", "A34")
def test_a_job_is_not_over_before_what_its_last_task_added(app: App) -> None:
    """A2, A26: each task adds the next as its last act, and the job completes after all of them, never between two.
    A34: each knows its job. A27: outside of a task there is no current job, and that is said."""
    deep, seen = 12, list[tuple[int, JobState]]()
    ended: list[JobState] = []
    hooks: list[str] = []

    @app.task(name="done")
    def done() -> None:
        hooks.append("done")

    @app.task(name="grow", retry=ONCE)
    async def grow(left: int) -> int:
        seen.append((left, (await current.job.record()).state))
        if left:
            await current.job.add(grow.s(left - 1))
        return current.job_id or 0

    @app.task(name="grow_blocking", retry=ONCE)
    def grow_blocking(left: int) -> int:
        if left:
            current.job.add(grow_blocking.s(left - 1), grow.s(0))
        return left

    with BackgroundWorker(app):
        job = grow.s(deep).enqueue(name="grows", on_success=done.si())
        stop = threading.Event()

        def watch() -> None:
            while not stop.is_set():
                ended.append(app.jobs.get(job.id).state)

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            record = app.jobs.wait(job.id, timeout=60)
        finally:
            stop.set()
            watching.join()
        assert (record.state, record.total, record.completed) == (JobState.COMPLETED, deep + 1, deep + 1)
        wait_until(lambda: hooks)
        other = grow_blocking.s(4).enqueue(name="grows in threads")
        record = app.jobs.wait(other.id, timeout=60)
        assert (record.state, record.total) == (JobState.COMPLETED, 9)
    assert [left for left, _ in seen if left] == list(range(deep, 0, -1))
    assert {state for _, state in seen} == {JobState.RUNNING}
    assert ended == sorted(ended, key=lambda state: state.terminal), "once it had ended, it was open again"
    assert hooks == ["done"]
    with pytest.raises(NoCurrentTask, match="inside a task"):
        _ = current.job
    # A test's clock is told to a session before its statement, which may wait: instants are not what is asked here.
    assert [violation for violation in app.check() if "lies before" not in violation.detail] == []


def test_a_task_of_no_job_says_so(sqlite_app: App) -> None:
    app = sqlite_app

    @app.task(name="alone", retry=ONCE)
    def alone() -> None:
        current.job.add(alone.s())

    with inline(app), pytest.raises(TaskFailed, match=r"task \d+ \(.*alone\) belongs to none"):
        alone.enqueue().result()
