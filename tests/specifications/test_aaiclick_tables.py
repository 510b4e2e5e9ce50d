"""aaiclick's `map` over an object, its collector, and `filter`, by the names and the examples of its specification."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headrace import App, orchestration
from headrace.core.errors import ArgumentError, EntrypointError, NoCurrentTask, TaskFailed
from headrace.core.states import JobState
from headrace.data import Object
from headrace.orchestration import create_job, get_job, get_task
from headrace.testing import adrain, override

HERE = "tests.specifications.tables"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = App(f"sqlite:///{tmp_path / 'unused.db'}", preset="aaiclick")
    orchestration.configure(app)
    with override(app, url=f"sqlite:///{tmp_path / 'tables.db'}"):
        yield app
    orchestration.configure(None)


@pytest.mark.requirement("A28", "A29", "A30", "A31", "A78")
async def test_the_example_of_the_specification(app: App):
    """A28: each chunk task got table_id, offset and limit. A29: 25 rows by 10 are three of them. A30 and A78: the task
    that mapped got a collector back, in the same job. A31: its results are in the order of the chunks."""
    rows = await Object.create(pa.table({"v": range(25)}), data=app.data)
    job = await create_job("example", [{"entrypoint": f"{HERE}.pipeline", "kwargs": {"table_id": rows.id}}])
    await adrain(app)
    done = await get_job(job.id)
    assert (done.status, done.completed_tasks, done.total_tasks) == (JobState.COMPLETED, 5, 5)
    records = await app.tasks.alist(job=job.id, names=[f"{HERE}.chunk_total"])
    kwargs = sorted([(await get_task(record.id)).kwargs for record in records], key=lambda given: given["offset"])
    assert kwargs == [
        {"table_id": rows.id, "offset": offset, "limit": limit} for offset, limit in ((0, 10), (10, 10), (20, 5))
    ]
    (collector,) = await app.tasks.alist(job=job.id, names=["headrace.orchestration.tables.collect_results"])
    assert (await get_task(collector.id)).result == [sum(range(10)), sum(range(10, 20)), sum(range(20, 25))]


@pytest.mark.requirement("A29")
async def test_an_empty_object(app: App):
    """A29: no rows, no chunk tasks, and an empty collected result."""
    rows = await Object.create(pa.table({"v": pa.array([], pa.int64())}), data=app.data)
    job = await create_job("empty", [{"entrypoint": f"{HERE}.pipeline", "kwargs": {"table_id": rows.id}}])
    await adrain(app)
    assert (await get_job(job.id)).total_tasks == 2
    (collector,) = await app.tasks.alist(job=job.id, names=["headrace.orchestration.tables.collect_results"])
    assert (await get_task(collector.id)).result == []


@pytest.mark.requirement("A35", "A78")
async def test_chunks_that_give_objects_become_one(app: App):
    """A35: the table of the result is the collector's result_table_id. A78: results are collected, in order."""
    rows = await Object.create(pa.table({"v": range(25)}), data=app.data)
    job = await create_job("objects", [{"entrypoint": f"{HERE}.by_hand", "kwargs": {"table_id": rows.id}}])
    await adrain(app)
    (collector,) = await app.tasks.alist(job=job.id, names=["headrace.orchestration.tables.collect_results"])
    table_id = (await get_task(collector.id)).result_table_id
    assert table_id is not None
    found = await (await app.data.aopen(table_id)).to_arrow()
    assert found["v"].to_pylist() == [2 * number for number in range(25)]


@pytest.mark.requirement("A31")
async def test_the_collector_fails_with_its_chunk(app: App):
    """A31: one chunk fails for good: the collector gives no result, and its job has failed."""
    rows = await Object.create(pa.table({"v": range(25)}), data=app.data)
    task = {"entrypoint": f"{HERE}.failing_pipeline", "kwargs": {"table_id": rows.id}}
    job = await create_job("fails", [task])
    await adrain(app, raise_on_failure=False)
    assert (await get_job(job.id)).status is JobState.FAILED
    (collector,) = await app.tasks.alist(job=job.id, names=["headrace.orchestration.tables.collect_results"])
    assert collector.state == "cancelled"
    (failed,) = await app.tasks.alist(job=job.id, states=["failed"])
    with pytest.raises(TaskFailed, match="chunk of 10"):
        await app.tasks.handle(failed.id).aresult(10)


@pytest.mark.requirement("A80")
async def test_filter_in_the_job_of_the_task(app: App):
    """A80: chunk by chunk as map, in the job of the task that asked; rows stay for which the callback is true."""
    rows = await Object.create(pa.table({"v": range(25)}), data=app.data)
    job = await create_job("filter", [{"entrypoint": f"{HERE}.keep_even", "kwargs": {"table_id": rows.id}}])
    await adrain(app)
    (first,) = await app.tasks.alist(job=job.id, names=[f"{HERE}.keep_even"])
    found = await (await app.data.aopen((await get_task(first.id)).result)).to_arrow()
    assert found["v"].to_pylist() == list(range(0, 25, 2))
    assert (await get_job(job.id)).total_tasks == 1 + 3 + 1


async def test_what_is_refused_writes_nothing(app: App):
    rows = await Object.create(pa.table({"v": range(25)}), data=app.data)
    job = await create_job("open", [{"entrypoint": f"{HERE}.pipeline", "kwargs": {"table_id": rows.id}}])
    with pytest.raises(NoCurrentTask):
        await orchestration.map(f"{HERE}.chunk_total", rows)
    with orchestration.Context(job_id=job.id):
        with pytest.raises(EntrypointError, match="no_such"):
            await orchestration.map(f"{HERE}.no_such", rows)
        with pytest.raises(ArgumentError, match="2 chunks"):
            await orchestration.create_result_collector(job.id, 2)
        with pytest.raises(ArgumentError, match="not the current job"):
            await orchestration.add_task_to_current_job(f"{HERE}.pipeline", {}, job_id=job.id + 1)
    assert (await get_job(job.id)).total_tasks == 1


def test_names_are_there():
    for name in orchestration.__all__:
        assert getattr(orchestration, name) is not None
    assert asyncio.iscoroutinefunction(orchestration.map)
