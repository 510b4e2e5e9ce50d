"""Tables as arguments and results of tasks, in workers that are other processes; and what failed jobs leave."""

import asyncio
import importlib
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headrace import App, Retry, orchestration
from headrace.core.errors import ArgumentError
from headrace.core.states import JobState, TaskState
from headrace.core.task import NewTask
from headrace.data import Data, Draft, Object, ObjectMeta, View, sweep, use
from headrace.data.sweeping import due, failed_jobs_of
from headrace.worker.options import WorkerOptions
from headrace.worker.worker import Worker

TARGET = "tests.data.application:app"


@pytest.fixture
def app(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the tasks, on the database of this test."""
    monkeypatch.setenv("HEADRACE_DATABASE_URL", sqlite_url)
    monkeypatch.delitem(sys.modules, "tests.data.application", raising=False)
    application = importlib.import_module("tests.data.application")
    orchestration.configure(application.app)
    with use(application.app):
        yield application
    orchestration.configure(None)
    application.app.close()
    monkeypatch.delitem(sys.modules, "tests.data.application", raising=False)


def work() -> None:
    """A worker that ends when nothing is left."""
    subprocess.run(
        [sys.executable, "-m", "headrace.cli", "worker", TARGET, "--children", "1", "--burst"], check=True, timeout=100
    )


def work_here(app: App) -> None:
    """The same on the loop of this process, for what needs no other one."""
    asyncio.run(asyncio.wait_for(Worker(app, options=WorkerOptions(burst=True, concurrency=4)).run(), timeout=90))


@pytest.mark.requirement("A20", "A35", "A74")
def test_tables_go_by_reference(app: Any) -> None:
    """A20: an argument that is an object and plain ones, mixed, in annotated and in bare parameters. A35: the stored
    result of a task that returns an object is its table id, found as `result_table_id`, and other results are stored as
    they are and have none. A74: a task has a slice as its argument, and reads only that (the sum)."""
    data: Data = app.app.data
    source = data.create([{"n": n} for n in range(25)])
    made = app.numbers.enqueue(30)
    twice = app.doubled.enqueue(source, label="x")
    part = app.total.enqueue(source.view(20, 10))
    bare = app.mixed.enqueue({"of": source, "plain": 1.5}, more=source)
    gone = app.total.using(retry=Retry(max_attempts=1)).enqueue(View("obj_gone", 0, 1))
    job = asyncio.run(orchestration.create_job("by path", [
        {"entrypoint": "tests.data.application.load_rows", "kwargs": {"rows": 5}},
        {"entrypoint": "tests.data.application.count_rows", "kwargs": {"table": source, "factor": 2}},
    ]))  # fmt: skip
    stored = app.app.tasks.get(part.id)
    assert stored.arguments == f'{{"part":{{"limit":10,"offset":20,"table_id":"{source.id}"}}}}'
    work()
    numbers = made.result(timeout=10)
    assert isinstance(numbers, Object)
    assert numbers.table().num_rows == 30
    meta = numbers.known()
    assert (meta.name, meta.task, meta.job, meta.owner) == ("numbers", made.id, None, data.owner)
    assert twice.result(timeout=10).table().to_pylist() == [{"n": 2 * n, "label": "x"} for n in range(25)]
    assert part.result(timeout=10) == {"rows": 5, "sum": 20 + 21 + 22 + 23 + 24}
    reference = {"table_id": source.id}
    views = [{**reference, "offset": 0, "limit": 2}]
    assert bare.result(timeout=10) == {"of": reference, "views": views, "plain": 1.5}
    assert app.app.tasks.get(made.id).result == f'{{"table_id":"{numbers.id}"}}'
    # One that is not there: the task that needs it says so.
    record = app.app.tasks.get(gone.id)
    assert (record.state, "obj_gone" in str(record.error_message)) == (TaskState.FAILED, True)
    assert "NotFound" in str(record.error_class)
    # By the functions of the specification.
    tasks = {task.name.rpartition(".")[2]: task.id for task in app.app.tasks.list(job=job.id)}
    loaded = asyncio.run(orchestration.get_task(tasks["load_rows"]))
    counted = asyncio.run(orchestration.get_task(tasks["count_rows"]))
    assert (loaded.status, loaded.result) == ("completed", {"table_id": loaded.result_table_id})
    assert data.open(str(loaded.result_table_id)).table().num_rows == 5
    assert (counted.result, counted.result_table_id) == (50, None)


def test_what_is_no_table_is_refused_at_the_call(app: Any) -> None:
    for wrong in ("tbl_1", 7, {"table_id": "obj_a", "offset": 1}, None):
        with pytest.raises(ArgumentError, match="'of'"):
            app.doubled.enqueue(wrong)
    with pytest.raises(ArgumentError, match="'part'"):
        app.total.enqueue(Object("obj_a"))
    assert app.app.tasks.list() == []


@pytest.mark.requirement("A73")
def test_what_a_failed_job_made_is_swept(app: Any) -> None:
    """A73: a worker runs a job whose task makes tables and fails; the sweep drops the temporary one, for its owner
    alone, and leaves the kept one, and those of nobody's and of living jobs."""
    data: Data = app.app.data
    foreign = data.create([{"a": 1}])
    failing = NewTask(name="tests.data.application.makes_and_fails", max_attempts=1)
    job = app.app.jobs.create("failing", [failing])
    work_here(app.app)
    assert app.app.jobs.get(job.id).state is JobState.FAILED
    assert [task.state for task in app.app.tasks.list(job=job.id)] == [TaskState.FAILED]
    made = {meta.name: meta for meta in data.list()}
    assert made["temporary"].job == made["kept"].job == job.id
    now = datetime.now(UTC)
    assert swept(data, app.app, now=now, grace=timedelta(hours=1)) == (), "who retries it at once finds them"
    assert swept(Data(data.url, owner="another ledger"), app.app, now=now, grace=timedelta(0)) == ()
    assert swept(data, app.app, now=now, grace=timedelta(0)) == (made["temporary"].id,)
    assert {meta.id for meta in data.list()} == {foreign.id, made["kept"].id}
    assert swept(data, app.app, now=now, grace=timedelta(0)) == ()
    # A retention ends: of the kept one after its hour, of the others after the days of the place.
    assert swept(data, app.app, now=now + timedelta(hours=2)) == (made["kept"].id,)
    assert swept(data, app.app, now=now + timedelta(days=6)) == ()
    assert swept(data, app.app, now=now + timedelta(days=8)) == (foreign.id,)


@pytest.mark.requirement("A73")
def test_what_a_cancelled_job_made_is_swept_and_that_of_others_stays(app: Any) -> None:
    """A73: of a cancelled job the object goes; of a job that runs, or completed, or that nobody knows, it stays."""
    data: Data = app.app.data
    waiting = NewTask(name="tests.data.application.numbers", arguments='{"rows":1}', delay=3600.0)
    cancelled = app.app.jobs.create("cancelled", [waiting])
    app.app.jobs.cancel(cancelled.id)
    running = app.app.jobs.create("running", [waiting])
    now = NewTask(name="tests.data.application.numbers", arguments='{"rows":1}')
    completed = app.app.jobs.create("completed", [now])
    work_done = {}
    for job in (cancelled.id, running.id, completed.id, 987_654):
        work_done[job] = _made_by(data, job)
    work_here(app.app)
    assert app.app.jobs.get(completed.id).state is JobState.COMPLETED
    assert swept(data, app.app, now=datetime.now(UTC) + timedelta(hours=2)) == (work_done[cancelled.id],)
    assert {work_done[running.id], work_done[completed.id], work_done[987_654]} < {meta.id for meta in data.list()}


def test_a_job_of_another_ledger_with_the_same_number_is_another_job() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    ours, theirs, nobodys = (
        ObjectMeta(id=f"obj_{owner}", created_at=now, owner=owner, job=7, rows=0, bytes=0, schema=pa.schema([]))
        for owner in ("ours", "theirs", None)
    )
    assert due([ours, theirs, nobodys], {7}, owner="ours", now=now) == [ours]
    assert due([ours, theirs, nobodys], {8}, owner="ours", now=now) == []


def _made_by(data: Data, job: int) -> str:
    """As a task of that job would have made it."""
    draft = Draft(id=data.new_id(), created_at=datetime.now(UTC), owner=data.owner, job=job, task=1)
    return data.backend.write(draft, pa.schema([("a", pa.int64())]), []).id


def swept(data: Data, app: App, *, now: datetime, grace: timedelta = timedelta(hours=1)) -> tuple[str, ...]:
    async def run() -> tuple[str, ...]:
        store = app.new_store()
        await store.open()
        try:
            return (await sweep(data, failed_jobs_of(store, now=now, grace=grace), now=now)).objects
        finally:
            await store.close()

    return asyncio.run(run())
