"""The five phases in which aaiclick's specification builds its backend, each from end to end on both stores."""

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData

from headrace import App, orchestration
from headrace.core.errors import ArgumentError, NoCurrentTask
from headrace.core.states import JobState, TaskState
from headrace.orchestration import Context, create_job, get_current_job_id, get_job, get_task
from headrace.store import schema
from tests.specifications.test_lines import ROOT, use, work, working
from tests.support.waiting import wait_until

__all__ = ["use"]  # a fixture

HERE = "tests.specifications.entrypoints"


@pytest.mark.requirement("A7")
def test_parameters_are_stored_as_json(use: Any):
    """A7: what stands in the row is JSON, and reads back as what was given; what is no JSON is refused."""
    app = use("aaiclick")
    given = {"input_obj": "tbl_1", "threshold": 0.5, "nested": {"rows": [1, None, "drei ä"]}}
    job = asyncio.run(create_job("json", [{"entrypoint": f"{HERE}.plain", "kwargs": given}]))
    (record,) = app.tasks.list(job=job.id)
    assert json.loads(record.arguments) == given
    assert dict(asyncio.run(get_task(record.id)).kwargs) == given
    with pytest.raises(ArgumentError, match="kwargs"):
        asyncio.run(create_job("no json", [{"entrypoint": f"{HERE}.plain", "kwargs": {"n": object()}}]))


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_what_the_row_of_a_job_holds(dialect: str):
    """A8, the table: the columns, the default of the state, and an index that begins with each of the three."""
    jobs = _table(schema.build(dialect), "jobs")
    assert {"id", "name", "description", "state", "created_at", "started_at", "completed_at"} <= set(
        jobs.columns.keys()
    )
    assert str(jobs.columns["state"].server_default.arg) == "'pending'"
    indexed = {next(iter(index.columns)).name for index in jobs.indexes}
    assert {"name", "state", "created_at"} <= indexed


@pytest.mark.requirement("A8")
def test_what_a_job_says_of_itself(use: Any):
    """A8, the face: pending and without instants when it is made; its tasks are asked for by its id."""
    app = use("aaiclick")
    job = asyncio.run(create_job("said", [{"entrypoint": f"{HERE}.nothing"}], description="what it is for"))
    assert (job.name, job.description, job.status) == ("said", "what it is for", JobState.PENDING)
    assert isinstance(job.created_at, datetime)
    assert (job.started_at, job.completed_at) == (None, None)
    assert [task.name for task in app.tasks.list(job=job.id)] == [f"{HERE}.nothing"]
    work()
    done = asyncio.run(get_job(job.id))
    assert job.created_at <= done.started_at <= done.completed_at  # pyright: ignore[reportOperatorIssue]


@pytest.mark.requirement("A75")
def test_phase_1_models_migrations_connections_and_records(store_url: str):
    """A75: migrations up, down to nothing and up again; a job and its task are made, read, changed and removed; the
    connections of an app that was closed are made anew.
    """
    app = App(store_url, preset="aaiclick", keep=0.001)

    async def down_and_up() -> list[str | None]:
        store, seen = app.new_store(), list[str | None]()
        try:
            for act in (store.upgrade(), store.downgrade("base"), store.upgrade()):
                await act
                seen.append(await store.schema_revision())
        finally:
            await store.close()
        return seen

    head, nothing, again = asyncio.run(down_and_up())
    assert nothing is None
    assert head is not None
    assert again == head
    orchestration.configure(app)
    job = asyncio.run(create_job("records", [{"entrypoint": f"{HERE}.nothing"}]))
    (task,) = app.tasks.list(job=job.id)
    assert app.jobs.get(job.id).state is JobState.PENDING
    app.close()
    assert app.jobs.cancel(job.id).state is JobState.CANCELLED
    assert app.tasks.get(task.id).state is TaskState.CANCELLED

    def pruned() -> bool:
        asyncio.run(app.engine.run(lambda store: store.prune(keep=0.001)))
        return not app.tasks.list(job=job.id) and not app.jobs.list()

    wait_until(pruned, 30, message="what is old to be removed")
    app.close()


@pytest.mark.requirement("A76")
def test_phase_2_the_worker(use: Any):
    """A76: a worker claims under its own name, its heart beats while it works, an error is tried again and the next
    attempt succeeds.
    """
    app = use("aaiclick")
    job = asyncio.run(create_job("worker", [{"entrypoint": f"{HERE}.flaky"}]))
    with working():
        wait_until(lambda: any(w.beat > 1 for w in app.workers.list(states=["active", "idle"])), 60, message="a heart")
        ended = app.jobs.wait(job.id, timeout=60)
    assert ended.state is JobState.COMPLETED
    (record,) = app.tasks.list(job=job.id)
    attempts = app.tasks.attempts(record.id)
    assert [attempt.state for attempt in attempts] == ["failed", "succeeded"]
    assert {attempt.worker for attempt in attempts} <= {worker.id for worker in app.workers.list()}


@pytest.mark.requirement("A77")
def test_phase_3_jobs(use: Any):
    """A77: a job is created, its tasks are claimed in the order of their creation, status and progress follow."""
    app = use("aaiclick")
    queues = ("default", "later", "later")
    tasks = [{"entrypoint": f"{HERE}.plain", "kwargs": {"n": n}, "queue": queue} for n, queue in enumerate(queues)]
    job = asyncio.run(create_job("three", tasks))
    assert (job.status, job.completed_tasks, job.total_tasks, job.progress) == (JobState.PENDING, 0, 3, 0.0)
    work("--queues", "default")
    part = asyncio.run(get_job(job.id))
    assert (part.status, part.completed_tasks, part.total_tasks) == (JobState.RUNNING, 1, 3)
    assert [record.result for record in app.tasks.list(job=job.id, states=["completed"])] == ['{"n":0}']
    work("--queues", "later")
    done = asyncio.run(get_job(job.id))
    assert (done.status, done.completed_tasks, done.progress) == (JobState.COMPLETED, 3, 1.0)
    first, second = sorted(app.tasks.list(job=job.id, queues=["later"]), key=lambda record: record.id)
    assert (first.result, second.result) == ('{"n":1}', '{"n":2}')
    assert first.claimed_at <= second.claimed_at


@pytest.mark.requirement("A79")
def test_phase_5_context_benchmark_and_documentation():
    """A79: the context is that of whoever asks, and of nobody else; a part of the benchmark measures workflows; a page
    says how each line of the specification is met, and another how workflows are written.
    """
    with Context(job_id=3):
        assert get_current_job_id() == 3
        with Context(job_id=4):
            assert get_current_job_id() == 4
        assert get_current_job_id() == 3
    with pytest.raises(NoCurrentTask):
        get_current_job_id()
    assert (ROOT / "bench/parts/workflows.py").is_file()
    assert "A79" in _text("docs/explanation/specifications/aaiclick.md")
    assert "chord" in _text("docs/howto/workflows.md")


def _text(path: str) -> str:
    return (Path(ROOT) / path).read_text(encoding="utf-8")


def _table(metadata: MetaData, name: str) -> Any:
    (found,) = [table for table in metadata.tables.values() if table.name.endswith(name)]
    return found
