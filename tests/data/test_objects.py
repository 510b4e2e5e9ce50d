"""Objects and views: what can be asked of them, and what they refuse."""

import asyncio
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from headrace import errors
from headrace.core import payload
from headrace.core.errors import (
    DataError,
    NoCurrentTask,
    NotFound,
    ObjectExists,
    OptionError,
)
from headrace.data import Data, Object, View, current_data, use

ROWS = [{"n": n, "word": f"w{n}"} for n in range(25)]


async def test_an_object_answers(data: Data) -> None:
    made = await Object.create(ROWS, name="words")
    assert made.id == made.table_id
    assert made.id.startswith("obj_")
    assert len(made.id) == 30
    found = await Object.open(made.id)
    assert found == made
    assert await found.count() == 25
    assert (await found.schema()).names == ["n", "word"]
    assert await found.head(2) == ROWS[:2]
    assert await found.to_arrow() == pa.Table.from_pylist(ROWS)
    assert (await found.to_arrow(["word"])).column_names == ["word"]
    assert (await found.to_pandas()).to_dict("records") == ROWS
    assert (await found.to_polars(["n"])).rows() == [(n,) for n in range(25)]
    assert [row async for row in found.rows()] == ROWS
    assert sum([batch.num_rows async for batch in found.batches(["n"])]) == 25
    assert found.table() == await found.to_arrow()
    meta = await found.meta()
    assert (meta.name, meta.rows, meta.job, meta.task, meta.kept) == ("words", 25, None, None, False)
    assert [each.id for each in await data.alist()] == [made.id]
    assert await found.drop() is True
    assert await found.drop() is False


async def test_ids_sort_by_the_time_of_making(tmp_path: Path) -> None:
    instants = iter([datetime(2030, 1, 1, tzinfo=UTC) + timedelta(milliseconds=n) for n in range(5)])
    data = Data(str(tmp_path), clock=lambda: next(instants))
    made = [(await Object.create([], data=data)).id for _ in range(5)]
    assert made == sorted(made)
    assert len(set(made)) == 5


@pytest.mark.requirement("A74")
async def test_views_are_slices_without_a_copy(data: Data, tmp_path: Path) -> None:
    """A74: a view has the rows from its offset on and nothing was written for it (no copy); the views of a size have
    every row once, in the order of the object (disjoint, complete, stable)."""
    made = await Object.create(ROWS)
    before = files_below(tmp_path)
    view = made.view(20, 3)
    assert (view.id, view.table_id, view.offset, view.limit) == (made.id, made.id, 20, 3)
    assert view.object == made
    assert await view.head() == ROWS[20:23]
    assert await view.count() == 3
    views = await made.views(10)
    assert [(each.offset, each.limit) for each in views] == [(0, 10), (10, 10), (20, 5)]
    assert [each async for each in made.views(10)] == views
    assert [row for each in views for row in await each.head(100)] == ROWS
    assert files_below(tmp_path) == before
    # A limit is "at most": the last chunk may be asked for with the full size.
    assert await made.view(20, 10).count() == 5
    assert [(each.offset, each.limit) for each in await made.view(3, 5).views(2)] == [(3, 2), (5, 2), (7, 1)]
    assert await made.view(3, 5).view(1, 100).head(100) == ROWS[4:8]
    assert len(await made.views()) == 1


def files_below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


async def test_an_empty_object_has_no_views(data: Data) -> None:
    for source in ([], pa.table({"a": pa.array([], pa.int64())})):
        made = await Object.create(source)
        assert await made.count() == 0
        assert await made.views() == []
        assert await made.head() == []
        assert await made.view(0, 10).count() == 0


async def test_a_view_out_of_range_is_refused_at_the_call(data: Data) -> None:
    made = await Object.create(ROWS)
    for offset, limit, word in (
        (25, 1, "end at 25"), (26, 0, "end at 25"), (-1, 5, "-1"), (0, -1, "-1"), (True, 1, "True"), (0, 1.5, "1.5"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=word):
            made.view(offset, limit)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="chunk_size"):
        made.views(0)
    with pytest.raises(DataError, match="end at 8"):
        made.view(3, 5).view(6, 1)
    assert await made.view(25, 0).count() == 0
    # A reference from elsewhere knows no count yet: it is refused at the first use.
    late = Object(made.id).view(25, 1)
    with pytest.raises(DataError, match="end at 25"):
        await late.count()
    with pytest.raises(DataError, match="end at 25"):
        await late.to_arrow()


async def test_what_is_not_there_says_so(data: Data) -> None:
    for id in ("obj_nobody", "tbl_1", "../x", ""):
        with pytest.raises(NotFound, match="there is no object"):
            await Object.open(id)
    reference = Object("obj_nobody")
    for ask in (reference.count, reference.schema, reference.to_arrow, reference.head):
        with pytest.raises(NotFound, match="obj_nobody"):
            await ask()
    with pytest.raises(DataError, match="not the id"):
        Object("tbl_1")
    made = await Object.create(ROWS)
    with pytest.raises(DataError, match="no column 'x'; it has n, word"):
        await made.to_arrow(["x"])


async def test_a_retention_is_kept_with_the_object(tmp_path: Path) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    data = Data(str(tmp_path), keep=timedelta(days=2), clock=lambda: now)
    for keep, kept, until in (
        (None, False, now + timedelta(days=2)),
        (timedelta(hours=1), True, now + timedelta(hours=1)),
        (60, True, now + timedelta(minutes=1)),
        ("forever", True, None),
    ):
        meta = await (await Object.create([], data=data, keep=keep)).meta()  # pyright: ignore[reportArgumentType]
        assert (meta.kept, meta.expires_at) == (kept, until)
    with pytest.raises(OptionError, match="keep"):
        await Object.create([], data=data, keep=-1)
    assert (await (await Object.create([], data=Data(str(tmp_path), keep=None))).meta()).expires_at is None


def test_the_blocking_face_of_a_place(tmp_path: Path) -> None:
    data = Data(str(tmp_path))
    made = data.create(ROWS, id="obj_mine")
    assert data.open("obj_mine").table() == pa.Table.from_pylist(ROWS)
    with pytest.raises(ObjectExists, match="obj_mine"):
        data.create(ROWS, id="obj_mine")
    again = data.create(ROWS[:3], id="obj_mine", replace=True)
    assert again.known().rows == 3
    with pytest.raises(DataError, match="'Mine' cannot be the id"):
        data.create(ROWS, id="Mine")
    both = data.concat([again, "obj_mine"])
    assert both.table().to_pylist() == ROWS[:3] * 2
    assert data.drop(made) is True
    assert [meta.id for meta in data.list()] == [both.id]

    async def wrong() -> None:
        data.create(ROWS)

    with pytest.raises(errors.RunningLoop, match="acreate"):
        asyncio.run(wrong())


async def test_parts_that_differ_become_wider(data: Data) -> None:
    whole = await Object.create([{"a": 1, "b": None}, {"a": 2, "b": None}])
    parts = [whole, await Object.create([{"a": 2.5, "c": "x"}]), await Object.create([{"a": None, "b": "text"}])]
    made = await data.aconcat(parts)
    assert (await made.schema()).types == [pa.float64(), pa.string(), pa.string()]
    assert await made.head() == [
        {"a": 1.0, "b": None, "c": None},
        {"a": 2.0, "b": None, "c": None},
        {"a": 2.5, "b": None, "c": "x"},
        {"a": None, "b": "text", "c": None},
    ]
    with pytest.raises(DataError, match="agree"):
        await data.aconcat([whole, await Object.create([{"a": "text"}])])
    empty = await data.aconcat([], schema={"a": "int64"})
    assert (await empty.count(), (await empty.schema()).names) == (0, ["a"])
    wider = await data.aconcat([whole], schema={"a": "double", "b": "string"})
    assert await wider.head(1) == [{"a": 1.0, "b": None}]


# By reference.


def test_references_travel_as_json() -> None:
    made, view = Object("obj_a"), View("obj_a", 3, 4)
    either: TypeAdapter[Any] = TypeAdapter(Object | View)
    assert either.dump_python(made, mode="json") == {"table_id": "obj_a"}
    assert either.dump_python(view, mode="json") == {"table_id": "obj_a", "offset": 3, "limit": 4}
    for value in (made, view):
        assert either.validate_json(either.dump_json(value)) == value
        assert pickle.loads(pickle.dumps(value)) == value
        assert payload.loads(payload.dumps([value])) == [either.dump_python(value)]
    assert TypeAdapter(Object).validate_python("obj_a") == made
    assert len({made, Object("obj_a"), view, View("obj_a", 3, 4), View("obj_a", 3, 5)}) == 3
    assert made != view
    for adapter, wrong in (
        (Object, {"table_id": "obj_a", "offset": 3, "limit": 4}), (Object, {"table_id": 7}), (Object, "tbl_1"),
        (Object, None), (View, {"table_id": "obj_a"}), (View, "obj_a"),
        (View, {"table_id": "obj_a", "offset": -1, "limit": 4}), (View, {"table_id": "x", "offset": 1, "limit": 4}),
    ):  # fmt: skip
        with pytest.raises(ValidationError):
            TypeAdapter(adapter).validate_python(wrong)  # pyright: ignore[reportUnknownMemberType]
    assert TypeAdapter(View).json_schema()["required"] == ["table_id", "offset", "limit"]
    with pytest.raises(payload.PayloadError, match=r"\$\.set"):
        payload.dumps({"object": made, "set": {1}})


# Which place is meant.


def test_the_place_must_be_clear(tmp_path: Path) -> None:
    class Place:
        def __init__(self, folder: str) -> None:
            self.data = Data(str(tmp_path / folder))

    with use(Place("a")) as first, use(Data(str(tmp_path / "b"))) as second:
        assert current_data() is second
        with use(first):
            assert current_data() is first
        assert current_data() is second
    made = asyncio.run(Object.create(ROWS, data=first))
    assert made.data is first
    with use(second), pytest.raises(NotFound):
        asyncio.run(Object(made.id).count())
    with use(first):
        assert asyncio.run(Object(made.id).count()) == 25


def test_several_apps_of_other_places_are_not_clear(tmp_path: Path) -> None:
    from headrace import App

    apps = [App(f"sqlite:///{tmp_path}/{name}.db") for name in ("one", "two")]
    with pytest.raises(NoCurrentTask, match="use"):
        current_data()
    with use(apps[1]):
        assert current_data() is apps[1].data


def test_a_missing_library_is_named(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    made = data.create(ROWS)
    for library in ("pandas", "polars"):
        monkeypatch.delitem(sys.modules, f"headrace.data.formats.{library}", raising=False)
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(errors.MissingExtra, match=f"pip install {library}"):
            asyncio.run(getattr(made, f"to_{library}")())


# Random tables.

_COLUMNS = {
    "i": (st.none() | st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "f": (st.none() | st.floats(allow_nan=False), pa.float64()),
    "s": (st.none() | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8), pa.string()),
    "b": (st.none() | st.booleans(), pa.bool_()),
    "t": (st.none() | st.datetimes(timezones=st.just(UTC)), pa.timestamp("us", "UTC")),
    "l": (st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3), pa.list_(pa.int64())),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    names = draw(st.lists(st.sampled_from(sorted(_COLUMNS)), min_size=1, unique=True))
    rows = draw(st.integers(0, 40))
    columns = {
        name: pa.array(draw(st.lists(_COLUMNS[name][0], min_size=rows, max_size=rows)), _COLUMNS[name][1])
        for name in names
    }
    return pa.table(columns)


@pytest.mark.requirement("A74")
@settings(max_examples=40)
@given(
    table=tables(), size=st.integers(1, 45), offset=st.integers(0, 45), limit=st.integers(0, 45), cut=st.integers(1, 9)
)
def test_random_tables_are_cut_as_pyarrow_cuts_them(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, size: int, offset: int, limit: int, cut: int
) -> None:
    """A74: whatever the table and the size, the views put together are the table (disjoint and complete), and a view is
    what PyArrow's slice gives."""
    data = Data(str(tmp_path_factory.mktemp("tables")))
    made = data.create(iter(table.to_batches(max_chunksize=cut)), schema=table.schema)
    views = asyncio.run(_views(made, size))
    assert len(views) == -(-table.num_rows // size)
    assert pa.concat_tables([table.slice(0, 0), *(view.table() for view in views)]).equals(table)
    if offset < table.num_rows:
        assert made.view(offset, limit).table().equals(table.slice(offset, limit))


async def _views(made: Object, size: int) -> list[View]:
    return await made.views(size)
