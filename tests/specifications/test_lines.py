"""Single sentences of the specifications, on a real worker and both stores."""

import asyncio
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headrace import App
from headrace.core.errors import ResultExpired, TaskFailed
from headrace.core.lanes import Lane
from headrace.core.states import JobState, TaskState
from headrace.core.task import NewTask, TaskRecord, Want
from headrace.orchestration import Task, create_job, get_job, get_task
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
TARGET = "tests.specifications.application:app"


@pytest.fixture
def use(store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`use("recotem")`: an app of that preset on the store, as the worker will see it too."""
    apps: list[App] = []

    def made(preset: str | None = None, **variables: str) -> App:
        from headrace import orchestration

        monkeypatch.setenv("HEADRACE_DATABASE_URL", store_url)
        monkeypatch.setenv("TEST_PRESET", preset or "")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        app = App(preset=preset)  # type: ignore[arg-type]
        app.upgrade()
        orchestration.configure(app)
        apps.append(app)
        return app

    yield made
    for app in apps:
        app.close()


def work(*flags: str) -> None:
    """Run what is there until nothing is left to do now."""
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli", "worker", TARGET, "--children", "1", "--lease", "2", "--burst", *flags],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@contextmanager
def working() -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "worker", TARGET, "--children", "1", "--lease", "1", "--grace", "1"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def named(name: str, arguments: str = "{}", **more: Any) -> NewTask:
    return NewTask(name=f"tests.specifications.application.{name}", arguments=arguments, pool="child", **more)


@pytest.mark.requirement("A1")
def test_the_work_of_one_job_is_spread_over_workers(use: Any):
    """A1: two worker processes, each with an id and a process of its own, share the tasks of one job. (Hosts differ in
    nothing but the name in that id.)"""
    app = use("aaiclick")
    job = app.jobs.create("spread", [NewTask(name="tests.specifications.application.nap") for _ in range(12)])
    work("--processes", "2", "--concurrency", "1")
    assert app.jobs.get(job.id).state is JobState.COMPLETED
    workers = {app.tasks.attempts(record.id)[0].worker for record in app.tasks.list(job=job.id)}
    assert len(workers) == 2
    assert len({worker.pid for worker in app.workers.list() if worker.id in workers}) == 2


@pytest.mark.requirement("A5")
def test_postgresql_is_the_state_store(postgres_url: str):
    """A5: after the Alembic migration the row is in PostgreSQL, written by asyncpg, and read back as a typed record."""
    import psycopg

    app = App(postgres_url, preset="aaiclick")
    app.upgrade()
    id = _put(app, named("wrong"))
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT state FROM headrace.tasks WHERE id = %s", (id,)).fetchall() == [("pending",)]
        assert connection.execute("SELECT count(*) FROM headrace.alembic_version").fetchone() == (1,)
    record = app.tasks.get(id)
    assert isinstance(record, TaskRecord)
    assert record.state is TaskState.PENDING
    assert record.created_at.tzinfo is not None
    assert "asyncpg" in sys.modules
    app.close()


@pytest.mark.requirement("R8", "R109")
def test_connection_errors_are_retried_and_nothing_else(use: Any):
    """R8: subclasses of ConnectionError and OSError are tried again, a ValueError is not. R109: the budget is three
    retries with a growing wait, and the job runs on, not failed, while a retry waits."""
    app = use("recotem")
    job = app.jobs.create(
        "search",
        [named("unreachable", '{"error":"connection","times":1}'), named("unreachable", '{"error":"os","times":1}')],
    )
    (other,) = app.jobs.add(app.jobs.create("other").id, named("wrong"))
    with working():
        wait_until(
            lambda: any(record.attempt == 1 for record in app.tasks.list(job=job.id, states=["pending"])),
            60,
            message="a retry to wait",
        )
        assert app.jobs.get(job.id).state is JobState.RUNNING
        ended = app.jobs.wait(job.id, timeout=60)
        app.tasks.handle(other.id).wait(timeout=60)
    assert ended.state is JobState.COMPLETED
    for record in app.tasks.list(job=job.id):
        assert (record.attempt, record.max_attempts) == (2, 4)
        first, second = app.tasks.attempts(record.id)
        assert (first.state, second.state) == ("failed", "succeeded")
        assert second.started_at > first.finished_at
    refused = app.tasks.get(other.id)
    assert (refused.state, refused.attempt) == (TaskState.FAILED, 1)


@pytest.mark.requirement("R111")
def test_another_error_fails_the_job_and_stays_readable(use: Any):
    """R111: the job is FAILED, the error is logged with its traceback on the attempt, the task's log lines are kept,
    and whoever waits gets the error raised again."""
    app = use("recotem")
    job = app.jobs.create("train", [named("wrong")])
    work()
    assert app.jobs.get(job.id).state is JobState.FAILED
    (record,) = app.tasks.list(job=job.id)
    (attempt,) = app.tasks.attempts(record.id)
    assert attempt.error_class == "builtins.ValueError"
    assert "this input is wrong" in (attempt.traceback or "")
    assert [line.line for line in app.tasks.logs(record.id)] == ["about to go wrong"]
    with pytest.raises(TaskFailed, match="this input is wrong"):
        app.tasks.handle(record.id).result(timeout=5)


@pytest.mark.requirement("R112")
def test_the_run_of_a_failed_job_fails_with_its_message(use: Any, tmp_path: Path):
    """R112: the hook of the failed job, run exactly once, finds the message; run and schedule are FAILED."""
    app = use("recotem")
    database = tmp_path / "domain.db"
    with sqlite3.connect(database) as connection:
        connection.executescript(
            "CREATE TABLE runs (id INTEGER PRIMARY KEY, status TEXT, error TEXT);"
            "CREATE TABLE schedules (last_run_status TEXT);"
            "CREATE TABLE hooks (id INTEGER PRIMARY KEY);"
            "INSERT INTO runs VALUES (1, 'RUNNING', NULL);"
            "INSERT INTO schedules VALUES ('RUNNING');"
        )
    hook = named("mark_run_failed", f'{{"database":"{database}","run":1,"job_name":"retrain"}}')
    app.jobs.create("retrain", [named("wrong")], on_failure=hook)
    work()
    rows = connection.execute("SELECT status, error FROM runs").fetchall()
    assert rows == [("FAILED", "this input is wrong")]
    assert connection.execute("SELECT last_run_status FROM schedules").fetchall() == [("FAILED",)]
    assert connection.execute("SELECT count(*) FROM hooks").fetchone() == (1,)
    connection.close()


@pytest.mark.requirement("A14", "A20", "A35")
def test_a_task_of_a_job_has_the_fields_of_its_specification(use: Any):
    """A14: each field by its name, with its default before the run and its instants after; tasks are found by job,
    worker and status. A20: kwargs mix references and plain JSON and arrive unchanged (the entrypoint asserts it).
    A35: an object's table id is the result; None and plain values are stored as they are."""
    use("aaiclick")
    kwargs = {
        "source": "s3",
        "input_obj": "tbl_1",
        "threshold": 0.5,
        "nested": {"table": "tbl_2", "rows": [1, None, "three"]},
    }
    base = "tests.specifications.entrypoints"
    job = asyncio.run(
        create_job(
            "fields",
            [
                {"entrypoint": f"{base}.load", "kwargs": kwargs},
                {"entrypoint": f"{base}.plain", "kwargs": {"n": 3}},
                {"entrypoint": f"{base}.nothing"},
            ],
        )
    )
    before = tasks_of(job.id)
    load = before[f"{base}.load"]
    assert (load.job_id, load.kwargs, load.status) == (job.id, kwargs, "pending")
    assert (load.retry_count, load.max_retries, load.worker_id, load.result_table_id) == (0, 3, None, None)
    assert (load.claimed_at, load.started_at, load.completed_at, load.error_message) == (None, None, None, None)
    work()
    after = tasks_of(job.id)
    load = after[f"{base}.load"]
    assert (load.status, load.result_table_id) == ("completed", "s3:tbl_1:0.5")
    assert load.created_at <= load.claimed_at <= load.started_at <= load.completed_at  # type: ignore[operator]
    assert (after[f"{base}.plain"].result, after[f"{base}.plain"].result_table_id) == ({"n": 3}, None)
    assert (after[f"{base}.nothing"].status, after[f"{base}.nothing"].result) == ("completed", None)
    assert asyncio.run(get_job(job.id)).completed_tasks == 3


def tasks_of(job: int) -> dict[str, Task]:
    from headrace.orchestration import current_app

    ids = [record.id for record in current_app().tasks.list(job=job)]
    return {task.entrypoint: task for task in (asyncio.run(get_task(id)) for id in ids)}


@pytest.mark.requirement("A57")
def test_a_job_past_its_default_timeout_is_failed_and_its_tasks_cancelled(use: Any, monkeypatch: pytest.MonkeyPatch):
    """A57: the default is a day; with JOB_DEFAULT_TIMEOUT set, a job older than that since its start is failed, the
    running task is told to stop and the waiting one cancelled."""
    assert App(preset="aaiclick").settings.job_timeout == 86_400
    app = use("aaiclick", JOB_DEFAULT_TIMEOUT="1")
    job = app.jobs.create(
        "long", [NewTask(name="tests.specifications.application.forever"), named("wrong", delay=3600.0)]
    )
    with working():
        ended = app.jobs.wait(job.id, timeout=60)
        assert (ended.state, ended.reason) == (JobState.FAILED, "job_timeout")
        wait_until(
            lambda: {record.state for record in app.tasks.list(job=job.id)} == {TaskState.CANCELLED},
            60,
            message="its tasks to be cancelled",
        )


@pytest.mark.requirement("A73")
@pytest.mark.parametrize("fate", ["failed", "cancelled"])
def test_what_a_dead_job_left_is_cleared_away(use: Any, tmp_path: Path, fate: str):
    """A73: the hook of a job that failed, and of one that was cancelled, runs and removes its folder."""
    app = use("aaiclick")
    folder = tmp_path / "scratch"
    folder.mkdir()
    hook = named("remove", f'{{"folder":"{folder}"}}')
    tasks = [named("wrong", max_attempts=1)] if fate == "failed" else [named("wrong", delay=3600.0)]
    job = app.jobs.create("scratch", tasks, on_failure=hook)
    if fate == "cancelled":
        app.jobs.cancel(job.id)
    work()
    assert app.jobs.get(job.id).state == fate
    assert not folder.exists()


@pytest.mark.requirement("F16")
def test_the_retry_ratio_is_configurable(use: Any, monkeypatch: pytest.MonkeyPatch):
    """F16: 0.3 by default, DEFAULT_RETRY_RATIO changes it, and it reaches what the worker is started with."""
    from headrace.cli.running import worker_options

    assert worker_options(App(preset="asynctaskflow").settings).retry_ratio == 0.3
    app = use("asynctaskflow", DEFAULT_RETRY_RATIO="0.4")
    assert worker_options(app.settings).retry_ratio == 0.4


@pytest.mark.requirement("F18")
def test_a_task_starts_while_its_breaker_is_closed_or_half_open_and_it_is_young(use: Any):
    """F18: closed, it runs; open, it goes back uncharged and runs once the breaker is half open; a task older than its
    age is not started at all."""
    app = use()
    breaker = "tests.specifications.application.through_the_breaker"
    closed = app.tasks.handle(_put(app, NewTask(name=breaker, arguments='{"works":true}')))
    work("--concurrency", "1")
    assert closed.result(timeout=5) == "through"
    down = [_put(app, NewTask(name=breaker, arguments='{"works":false}', max_attempts=1)) for _ in range(2)]
    late = _put(app, NewTask(name=breaker, arguments='{"works":true}', priority=-1))
    old = _put(app, NewTask(name=breaker, arguments='{"works":true}', max_age=0.001))
    with working():
        for id in (*down, late, old):
            app.tasks.handle(id).wait(timeout=60)
    assert [app.tasks.get(id).state for id in down] == [TaskState.FAILED, TaskState.FAILED]
    record = app.tasks.get(late)
    assert (record.state, record.attempt) == (TaskState.COMPLETED, 1)
    assert (app.tasks.get(old).state, app.tasks.get(old).reason) == (TaskState.FAILED, "expired")
    assert app.tasks.get(old).attempt == 0


def _put(app: App, task: NewTask) -> int:
    (answer,) = asyncio.run(app.engine.enqueue([task]))
    return answer.id


@pytest.mark.requirement("D42")
def test_no_more_run_at_once_than_the_worker_may_hold(use: Any):
    """D42: ten by default under the preset, and the number given bounds what runs: with 3 allowed and 12 waiting,
    three are running and none above."""
    assert App(preset="django_ray").settings.concurrency == 10
    app = use("django_ray", HEADRACE_CONCURRENCY="3")
    ids = [_put(app, NewTask(name="tests.specifications.application.forever")) for _ in range(12)]
    with working():
        wait_until(lambda: len(app.tasks.list(states=["running"])) == 3, 60, message="three to run")
        assert len(app.tasks.list(states=["running"])) == 3
        for id in ids:
            app.tasks.handle(id).cancel()
        for id in ids:
            app.tasks.handle(id).wait(timeout=60)


@pytest.mark.requirement("D44", "A32")
def test_an_idle_worker_asks_less_and_less_often_with_jitter():
    """D44: each empty answer doubles the pause up to the longest; two workers do not ask in step. A32: a second."""
    from headrace.worker.buffer import Buffer
    from headrace.worker.claiming import Claimer
    from headrace.worker.options import WorkerOptions

    def pauses(seed: int) -> list[float]:
        claimer = Claimer(
            store=None,  # type: ignore[arg-type]
            worker=lambda: "w",
            buffer=Buffer(retry_ratio=0.3),
            free={"coroutine": lambda: 1},
            received=lambda claims, at: None,
            poll=WorkerOptions().poll,
            busy=lambda: False,
            rng=random.Random(seed),
        )
        claimer.set_queues(["default"])
        found = []
        while len(found) < 10:
            asked = [Want(queue="default", pool="coroutine", lane=lane, n=1) for lane in Lane]
            claimer.end(asked, [], asked_at=0.0)
            found.append(claimer.next_in)
        return found

    first = pauses(1)
    assert first[0] < 0.05
    assert 0.4 < first[-1] <= 1.0
    assert max(first) <= 1.0
    assert first != pauses(2)


@pytest.mark.requirement("D45", "D48")
def test_an_import_path_runs_in_a_process_where_django_is_set_up(use: Any):
    """D45: nothing but the dotted path names the callable. D48: with DJANGO_SETTINGS_MODULE set, django.setup() has run
    before the function is imported and executed (it uses a model and the database), and its answer is the outcome."""
    use("django_ray", DJANGO_SETTINGS_MODULE="tests.specifications.django_settings")
    job = asyncio.run(create_job("django", [{"entrypoint": "tests.specifications.entrypoints.count_users"}]))
    work()
    (task,) = tasks_of(job.id).values()
    assert (task.status, task.result, task.error_message) == ("completed", 42, None)


@pytest.mark.requirement("D49")
def test_an_outcome_is_a_result_or_an_error_with_its_traceback_times_and_logs(use: Any):
    """D49: success has a result and no error; failure has class, message and traceback and no result; both have how
    long they took, and logs under the same (task, claim)."""
    app = use("django_ray")
    good = _put(app, named("unreachable", '{"error":"os","times":0}'))
    bad = _put(app, named("wrong", max_attempts=1))
    work()
    succeeded, failed = app.tasks.get(good), app.tasks.get(bad)
    assert (succeeded.state, succeeded.result, succeeded.error_class) == ("completed", "1", None)
    assert (failed.state, failed.result, failed.error_class) == ("failed", None, "builtins.ValueError")
    for id in (good, bad):
        (attempt,) = app.tasks.attempts(id)
        assert attempt.started_at <= attempt.finished_at  # type: ignore[operator]
        assert attempt.executor
    (attempt,) = app.tasks.attempts(bad)
    assert "this input is wrong" in (attempt.traceback or "")
    (line,) = app.tasks.logs(bad)
    assert (line.task, line.claim_no) == (attempt.task, attempt.claim_no)


@pytest.mark.requirement("R107")
def test_results_expire_after_seven_days_and_a_running_worker_removes_them(use: Any, store_url: str):
    """R107: the record says that the result is kept for 604800 s; once that instant has passed, a worker removes the
    result by itself and whoever asks for it is told, while the task's record stays."""
    app = use("recotem")

    @app.task(name="tests.specifications.application.unreachable")
    def unreachable(error: str, times: int) -> int:
        raise AssertionError("only the worker runs it")

    handle = unreachable.enqueue(error="os", times=0)
    work()
    record = app.tasks.get(handle.id)
    assert record.result == "1"
    assert (record.result_expires_at - record.finished_at).total_seconds() == pytest.approx(604_800, abs=1)
    _change(store_url, "result_expires_at = result_expires_at - {week}")
    with working():
        wait_until(lambda: app.tasks.get(handle.id).result is None, timeout=60)
    with pytest.raises(ResultExpired):
        handle.result(timeout=10)
    assert app.tasks.get(handle.id).state == "completed"


def _change(store_url: str, assignment: str) -> None:
    """A change to the whole of history that only time would make."""
    if store_url.startswith("sqlite"):
        with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute("UPDATE headrace_history SET " + assignment.format(week=7 * 86_400_000_000))
    else:
        with psycopg.connect(store_url) as connection:
            connection.execute("UPDATE headrace.history SET " + assignment.format(week="interval '7 days'"))  # type: ignore[arg-type]


@pytest.mark.requirement("A59")
async def test_the_pool_holds_twenty_and_may_overflow_by_forty(postgres_url: str):
    """A59: sixty connections work at once and no more; statements are not echoed."""
    app = App(postgres_url, preset="aaiclick")
    assert (app.settings.pool_size, app.settings.pool_overflow, app.settings.echo) == (20, 40, False)
    await app.aupgrade()
    store = app.new_store()
    await store.open()
    try:
        most: list[int] = []

        async def busy(connection: Any) -> None:
            rows = await connection.fetch(
                "SELECT pg_sleep(0.3), (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state = 'active')"
            )
            most.append(rows[0][1])

        await asyncio.gather(*(store._database.run(busy) for _ in range(80)))  # type: ignore[attr-defined]
        assert len(most) == 80
        assert 40 < max(most) <= 60
    finally:
        await store.close()
