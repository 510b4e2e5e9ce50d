"""The functions of the orchestration specification, by its names, on both stores."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from headrace import App, orchestration
from headrace.core.errors import (
    ArgumentError,
    EntrypointError,
    NoCurrentTask,
    NotFound,
    StoreUnavailable,
    TaskFailed,
    WrongState,
)
from headrace.core.states import JobState, TaskState
from headrace.orchestration import (
    Context,
    add_task_to_current_job,
    add_task_to_job,
    cancel_job,
    configure,
    create_job,
    deregister_worker,
    get_current_job_id,
    get_job,
    get_task,
    list_jobs,
    list_workers,
    register_worker,
    retry_failed_tasks,
    worker_heartbeat,
)
from tests.client.draining import drain

HERE = "tests.client.sample_entrypoints"


@pytest.fixture(autouse=True)
def configured(app: App) -> Iterator[None]:
    configure(app)
    yield
    configure(None)


@pytest.mark.requirement("A25")
async def test_create_job_is_atomic(app: App):
    """A25: job and tasks together; a spec that cannot be leaves neither."""
    job = await create_job(
        "import",
        tasks=[
            {"entrypoint": f"{HERE}.double", "kwargs": {"number": 1}},
            {"entrypoint": f"{HERE}.double_later", "kwargs": {"number": 2}, "max_retries": 1},
        ],
        description="two of them",
    )
    assert (job.name, job.description, job.status, job.total_tasks) == ("import", "two of them", JobState.PENDING, 2)
    records = sorted(await app.tasks.alist(job=job.id), key=lambda record: record.arguments)
    assert [record.arguments for record in records] == ['{"number":1}', '{"number":2}']
    assert [record.max_attempts for record in records] == [4, 2]
    for bad in ({"kwargs": {}}, {"entrypoint": "x.y", "colour": 1}, {"entrypoint": "x.y", "kwargs": {"a": object()}}):
        with pytest.raises(ArgumentError):
            await create_job("bad", tasks=[{"entrypoint": f"{HERE}.double", "kwargs": {"number": 1}}, bad])
    assert [found.name for found in await list_jobs()] == ["import"]
    assert len(await app.tasks.alist()) == 2


@pytest.mark.requirement("A43", "A44")
async def test_progress_and_lists(app: App):
    """A43: the four functions, with list_jobs(status=). A44: get_job gives status and completed_tasks / total_tasks."""
    job = await create_job("one", [{"entrypoint": f"{HERE}.double", "kwargs": {"number": n}} for n in range(4)])
    other = await create_job("two", [{"entrypoint": f"{HERE}.double", "kwargs": {"number": 1}}])
    assert (await get_job(job.id)).progress == 0
    await cancel_job(other.id)
    assert [found.id for found in await list_jobs(status="cancelled")] == [other.id]
    assert [found.id for found in await list_jobs(status=JobState.PENDING)] == [job.id]
    await drain(app)
    done = await get_job(job.id)
    assert (done.status, done.completed_tasks, done.total_tasks, done.progress) == (JobState.COMPLETED, 4, 4, 1.0)
    assert {found.id for found in await list_jobs()} == {job.id, other.id}
    with pytest.raises(ValueError, match="sleeping"):
        await list_jobs(status="sleeping")


async def test_sync_and_async_entrypoints_and_their_types(app: App):
    job = await create_job(
        "kinds",
        [
            {"entrypoint": f"{HERE}.double", "kwargs": {"number": 4}},
            {"entrypoint": f"{HERE}.double_later", "kwargs": {"number": 5}},
            {"entrypoint": f"{HERE}.when", "kwargs": {"at": "2031-01-01T00:00:00Z"}},
        ],
    )
    await drain(app)
    results = {record.name: record.result for record in await app.tasks.alist(job=job.id)}
    assert results == {f"{HERE}.double": "8", f"{HERE}.double_later": "10", f"{HERE}.when": "2031"}


@pytest.mark.requirement("A2", "A26", "A32", "A34")
async def test_a_task_adds_to_its_own_job_and_knows_it(app: App):
    """A26: three tasks more, in the same job, which ends after them; another job gets none. A34: get_current_job_id
    inside a task. A32: it runs in the context of its job.
    """
    other = await create_job("other", [{"entrypoint": f"{HERE}.double", "kwargs": {"number": 1}}])
    job = await create_job(
        "grows",
        [{"entrypoint": f"{HERE}.fan_out", "kwargs": {"count": 3}}, {"entrypoint": f"{HERE}.job_id"}],
    )
    assert await drain(app) == 6
    assert (await get_job(other.id)).total_tasks == 1
    done = await get_job(job.id)
    assert (done.status, done.completed_tasks, done.total_tasks) == (JobState.COMPLETED, 5, 5)
    records = await app.tasks.alist(job=job.id)
    assert {record.result for record in records if record.name == f"{HERE}.job_id"} == {str(job.id)}
    with Context(job_id=job.id):
        assert get_current_job_id() == job.id
    async with Context(job_id=7) as context:
        assert (get_current_job_id(), context.job_id) == (7, 7)


@pytest.mark.requirement("A27")
async def test_outside_a_task_there_is_no_current_job(app: App):
    """A27: a clear error, and nothing is written."""
    with pytest.raises(NoCurrentTask, match="not inside a task"):
        await add_task_to_current_job(f"{HERE}.double", {"number": 1})
    with pytest.raises(NoCurrentTask):
        get_current_job_id()
    assert await app.tasks.alist() == []


async def test_a_task_without_a_job_has_no_current_job(app: App):
    @app.task(name="lonely")
    async def lonely() -> None:
        await add_task_to_current_job(f"{HERE}.double", {"number": 1})

    handle = await lonely.using(retry=orchestration_retry()).aenqueue()
    await drain(app)
    with pytest.raises(TaskFailed, match="belongs to none"):
        await handle.aresult(timeout=10)


def orchestration_retry():
    from headrace import Retry

    return Retry(max_attempts=1)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no_such_module_here.function", "there is no module 'no_such_module_here'"),
        (f"{HERE}.missing", "has no 'missing'"),
        (f"{HERE}.not_a_function", "is a int, not a function"),
        ("nodots", "not a dotted path"),
        ("a b.c", "not a dotted path"),
        ("tests.client.broken_entrypoints.x", "there_is_no_such_module"),
    ],
)
async def test_a_path_that_leads_nowhere_says_which_part(app: App, path: str, said: str):
    """The worker turns this into the task's failure; creating the job does not need the code."""
    with pytest.raises(EntrypointError) as refused:
        app.resolve(path, {"entrypoint": True})
    assert said in str(refused.value)
    job = await create_job("bad", [{"entrypoint": path}])
    assert job.total_tasks == 1


@pytest.mark.requirement("A45", "A46", "A48")
async def test_cancelling_jobs(app: App):
    """A45: pending tasks and the job cancelled, running ones told to stop. A46: unknown, terminal. A48: no more."""
    from headrace.core.lanes import Lane
    from headrace.core.task import Want
    from tests.client.draining import registered

    job = await create_job("one", [{"entrypoint": f"{HERE}.double", "kwargs": {"number": n}} for n in range(3)])
    store = app.new_store()
    await store.open()
    worker = await registered(store)
    [claim] = await store.claim(worker, [Want(queue="default", pool="child", lane=Lane.PRIMARY, n=1)])
    assert (await cancel_job(job.id)).status is JobState.CANCELLED
    states = {record.id: record.state for record in await app.tasks.alist(job=job.id)}
    assert states.pop(claim.id) is TaskState.CANCELLING
    assert set(states.values()) == {TaskState.CANCELLED}
    assert [ref.id for ref in await store.cancelling(worker)] == [claim.id]
    await store.close()
    with pytest.raises(WrongState):
        await cancel_job(job.id)
    with pytest.raises(NotFound):
        await cancel_job(999_999)
    with pytest.raises(WrongState):
        await add_task_to_job(job.id, f"{HERE}.double", {"number": 1})
    with pytest.raises(NotFound):
        await get_job(999_999)


@pytest.mark.requirement("A47")
async def test_adding_a_task_and_reading_it(app: App):
    """A47: add_task_to_job and get_task, with the specification's fields."""
    job = await create_job("one")
    task_id = await add_task_to_job(job.id, f"{HERE}.double", {"number": 21}, priority=3)
    task = await get_task(task_id)
    assert (task.job_id, task.entrypoint, dict(task.kwargs)) == (job.id, f"{HERE}.double", {"number": 21})
    assert (task.status, task.retry_count, task.max_retries, task.result) == (TaskState.PENDING, 0, 3, None)
    await drain(app)
    done = await get_task(task_id)
    assert (done.status, done.result, done.error_message) == (TaskState.COMPLETED, 42, None)
    assert done.completed_at is not None
    assert (await get_job(job.id)).status is JobState.COMPLETED
    with pytest.raises(NotFound):
        await get_task(999_999)
    with pytest.raises(NotFound):
        await add_task_to_job(999_999, f"{HERE}.double")


async def test_a_result_with_a_table_shows_its_id(app: App):
    job = await create_job("one", [{"entrypoint": f"{HERE}.table"}, {"entrypoint": f"{HERE}.job_id"}])
    await drain(app)
    tasks = [await get_task(record.id) for record in await app.tasks.alist(job=job.id)]
    assert {task.entrypoint.rpartition(".")[2]: task.result_table_id for task in tasks} == {
        "table": "t_1", "job_id": None,
    }  # fmt: skip


@pytest.mark.requirement("A49")
async def test_failed_tasks_are_retried_with_a_fresh_budget(app: App):
    """A49: failed tasks pending again, attempt back at 0, the job open again."""
    job = await create_job("one", [{"entrypoint": f"{HERE}.breaks", "max_retries": 0}])
    await drain(app)
    assert (await get_job(job.id)).status is JobState.FAILED
    (task_id,) = await retry_failed_tasks(job.id)
    task = await app.tasks.aget(task_id)
    assert (task.state, task.attempt, task.run_no) == (TaskState.PENDING, 0, 2)
    assert (await get_job(job.id)).status in (JobState.PENDING, JobState.RUNNING)
    with pytest.raises(WrongState):
        await retry_failed_tasks(job.id)


@pytest.mark.requirement("A50", "A51", "A52")
async def test_workers(app: App):
    """A50: the four functions. A51: an unknown or stopped worker is told to register again. A52: the row stays."""
    worker = await register_worker("host", 42)
    assert worker.id.startswith("host:42:")
    await worker_heartbeat(worker.id)
    (found,) = await list_workers()
    assert (found.id, found.hostname, found.pid, found.beat) == (worker.id, "host", 42, worker.beat + 1)
    with pytest.raises(NotFound, match="register again"):
        await worker_heartbeat("nobody")
    assert await deregister_worker(worker.id) == 0
    assert [found.id for found in await list_workers(status="stopped")] == [worker.id]
    assert await list_workers(status="active") == []
    with pytest.raises(NotFound, match="register again"):
        await worker_heartbeat(worker.id)
    with pytest.raises(NotFound):
        await deregister_worker("nobody")
    assert asdict(worker)["hostname"] == "host"


def test_the_app_comes_from_the_environment_when_none_is_configured(sqlite_url: str, monkeypatch):
    configure(None)
    monkeypatch.setenv("HEADRACE_DATABASE_URL", sqlite_url)
    job = asyncio.run(create_job("from the environment"))
    app = orchestration.current_app()
    assert app.url == sqlite_url
    assert app.jobs.get(job.id).name == "from the environment"
    app.close()


@pytest.mark.requirement("A25")
async def test_a_client_that_is_cut_off_after_its_first_write_leaves_all_or_nothing(
    app: App, monkeypatch: pytest.MonkeyPatch
):
    """A25: job and tasks are one write; a second one, had there been any, would have been lost."""
    calls: list[int] = []

    def cut_off_after_one(name: str) -> None:
        real = getattr(app.engine, name)

        async def call(*args: object) -> object:
            calls.append(1)
            if len(calls) > 1:
                raise StoreUnavailable("gone")
            return await real(*args)

        monkeypatch.setattr(app.engine, name, call)

    cut_off_after_one("run")
    cut_off_after_one("enqueue")
    with contextlib.suppress(StoreUnavailable):
        await create_job("cut", tasks=[{"entrypoint": f"{HERE}.double", "kwargs": {"number": n}} for n in (1, 2)])
    monkeypatch.undo()
    assert [(job.name, job.total_tasks) for job in await list_jobs()] in ([], [("cut", 2)])
