"""Work over tables, as jobs: equal to what PyArrow gives, in the order of the chunks, and named where it fails."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.errors import DataError, EntrypointError, NotFound, OptionError, TaskFailed
from headrace.core.states import JobState, TaskState
from headrace.data import Data, Object, use
from headrace.data.operations.shuffling import boundaries, merged, split
from headrace.testing import adrain, override
from tests.data import callbacks
from tests.data.callbacks import app
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def apart(tmp_path: Path) -> Iterator[None]:
    with override(app, url=f"sqlite:///{tmp_path / 'operations.db'}"):
        yield


def table_of(rows: int, *, keys: int = 7, seed: int = 1) -> pa.Table:
    rng = random.Random(seed)
    return pa.table(
        {
            "k": pa.array([rng.choice([None, *range(keys)]) for _ in range(rows)], pa.int64()),
            "v": pa.array(range(rows), pa.int64()),
            "t": pa.array([chr(97 + number % 26) for number in range(rows)], pa.string()),
        }
    )


async def came_out(future: Any) -> pa.Table:
    await adrain(app)
    return await (await future.aresult(30)).to_arrow()


@pytest.mark.requirement("A28", "A29", "A30", "A31")
@pytest.mark.parametrize("name", ["doubled", "doubled_later", "doubled_table", "doubled_pandas", "doubled_polars"])
async def test_a_map_over_chunks(name: str):
    """A28: one task for each chunk, with the table's id, an offset and a limit, and the rows are counted without being
    read. A29: 25 rows by 10 are 3 chunks. A30: the call gives a handle at once. A31: the rows come in the order of the
    chunks."""
    table = table_of(25)
    rows = await Object.create(table, data=app.data)
    future = await rows.map(getattr(callbacks, name), chunk_size=10)
    tasks = await app.tasks.alist(job=future.job_id, names=["headrace.data.operations.steps.map_chunk"])
    views = sorted(app.codecs.get(t.codec).decode(t.arguments) for t in tasks)
    assert len(views) == 3
    assert ['"limit":10,"offset":0' in view for view in views].count(True) == 1
    assert all(f'"table_id":"{rows.id}"' in view for view in views)
    assert (await app.tasks.alist(job=future.job_id, states=["blocked"]))[0].name.endswith("steps.collect")
    # Frames have their own words for some types.
    assert (await came_out(future)).cast(table.schema).equals(callbacks.doubled_table(table))
    assert (await app.jobs.aget(future.job_id)).state is JobState.COMPLETED
    # What was made on the way is gone.
    assert {meta.id for meta in await app.data.alist()} == {rows.id, future.id}


@pytest.mark.requirement("A29")
@pytest.mark.parametrize(("rows", "chunk", "chunks"), [(0, 10, 0), (1, 10, 1), (10, 10, 1), (11, 10, 2), (7, 1, 7)])
async def test_the_number_of_chunks(rows: int, chunk: int, chunks: int):
    """A29: rows by chunk, rounded up; no rows are no chunk tasks, and an empty table comes out."""
    table = table_of(rows)
    future = await (await Object.create(table, data=app.data)).map(callbacks.doubled_table, chunk)
    assert len(await app.tasks.alist(job=future.job_id)) == chunks + 1
    assert (await came_out(future)).equals(callbacks.doubled_table(table))


@pytest.mark.requirement("A80")
@pytest.mark.parametrize("name", ["is_even", "even_mask", "even_pandas"])
async def test_a_filter(name: str):
    """A80: as a map, with one task for each chunk; the rows stay for which the callback is true, in their order."""
    table = table_of(45)
    future = await (await Object.create(table, data=app.data)).filter(getattr(callbacks, name), 10)
    assert len(await app.tasks.alist(job=future.job_id)) == 6
    assert (await came_out(future)).equals(table.filter(callbacks.even_mask(table)))


async def test_reduce_is_in_order_and_over_many_levels():
    table = table_of(200)
    rows = await Object.create(table, data=app.data)
    text = await came_out(await rows.reduce(callbacks.joined_text, chunk_size=2))  # 100 chunks: more than one level
    assert text.to_pylist() == [{"t": "".join(table["t"].to_pylist())}]
    total = await came_out(await rows.reduce(callbacks.added, 30))
    assert total.to_pylist() == [{"v": sum(range(200))}]
    grouped = await came_out(await rows.reduce(callbacks.summed, 30))
    assert grouped.sort_by("k").equals(callbacks.summed(table).sort_by("k"))


@pytest.mark.parametrize("by", ["k", ["k", "v"], [("k", "descending"), ("t", "ascending")], [("v", "descending")]])
async def test_a_sort_equals_pyarrow(by: Any):
    table = table_of(300)
    keys = [(key, "ascending") if isinstance(key, str) else key for key in ([by] if isinstance(by, str) else by)]
    expected = table.take(pc.sort_indices(table.append_column("n", table["v"]), sort_keys=[*keys, ("n", "ascending")]))
    future = await (await Object.create(table, data=app.data)).sort(by, chunk_size=40)
    assert (await came_out(future)).equals(expected)
    assert len(await app.data.alist()) == 2


@pytest.mark.parametrize(("how", "arrow"), [("inner", "inner"), ("left", "left outer")])
async def test_a_join_equals_pyarrow(how: str, arrow: str):
    left, right = table_of(120), table_of(90, keys=12, seed=2).rename_columns(["k", "w", "t"])
    a, b = [await Object.create(table, data=app.data) for table in (left, right)]
    found = await came_out(await a.join(b, on="k", how=how, chunk_size=25))
    expected = left.join(right, "k", join_type=arrow, right_suffix="_right")
    by = [("v", "ascending"), ("w", "ascending")]
    assert found.select(expected.column_names).sort_by(by).equals(expected.sort_by(by))
    assert len(await app.data.alist()) == 3


async def test_no_rows_give_no_rows():
    none, some = [await Object.create(table_of(rows), data=app.data) for rows in (0, 5)]
    futures = [
        await none.map(callbacks.doubled),
        await none.map(callbacks.doubled_table),
        await none.filter(callbacks.is_even),
        await none.reduce(callbacks.added),
        await none.sort("k"),
        await none.join(some, "k"),
        await none.join(some, "k", "left"),
        await some.join(none, "k"),
    ]
    await adrain(app)
    assert [await (await future.aresult(10)).count() for future in futures] == [0] * len(futures)
    kept = await came_out(await some.join(none, "k", "left"))
    assert kept.num_rows == 5


async def test_chunks_that_disagree_on_a_type_agree_in_the_end():
    rows = await Object.create(table_of(30), data=app.data)
    found = await came_out(await rows.map(callbacks.sparse, 10))
    assert found["x"].to_pylist() == [*([None] * 10), *map(float, range(10, 20)), *(v / 2 for v in range(20, 30))]
    text = await came_out(await rows.map(callbacks.sparse, 10, schema={"x": pa.float32()}))
    assert text.schema == pa.schema({"x": pa.float32()})
    values = await came_out(await rows.map(callbacks.value_of, 10))
    assert values["value"].to_pylist() == list(range(30))


@pytest.mark.requirement("A31")
async def test_a_failed_chunk_is_named():
    """A31: the collector never runs, and whoever waits is told which chunk of which table failed, and why."""
    rows = await Object.create(table_of(30), data=app.data)
    future = await rows.map(callbacks.no_fifteen, 10)
    await adrain(app, raise_on_failure=False)
    with pytest.raises(TaskFailed, match=rf"chunk 1 \(rows 10 to 19 of {rows.id}\): 15 is not wanted"):
        await future.aresult(10)
    (collector,) = await app.tasks.alist(job=future.job_id, names=["headrace.data.operations.steps.collect"])
    assert (collector.state, collector.reason) == (TaskState.CANCELLED, "upstream_failed")
    assert (await app.jobs.aget(future.job_id)).state is JobState.FAILED
    with pytest.raises(NotFound):
        await app.data.aopen(future.id)


async def test_bad_input_is_refused_at_the_call_and_nothing_is_written():
    rows = await Object.create(table_of(30), data=app.data)
    nested = await Object.create(pa.table({"k": [[1], [2]]}), data=app.data)
    text = await Object.create(pa.table({"k": ["a"]}), data=app.data)
    for refused, why, call in (
        (EntrypointError, "lambda", lambda: rows.map(lambda row: row)),
        (EntrypointError, "no_such", lambda: rows.map("tests.data.callbacks.no_such")),
        (EntrypointError, "no_module", lambda: rows.map("no_module.f")),
        (EntrypointError, "not a function", lambda: rows.map("tests.data.callbacks.NOT_A_FUNCTION")),
        (DataError, "mode", lambda: rows.map(callbacks.doubled, mode="columns")),
        (DataError, "chunk_size", lambda: rows.map(callbacks.doubled, 0)),
        (DataError, "'z'", lambda: rows.sort("z")),
        (DataError, "at least one", lambda: rows.sort([])),
        (DataError, "no order", lambda: nested.sort("k")),
        (DataError, "how", lambda: rows.join(rows, "k", "outer")),
        (DataError, "int64 on the left", lambda: rows.join(text, "k")),
        (DataError, "no column 'v'", lambda: rows.join(text, "v")),
        (OptionError, "whole number", lambda: rows.map(callbacks.doubled, priority="high")),
        (OptionError, "not 'color'", lambda: rows.map(callbacks.doubled, color="red")),
        (DataError, "one argument", lambda: rows.map(callbacks.added)),
        (DataError, "two rows", lambda: rows.reduce(callbacks.doubled)),
        (DataError, "RecordBatch", lambda: rows.map(callbacks.takes_a_batch)),
        (DataError, "not 5", lambda: rows.sort(5)),
        (DataError, "not 'x'", lambda: rows.join("x", "k")),
        (DataError, "each column once", lambda: rows.join(rows, ["k", "k"])),
        (DataError, "come twice", lambda: rows.join(rows, "k", suffix="")),
        (NotFound, "no object", lambda: Object("obj_nowhere", data=app.data).map(callbacks.doubled)),
        (DataError, "belongs to no app", lambda: Object(rows.id, data=Data(app.data.url)).map(callbacks.doubled)),
    ):
        with pytest.raises(refused, match=why):
            await call()
    assert not await app.jobs.alist()
    assert not await app.tasks.alist()


@pytest.mark.requirement("A74", "A78")
async def test_inside_a_task_the_parts_belong_to_its_job():
    """A78: a running task maps over a table: the chunks and their collector are of its own job, which ends after them.
    A74: each chunk names a slice of the table, and together they have each row once."""
    table = table_of(35)
    rows = await Object.create(table, data=app.data)
    handle = await callbacks.map_in_my_job.s(rows).aenqueue(name="dynamic")
    await adrain(app)
    job = await app.jobs.aget(handle.id)
    assert (job.state, job.completed, job.total) == (JobState.COMPLETED, 6, 6)
    made = await app.data.aopen(await handle.aresult(10))
    assert (await made.to_arrow()).equals(callbacks.doubled_table(table))
    assert (await made.meta()).job == handle.id


async def test_a_future_table_is_an_argument():
    rows = await Object.create(table_of(35), data=app.data)
    future = await rows.filter(callbacks.is_even, 10)
    (handle,) = await app.jobs.aadd(future.job_id, callbacks.count_rows.s(future))
    await adrain(app)
    assert await handle.aresult(10) == 18


async def test_a_collector_that_died_before_it_could_say_so():
    """It had put the parts together and dropped them: its next attempt finds the whole."""
    from headrace.data.operations import steps

    rows = await Object.create(table_of(30), data=app.data)
    future = await rows.map(callbacks.doubled_table, 10)
    await adrain(app)
    before = await (await future.aresult(10)).to_arrow()
    parts = [{"table_id": f"{future.id}_c{number}"} for number in range(3)]
    with use(app):
        assert await asyncio.to_thread(steps.collect, parts, future.id) == {"table_id": future.id}
    assert (await (await app.data.aopen(future.id)).to_arrow()).equals(before)


async def test_a_chunk_that_is_cleared_alone_never_gives_the_old_table():
    """The other parts are gone: the collector says what to do, instead of that all is well."""
    rows = await Object.create(table_of(30), data=app.data)
    future = await rows.map(callbacks.doubled_table, 10)
    await adrain(app)
    chunks = await app.tasks.alist(job=future.job_id, names=["headrace.data.operations.steps.map_chunk"])
    await app.jobs.aclear(chunks[0].id)
    await adrain(app, raise_on_failure=False)
    (collector,) = await app.tasks.alist(job=future.job_id, names=["headrace.data.operations.steps.collect"])
    assert collector.state is TaskState.FAILED
    assert "of 3 parts of this table 2 are gone" in (collector.error_message or "")
    assert "clear the tasks that make them" in (collector.error_message or "")


async def test_rows_that_come_alone_are_reduced_with_the_others():
    """The last chunk has one row, which nobody reduced: it has other columns."""
    rows = await Object.create(table_of(21), data=app.data)
    found = await came_out(await rows.reduce(callbacks.added, 10))
    assert found.to_pylist() == [{"v": sum(range(21))}]


async def test_a_join_where_one_side_has_no_nulls():
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("w", pa.int64())])
    strict = pa.table({"k": [1, 2, 3], "w": [10, 20, 30]}, schema=schema)
    a, b = [await Object.create(table, data=app.data) for table in (table_of(40), strict)]
    found = await came_out(await a.join(b, "k", chunk_size=7))
    assert found.num_rows == table_of(40).join(strict, "k", join_type="inner").num_rows > 0
    again = await came_out(await b.join(a, "k", chunk_size=7))
    assert again.num_rows == found.num_rows


KEYS = st.one_of(st.none(), st.integers(-3, 3))


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.tuples(KEYS, st.sampled_from("abc")), max_size=60),
    orders=st.tuples(st.sampled_from(["ascending", "descending"]), st.sampled_from(["ascending", "descending"])),
    chunk=st.integers(1, 20),
    parts=st.integers(1, 6),
)
def test_split_and_merged_are_a_stable_sort(rows: Any, orders: Any, chunk: int, parts: int):
    """Whatever the boundaries: the parts in their order are the stable sort of the whole."""
    table = pa.table(
        {
            "a": pa.array([row[0] for row in rows], pa.int64()),
            "b": pa.array([row[1] for row in rows], pa.string()),
            "n": pa.array(range(len(rows)), pa.int64()),
        }
    )
    keys = list(zip(("a", "b"), orders, strict=True))
    cuts = boundaries(table.slice(0, 11), keys, parts)
    assert cuts.num_rows < parts
    runs = [split(table.slice(at, chunk), keys, cuts) for at in range(0, len(rows), chunk)]
    found: list[pa.Table] = []
    for part in range(cuts.num_rows + 1):
        pieces = [run.slice(starts[part], starts[part + 1] - starts[part]) for run, starts in runs]
        found += [merged(pieces, keys)] if pieces else []
    expected = table.take(pc.sort_indices(table, sort_keys=[*keys, ("n", "ascending")]))
    assert pa.concat_tables([table.slice(0, 0), *found]).combine_chunks().equals(expected.combine_chunks())


def test_a_worker_is_killed_in_the_middle_of_a_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """SIGKILL of a child and of the whole worker: what comes out is whole, and each row is in it once."""
    marks = tmp_path / "marks"
    marks.mkdir()
    monkeypatch.setenv("MARKS", str(marks))
    monkeypatch.setenv("HEADRACE_DATABASE_URL", app.url)
    table = table_of(400)
    rows = app.data.create(table)
    future = asyncio.run(rows.map(callbacks.slow_marks, 20))

    def begun() -> int:
        return len(list(marks.iterdir()))

    def who_stays(others: int) -> int:
        """The child in which a chunk that found so many others stays until it is killed."""
        path = marks.with_suffix(f".{others}")
        return int(wait_until(lambda: path.exists() and path.read_text(), 60, message=f"{others} chunks"))

    command = [sys.executable, "-m", "headrace.cli", "worker", "tests.data.callbacks:app", "--children", "2", "--lease"]
    worker = subprocess.Popen([*command, "2"], cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        os.kill(who_stays(3), signal.SIGKILL)
        assert who_stays(8)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(timeout=30)
        worker = subprocess.Popen([*command, "2"], cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
        made = future.result(timeout=90)
    finally:
        worker.terminate()
        worker.wait(timeout=60)
    assert made.table().equals(callbacks.doubled_table(table))
    assert begun() > 20, "what was killed while it ran has run again"
