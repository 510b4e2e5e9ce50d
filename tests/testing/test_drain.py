"""`drain`: everything that is ready runs, and what became of it is told."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace import App, Rate, Retry, Snooze, current
from headrace.core.clock import SystemClock
from headrace.core.errors import RunningLoop
from headrace.testing import FakeClock, NotOverridden, StillWaiting, TasksFailed, TooManyRuns, adrain, drain, override


def test_it_runs_what_waits_and_what_that_enqueues(shop: SimpleNamespace) -> None:
    with override(shop.app):

        @shop.app.task(name="chained")
        def chained(n: int) -> None:
            shop.ran.append(n)
            if n:
                chained.enqueue(n - 1)

        chained.enqueue(3)
        shop.greet.enqueue("you")
        assert shop.ran == []
        drained = drain(shop.app)
        assert (drained.runs, drained.completed, drained.failed) == (5, 5, 0)
        assert [record.name for record in drained.records] == ["chained", "greet", "chained", "chained", "chained"]
        assert drain(shop.app).runs == 0
        assert shop.mailboxes[0].closed
        assert shop.app.check() == []
        assert {worker.state for worker in shop.app.workers.list()} == {"stopped"}


async def test_from_async_code(shop: SimpleNamespace) -> None:
    async with override(shop.app):
        await shop.greet.aenqueue("you")
        await shop.add.aenqueue(1, 2)
        with pytest.raises(RunningLoop, match="await adrain"):
            drain(shop.app)
        assert (await adrain(shop.app)).completed == 2
    assert shop.mailboxes[0].closed


def test_the_better_priority_first_then_the_older(shop: SimpleNamespace) -> None:
    with override(shop.app):
        for n, priority in enumerate([0, 5, 0, 5, 9]):
            shop.add.using(priority=priority).enqueue(n, 0)
        drain(shop.app)
    assert [a for _, a, _ in shop.ran] == [4, 1, 3, 0, 2]


def test_one_queue_alone(shop: SimpleNamespace) -> None:
    with override(shop.app):
        shop.add.enqueue(1, 2)
        shop.greet.enqueue("you")
        assert drain(shop.app, queue="mail").completed == 1
        assert [kind for kind, *_ in shop.ran] == ["greet"]
        assert drain(shop.app, queue=["default", "mail"]).completed == 1


def test_many_tasks_of_many_queues(shop: SimpleNamespace) -> None:
    with override(shop.app):
        for queue in ("a", "b", "c"):
            shop.add.using(queue=queue).enqueue_many([{"a": n, "b": 0} for n in range(20)])
        shop.greet.enqueue("you")
        assert drain(shop.app).completed == 61


def test_a_failure_is_raised_with_its_traceback_once_everything_has_run(shop: SimpleNamespace) -> None:
    with override(shop.app):
        failing = shop.flaky.enqueue(good_at=2)
        shop.add.enqueue(1, 2)
        with pytest.raises(TasksFailed) as raised:
            drain(shop.app)
        text = str(raised.value)
        assert f"task {failing.id} (flaky) failed and waits for its next attempt after 1 of 3 attempts" in text
        assert "in flaky" in text
        assert "ConnectionError: attempt 1" in text
        assert "1 of 2 tasks did not succeed" in text
        assert isinstance(raised.value, AssertionError)
        assert [record.id for record in raised.value.records] == [failing.id]
        assert ("add", 1, 2) in shop.ran


def test_or_only_counted(shop: SimpleNamespace) -> None:
    with override(shop.app):
        shop.flaky.enqueue(good_at=2)
        drained = drain(shop.app, raise_on_failure=False)
        assert (drained.retrying, drained.failed, drained.completed, drained.runs) == (1, 0, 0, 1)
        assert len(drained.failures) == 1


def test_waits_after_attempts_are_skipped_when_asked(shop: SimpleNamespace) -> None:
    clock = FakeClock()
    began, started = time.monotonic(), clock.now()
    with override(shop.app, clock=clock):
        good, bad = shop.flaky.enqueue(good_at=3), shop.flaky.enqueue(good_at=9)
        later = shop.add.using(run_after=timedelta(days=1)).enqueue(1, 2)
        drained = drain(shop.app, with_retries=True, raise_on_failure=False)
        assert (drained.completed, drained.failed, drained.runs) == (1, 1, 6)
        assert [good.state(), bad.state(), later.state()] == ["completed", "failed", "pending"]
        # Sixty seconds, then twice that: the clock stands where the last attempt was due.
        assert clock.now() - started == timedelta(seconds=180)
        assert [record.finished_at for record in drained.failures] == [clock.now()]
    assert time.monotonic() - began < 60


def test_scheduled_tasks_run_at_their_time_when_asked(shop: SimpleNamespace) -> None:
    clock = FakeClock(instant=datetime(2031, 1, 1, tzinfo=UTC))
    seen: list[datetime] = []

    @shop.app.task(name="stamp")
    def stamp(again: bool = False) -> None:
        seen.append(clock.now())
        if again:
            stamp.using(run_after=timedelta(days=2)).enqueue()

    with override(shop.app, clock=clock):
        stamp.using(run_after=datetime(2031, 3, 1, tzinfo=UTC)).enqueue()
        stamp.using(run_after=timedelta(hours=1)).enqueue(again=True)
        assert drain(shop.app).runs == 0
        assert drain(shop.app, with_scheduled=True).completed == 3
    assert seen == [
        datetime(2031, 1, 1, 1, tzinfo=UTC),
        datetime(2031, 1, 3, 1, tzinfo=UTC),
        datetime(2031, 3, 1, tzinfo=UTC),
    ]


def test_without_a_fake_clock_the_hosts_is_moved_ahead(shop: SimpleNamespace) -> None:
    with override(shop.app):
        handle = shop.add.using(run_after=timedelta(days=7)).enqueue(1, 2)
        assert drain(shop.app, with_scheduled=True).completed == 1
        finished = handle.record().finished_at
        assert finished is not None
        assert finished > datetime.now(UTC) + timedelta(days=6)


def test_a_task_that_grew_too_old_expires(shop: SimpleNamespace) -> None:
    clock = FakeClock()
    with override(shop.app, clock=clock):
        handle = shop.add.using(max_age=60).enqueue(1, 2)
        clock.advance(61)
        drained = drain(shop.app, raise_on_failure=False)
        assert (drained.failed, drained.runs) == (1, 0)
        assert handle.record().reason == "expired"
        # And a retry that would come after its age is not waited for.
        late = shop.flaky.using(max_age=30).enqueue(good_at=2)
        assert drain(shop.app, with_retries=True, raise_on_failure=False).failed == 1
        assert late.record().reason == "expired"


def test_snoozes_and_rates_are_followed_like_retries(shop: SimpleNamespace) -> None:
    clock = FakeClock()

    @shop.app.task(name="poll")
    def poll() -> str | Snooze:
        shop.ran.append("poll")
        return "done" if len(shop.ran) == 3 else Snooze(60)

    @shop.app.task(name="rated", rate=Rate(1, per=600))
    def rated() -> None: ...

    with override(shop.app, clock=clock):
        handle = poll.enqueue()
        drained = drain(shop.app)
        assert (drained.waiting, drained.completed) == (1, 0)
        assert drain(shop.app, with_retries=True).completed == 1
        assert handle.result() == "done"
        rated.enqueue_many([{}, {}, {}])
        assert drain(shop.app).completed == 1
        assert drain(shop.app, with_retries=True).completed == 2


def test_work_without_end_is_stopped_and_nothing_is_left_in_hand(shop: SimpleNamespace) -> None:
    @shop.app.task(name="again")
    def again() -> None:
        again.enqueue()

    with override(shop.app):
        again.enqueue()
        with pytest.raises(TooManyRuns, match=r"7 tasks were run and there is still work"):
            drain(shop.app, limit=7)
        assert {record.state for record in shop.app.tasks.list(states=["pending", "claimed", "running"])} == {"pending"}
        assert shop.app.check() == []


def test_a_task_that_waits_for_another_gets_its_result(shop: SimpleNamespace) -> None:
    with override(shop.app):
        shop.parent.enqueue(4)
        assert drain(shop.app).completed == 3


def test_a_result_that_cannot_come_is_told_where_it_is_asked_for(shop: SimpleNamespace) -> None:
    @shop.app.task(name="impatient", retry=Retry(max_attempts=1))
    def impatient() -> None:
        shop.add.using(run_after=60).enqueue(1, 2).result()

    with override(shop.app):
        impatient.enqueue()
        with pytest.raises(TasksFailed, match=StillWaiting.__name__):
            drain(shop.app)


def test_a_name_that_the_app_does_not_define_is_told(shop: SimpleNamespace) -> None:
    other = App("sqlite:////nowhere/other.db", name="shop")

    @other.task(name="elsewhere")
    def elsewhere() -> None: ...

    with override(shop.app) as pointed, override(other, url=pointed.url, name="shop"):
        elsewhere.enqueue()
        with pytest.raises(TasksFailed, match="'elsewhere' is not defined on this app"):
            drain(shop.app, with_retries=True)
        drained = drain(shop.app, raise_on_failure=False, with_scheduled=True, with_retries=True)
        assert (drained.unknown, drained.runs, drained.waiting) == (("elsewhere",), 0, 0)
        # Given back each time, as a worker does, for one that knows it.
        assert drain(other, with_retries=True).completed == 1


def test_a_clock_that_nobody_can_move_is_told(shop: SimpleNamespace) -> None:
    with override(shop.app, clock=SystemClock()):
        shop.add.enqueue(1, 2)
        assert drain(shop.app).completed == 1
        shop.add.using(run_after=60).enqueue(1, 2)
        assert drain(shop.app).runs == 0
        with pytest.raises(TypeError, match="must be one that can be moved"):
            drain(shop.app, with_scheduled=True)


def test_the_database_of_the_app_itself_is_left_alone(tmp_path: Path) -> None:
    """Before an override and after it: what waits there is for real workers."""
    app = App(f"sqlite:///{tmp_path}/production.db")
    ran: list[int] = []

    @app.task(name="charge")
    def charge() -> None:
        ran.append(1)

    handle = charge.enqueue()
    advice = r"/production\.db; use override\(app\) or the fixture headrace_store"
    with pytest.raises(NotOverridden, match=advice):
        drain(app)
    with override(app):
        assert drain(app).runs == 0
    with pytest.raises(NotOverridden, match=advice):
        asyncio.run(adrain(app))
    assert (ran, handle.state(), app.workers.list()) == ([], "pending", [])
    with override(app, url=app.url):  # somebody says that it may be used
        assert drain(app).completed == 1
    app.close()


def test_the_advice_shows_no_password() -> None:
    with pytest.raises(NotOverridden, match=r"postgresql://ann:\*\*\*@db/shop; use") as raised:
        drain(App("postgresql://ann:secret@db/shop"))
    assert "secret" not in str(raised.value)


def test_on_postgres_with_a_fake_clock(postgres_url: str) -> None:
    clock, app = FakeClock(), App("sqlite:////nowhere/production.db")

    @app.task(name="flaky", retry=Retry(max_attempts=3, base=60, jitter=0))
    def flaky() -> int:
        if current.attempt < 3:
            raise OSError("no")
        return current.attempt

    with override(app, url=postgres_url, clock=clock):
        handle = flaky.using(run_after=timedelta(hours=1)).enqueue()
        assert drain(app).runs == 0
        assert drain(app, with_scheduled=True, with_retries=True).completed == 1
        assert handle.record().finished_at == clock.now() == FakeClock().now() + timedelta(hours=1, seconds=180)
        assert app.check() == []
