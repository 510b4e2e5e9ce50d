"""Inline mode: what is enqueued has run when the enqueue returns, through everything that a worker would do."""

import asyncio
import contextvars
import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import App, Limit, Middleware, Rate, Retry, current
from headrace.core.errors import ArgumentError, RunningLoop, TaskFailed
from headrace.core.task import NewTask
from headrace.store.connect import sqlite_path
from headrace.testing import FakeClock, StillWaiting, TooManyRuns, drain, inline, override


def test_a_def_runs_on_the_very_thread_and_leaves_its_trace_in_a_ledger(shop: SimpleNamespace) -> None:
    threads: list[int] = []

    @shop.app.task(name="where")
    def where() -> None:
        threads.append(threading.get_ident())

    with inline(shop.app):
        where.enqueue()
        handle = shop.add.enqueue(1, b=2)
        assert handle.state() == "completed"
        assert handle.result() == 3
        record = shop.app.tasks.get(handle.id)
        (attempt,) = shop.app.tasks.attempts(handle.id)
        assert (record.attempt, record.arguments) == (1, '{"a":1,"b":2}')
        assert (attempt.state, attempt.executor) == ("succeeded", "inline")
        assert record.finished_at is not None
        assert shop.app.check() == []
    assert threads == [threading.get_ident()]


def test_an_async_def_runs_from_sync_code_with_its_resources(shop: SimpleNamespace) -> None:
    with inline(shop.app):
        assert shop.greet.enqueue("you").result() == "hello you"
        assert shop.greet.enqueue("me").result() == "hello me"
        (mailbox,) = shop.mailboxes  # the lifespan was entered once
        assert mailbox.sent == ["you", "me"]
        assert not mailbox.closed
        assert [line.line for line in shop.app.tasks.logs(1)] == ['greeted {"name": "you"}']
    assert mailbox.closed


def test_tasks_that_enqueue_tasks_and_wait_for_them(shop: SimpleNamespace) -> None:
    with inline(shop.app):
        assert shop.parent.enqueue(4).result() == 7 + 8
        assert shop.aparent.enqueue(5).result() == 7 + 10
    assert shop.ran == [("parent", 4), ("greet", "4"), ("add", 4, 4), ("aparent", 5), ("greet", "5"), ("add", 5, 5)]


async def test_from_async_code_tasks_run_on_the_loop_of_the_test(shop: SimpleNamespace) -> None:
    async with inline(shop.app):
        assert await (await shop.greet.aenqueue("you")) == "hello you"
        assert shop.mailboxes[0].loop is asyncio.get_running_loop()
        assert await (await shop.parent.aenqueue(4)) == 7 + 8  # a `def`, which may use the blocking forms
        assert await (await shop.aparent.aenqueue(5)) == 7 + 10
        with pytest.raises(RunningLoop):
            shop.add.enqueue(1, 2)
    assert all(mailbox.closed for mailbox in shop.mailboxes)


def test_a_mode_that_was_entered_outside_serves_several_loops(shop: SimpleNamespace) -> None:
    async def work() -> str:
        return await (await shop.greet.aenqueue("x"))

    with inline(shop.app):
        assert asyncio.run(work()) == asyncio.run(work()) == "hello x"
        # Each loop had its own lifespan, which ended with the loop at the latest.
        assert len(shop.mailboxes) == 2
        assert shop.greet.enqueue("y").result() == "hello y"
        assert len(shop.mailboxes) == 3


async def test_a_plain_with_in_async_code_leaves_the_lifespan_soon(shop: SimpleNamespace) -> None:
    with inline(shop.app):
        await shop.greet.aenqueue("x")
    for _ in range(10):
        await asyncio.sleep(0)
    assert shop.mailboxes[0].closed


async def test_concurrent_enqueues_have_each_run_when_they_return(shop: SimpleNamespace) -> None:
    async def one(n: int) -> str:
        handle = await shop.aparent.aenqueue(n)
        return await handle.astate()

    async with inline(shop.app):
        assert await asyncio.gather(*[one(n) for n in range(8)]) == ["completed"] * 8
    assert sorted(n for kind, n, *_ in shop.ran if kind == "aparent") == list(range(8))


def test_threads_may_enqueue_at_once(shop: SimpleNamespace) -> None:
    states: list[str] = []

    def one(n: int) -> None:
        states.append(shop.add.enqueue(n, n).state())

    with inline(shop.app):
        threads = [threading.Thread(target=one, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert states == ["completed"] * 6
    assert len(shop.ran) == 6


def test_arguments_are_refused_and_loaded_as_in_production(shop: SimpleNamespace) -> None:
    seen: list[Any] = []

    @shop.app.task(name="typed")
    def typed(when: datetime, numbers: tuple[int, ...], anything: Any = None) -> list[int]:
        seen.append((when, numbers, anything))
        return list(numbers)

    instant = datetime(2030, 1, 1, tzinfo=UTC)
    shared = [1, 2]
    with inline(shop.app):
        with pytest.raises(ArgumentError, match="'a'"):
            shop.add.enqueue("x", 2)
        with pytest.raises(ArgumentError, match="object"):
            typed.enqueue(instant, (1,), object())
        assert typed.enqueue(instant, (1, 2), shared).result() == [1, 2]
    ((when, numbers, anything),) = seen
    assert (when, numbers, anything) == (instant, (1, 2), [1, 2])
    assert anything is not shared  # it went through the stored text


def test_a_result_that_cannot_be_stored_fails_the_task(shop: SimpleNamespace) -> None:
    @shop.app.task(name="opaque")
    def opaque() -> Any:
        return object()

    with inline(shop.app):
        handle = opaque.enqueue()
        with pytest.raises(TaskFailed, match="PayloadError"):
            handle.result()


def test_a_task_sees_no_variable_and_no_transaction_of_its_caller(shop: SimpleNamespace) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    seen: list[Any] = []

    @shop.app.task(name="look")
    def look() -> None:
        seen.append(variable.get())
        seen.append(shop.add.enqueue(1, 2).result())

    variable.set("of the caller")
    with inline(shop.app):
        connection = sqlite3.connect(sqlite_path(shop.app.url), isolation_level=None)
        handle = look.using(run_after=60).enqueue()
        mode_clock: Any = shop.app.engine.clock
        mode_clock.advance(60)
        # What is inside the block of a transaction is only what is enqueued there, not what runs meanwhile.
        with shop.app.transaction(connection):
            handle.result()
        connection.close()
    assert seen == ["unset", 3]


def test_retries_are_decided_by_the_policy_and_their_waits_skipped(shop: SimpleNamespace) -> None:
    began = time.monotonic()
    with inline(shop.app) as mode:
        handle = shop.flaky.enqueue()
        assert handle.result() == 3
        attempts = shop.app.tasks.attempts(handle.id)
        assert sorted(attempt.state for attempt in attempts) == ["failed", "failed", "succeeded"]
        assert mode.clock is not None
        # A minute after the first, two after the second: by the clock of the ledger, not by ours.
        assert mode.clock.now() - datetime.now(UTC) > timedelta(seconds=170)
        failing = shop.flaky.enqueue(good_at=9)
        assert failing.state() == "failed"
        with pytest.raises(TaskFailed, match="ConnectionError: attempt 3"):
            failing.result()
    assert time.monotonic() - began < 60


def test_waits_can_be_left_to_the_test(shop: SimpleNamespace) -> None:
    clock = FakeClock()
    with inline(shop.app, clock=clock, with_retries=False):
        handle = shop.flaky.enqueue(good_at=2)
        assert handle.state() == "pending"
        with pytest.raises(StillWaiting, match=r"waits for its next attempt at 2030-01-01T00:01:00.*in 0:01:00"):
            handle.result()
        clock.advance(60)
        assert handle.result() == 2  # asking runs what is due


def test_what_is_scheduled_stays_until_its_time(shop: SimpleNamespace) -> None:
    clock = FakeClock()
    with inline(shop.app, clock=clock):
        handle = shop.add.using(run_after=timedelta(hours=1)).enqueue(1, 2)
        assert handle.state() == "pending"
        with pytest.raises(StillWaiting, match="waits for its time at 2030-01-01T01:00:00"):
            handle.result(timeout=5)
        clock.advance(timedelta(hours=1))
        assert drain(shop.app).completed == 1
        assert handle.result() == 3


def test_snoozes_are_not_charged(shop: SimpleNamespace) -> None:
    with inline(shop.app):
        handle = shop.sleepy.enqueue()
        assert handle.result() == "awake"
        assert shop.app.tasks.get(handle.id).attempt == 1
    assert len(shop.ran) == 3


def test_limits_of_time_hold_for_an_async_def_and_judge_a_def_when_it_returns(shop: SimpleNamespace) -> None:
    @shop.app.task(name="slow", timeout=0.05, retry=Retry(max_attempts=1))
    async def slow() -> None:
        await asyncio.sleep(30)

    @shop.app.task(name="blocking", timeout=0.01, retry=Retry(max_attempts=1))
    def blocking() -> None:
        time.sleep(0.05)

    with inline(shop.app):
        for task in (slow, blocking):
            record = task.enqueue().record()
            assert (record.state, record.reason) == ("failed", "timeout")


def test_a_failure_stays_with_the_task_unless_the_caller_wants_it(shop: SimpleNamespace) -> None:
    with inline(shop.app):
        assert shop.flaky.enqueue(good_at=9).state() == "failed"
    with inline(shop.app, raise_on_failure=True), pytest.raises(TaskFailed, match="attempt 3") as raised:
        shop.flaky.enqueue(good_at=9)
    assert "in flaky" in (raised.value.remote_traceback or "")
    assert "headrace/testing" not in (raised.value.remote_traceback or "")


class Recording(Middleware):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def enqueue(self, tasks: Sequence[NewTask]) -> AbstractContextManager[None]:
        return self._around(f"enqueue {tasks[0].name}")

    def attempt(self, context: Any) -> AbstractContextManager[None]:
        return self._around(f"attempt {context.name}")

    @contextmanager
    def _around(self, what: str) -> Generator[None]:
        self.seen.append(what)
        yield
        self.seen.append(f"end of {what}")


def test_middleware_wraps_the_write_and_the_attempt(shop: SimpleNamespace) -> None:
    middleware = Recording()
    shop.app.add_middleware(middleware)
    with inline(shop.app):
        shop.add.enqueue(1, 2)
    # The task runs after the write, not inside of it.
    assert middleware.seen == ["enqueue add", "end of enqueue add", "attempt add", "end of attempt add"]


def test_in_a_transaction_of_the_user_it_runs_once_they_have_committed(shop: SimpleNamespace) -> None:
    with inline(shop.app):
        connection = sqlite3.connect(sqlite_path(shop.app.url), isolation_level=None)
        try:
            connection.execute("BEGIN")
            with shop.app.transaction(connection):
                handle = shop.add.enqueue(1, 2)
            assert shop.ran == []
            connection.execute("COMMIT")
            assert handle.result() == 3
            connection.execute("BEGIN")
            undone = shop.add.using(connection=connection).enqueue(5, 5)
            connection.execute("ROLLBACK")
            drain(shop.app)
        finally:
            connection.close()
        assert shop.ran == [("add", 1, 2)]
        assert undone.id not in {record.id for record in shop.app.tasks.list()}


def test_bulk_enqueues_jobs_manual_retries_and_queues_that_go_on(shop: SimpleNamespace) -> None:
    app: App = shop.app
    with inline(app):
        handles = shop.add.enqueue_many([{"a": n, "b": 1} for n in range(5)])
        assert [handle.result() for handle in handles] == [1, 2, 3, 4, 5]

        job = app.jobs.create("sums", [shop.add.prepare(1, 1)], on_success=shop.greet.prepare("done"))
        assert app.jobs.get(job.id).state == "completed"
        assert ("greet", "done") in shop.ran

        failed = shop.flaky.enqueue(good_at=4)
        assert failed.state() == "failed"
        shop.ran.clear()
        app.tasks.retry(failed.id)
        assert len(shop.ran) == 3

        app.queues.pause("mail")
        waiting = shop.greet.enqueue("later")
        with pytest.raises(StillWaiting, match="queue 'mail' and was not run: is the queue paused"):
            waiting.result()
        app.queues.resume("mail")
        assert waiting.result() == "hello later"


def test_limits_and_rates_are_kept(shop: SimpleNamespace) -> None:
    inner_states: list[str] = []

    @shop.app.task(name="limited", limit=Limit(1))
    def limited(depth: int) -> None:
        if depth:
            inner_states.append(limited.enqueue(depth - 1).state())

    @shop.app.task(name="rated", rate=Rate(1, per=3600))
    def rated() -> None:
        shop.ran.append("rated")

    with inline(shop.app, with_retries=False):
        outer = limited.enqueue(1)
        # There was no room for the inner one while the outer one ran; it followed.
        assert inner_states == ["pending"]
        assert outer.state() == "completed"
        assert [record.state for record in shop.app.tasks.list()] == ["completed", "completed"]
        assert [rated.enqueue().state() for _ in range(2)] == ["completed", "pending"]
        assert shop.ran == ["rated"]


def test_unique_keys_and_cancelling(shop: SimpleNamespace) -> None:
    with inline(shop.app):
        first = shop.add.using(unique="k", run_after=60).enqueue(1, 2)
        second = shop.add.using(unique="k").enqueue(3, 4)
        assert (second.id, second.created) == (first.id, False)
        first.cancel()
        assert first.state() == "cancelled"
        assert shop.ran == []


def test_a_task_that_enqueues_itself_by_a_key_that_it_holds_is_not_waited_for(shop: SimpleNamespace) -> None:
    created: list[bool] = []

    @shop.app.task(name="again", unique="again")
    def again() -> None:
        created.append(again.enqueue().created)

    with inline(shop.app):
        assert again.enqueue().state() == "completed"
        again.enqueue()
    assert created == [False, False]


async def test_an_enqueue_that_is_cancelled_gives_its_task_back_and_hurts_nobody(shop: SimpleNamespace) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    @shop.app.task(name="long")
    async def long() -> str:
        entered.set()
        await release.wait()
        return "done"

    async with inline(shop.app):
        enqueueing = asyncio.create_task(long.aenqueue())
        await entered.wait()
        other = asyncio.create_task(shop.add.aenqueue(1, 2))
        assert await (await other) == 3
        enqueueing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await enqueueing
        (record,) = await shop.app.tasks.alist(names=["long"])
        assert (record.state, record.attempt) == ("pending", 0)
        release.set()
        assert await shop.app.tasks.handle(record.id) == "done"


def test_commands_run_as_processes(shop: SimpleNamespace) -> None:
    with inline(shop.app):
        result = shop.app.commands.submit(["echo", "hello"]).result()
        assert (result["exit_code"], result["stdout"]) == (0, "hello\n")
        assert shop.app.commands.submit(["false"]).state() == "failed"


async def test_commands_run_from_async_code(shop: SimpleNamespace) -> None:
    async with inline(shop.app):
        handle = await shop.app.commands.asubmit(["echo", "hello"])
        assert (await handle)["stdout"] == "hello\n"


def test_tasks_far_inside_each_other_are_run_by_those_outside(shop: SimpleNamespace) -> None:
    @shop.app.task(name="page")
    def page(n: int) -> None:
        shop.ran.append(n)
        if n < 60:
            page.enqueue(n + 1)

    with inline(shop.app):
        page.enqueue(1)
    assert shop.ran == list(range(1, 61))


def test_work_without_end_is_stopped(shop: SimpleNamespace) -> None:
    @shop.app.task(name="again")
    def again() -> None:
        shop.ran.append(1)
        again.enqueue()

    with inline(shop.app, limit=30), pytest.raises(TooManyRuns, match=r"30 tasks were run.*'again'"):
        again.enqueue()
    assert len(shop.ran) == 30


def test_ctrl_c_ends_the_test_and_gives_the_task_back(shop: SimpleNamespace) -> None:
    @shop.app.task(name="interrupted")
    def interrupted() -> None:
        raise KeyboardInterrupt

    with inline(shop.app):
        with pytest.raises(KeyboardInterrupt):
            interrupted.enqueue()
        (record,) = shop.app.tasks.list()
        assert (record.state, record.attempt) == ("pending", 0)


def test_progress_and_the_context_are_real(shop: SimpleNamespace) -> None:
    seen: list[Any] = []

    @shop.app.task(name="work", metadata={"tenant": "a"})
    def work() -> None:
        seen.append((current.name, current.attempt, dict(current.metadata), current.queue))
        seen.append(shop.app.tasks.get(current.task_id).state)

    with inline(shop.app):
        work.enqueue()
    assert seen == [("work", 1, {"tenant": "a"}, "default"), "running"]


def test_a_lifespan_that_fails_fails_the_enqueue_that_needed_it() -> None:
    app = App("sqlite:////nowhere/production.db")

    @app.lifespan
    async def resources() -> Any:
        raise OSError("no database here")
        yield

    @app.task(name="work")
    def work() -> None: ...

    with inline(app), pytest.raises(OSError, match="no database here"):
        work.enqueue()


def test_an_unknown_name_is_told(shop: SimpleNamespace) -> None:
    with override(shop.app):
        handle = shop.add.enqueue(1, 2)
        shop.app._tasks.pop("add")
        with (
            inline(shop.app),
            pytest.raises(StillWaiting, match=r"add\) is not defined on this app; it has aparent, fl"),
        ):
            handle.result()


def test_it_runs_on_postgres_and_ends_with_the_block(postgres_url: str) -> None:
    app = App("sqlite:////nowhere/production.db")

    @app.task(name="double")
    def double(n: int) -> int:
        return 2 * n

    with inline(app, url=postgres_url):
        assert double.enqueue(4).result() == 8

        async def on_a_loop() -> int:
            return await (await double.aenqueue(5))

        assert asyncio.run(on_a_loop()) == 10
        assert app.check() == []
    assert app.engine.inline is None
    assert app.url == "sqlite:////nowhere/production.db"


def test_a_database_of_ones_own_is_used_as_it_is(tmp_path: Path, shop: SimpleNamespace) -> None:
    url = f"sqlite:///{tmp_path}/own.db"
    for n in (1, 2):
        with inline(shop.app, url=url):
            assert shop.add.enqueue(n, n).id == n


def test_one_that_is_made_in_an_override_and_entered_after_it_has_a_database_of_its_own(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/production.db")

    @app.task(name="double")
    def double(n: int) -> int:
        return 2 * n

    with override(app) as outside:
        mode = inline(app)
        with mode:
            assert app.url == outside.url
    for _ in range(2):
        with mode:
            assert app.url not in (outside.url, f"sqlite:///{tmp_path}/production.db")
            assert double.enqueue(4).result() == 8
            assert len(app.tasks.list()) == 1
    assert not list(tmp_path.iterdir())
