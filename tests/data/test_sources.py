"""What an object can be made of, and what is refused with a sentence that helps; then nothing was written."""

import sqlite3
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from headrace.core.errors import DataError, MissingExtra, SettingsError
from headrace.data import SQL, Data, Object

TABLE = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]})


def refused(data: Data, source: Any, *words: str, schema: Any = None) -> None:
    with pytest.raises(DataError) as caught:
        data.create(source, schema=schema)
    for word in words:
        assert word in str(caught.value)
    assert data.list() == []


@pytest.mark.parametrize(
    "source",
    [
        TABLE.to_pylist(),
        tuple(TABLE.to_pylist()),
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_batches(max_chunksize=1),
        TABLE.to_pandas().astype({"name": "object"}),
        pl.from_arrow(TABLE),
        pl.from_arrow(TABLE).lazy(),  # type: ignore[union-attr]
    ],
    ids=["rows", "tuple", "table", "batch", "batches", "pandas", "polars", "lazy"],
)
def test_a_table_of_each_kind(data: Data, source: Any) -> None:
    made = data.create(source)
    assert made.table().to_pylist() == TABLE.to_pylist()
    assert made.known().schema.field("id").type == pa.int64()
    assert made.known().schema.metadata is None


def test_what_is_read_only_once(data: Data) -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, iter(TABLE.to_batches(max_chunksize=2)))
    for source in (reader, iter(TABLE.to_pylist()), (row for row in TABLE.to_pylist()), iter(TABLE.to_batches())):
        assert data.create(source).table() == TABLE
    for source in (iter([]), (row for row in ())):
        assert data.create(source).table().num_rows == 0


class Stream:
    """What many libraries have instead of pyarrow's classes."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


def test_anything_that_streams_arrow(data: Data) -> None:
    assert data.create(Stream()).table() == TABLE


def test_an_index_with_names_becomes_a_column(data: Data) -> None:
    frame = pd.DataFrame({"n": [1, 2]}, index=pd.Index(["x", "y"], name="key"))
    assert data.create(frame).table().to_pylist() == [{"key": "x", "n": 1}, {"key": "y", "n": 2}]
    assert data.create(frame.reset_index()[1:]).table().to_pylist() == [{"key": "y", "n": 2}]


# Rows.


def test_rows_find_their_types(data: Data) -> None:
    row = {
        "i": 1, "f": 1.5, "s": "x", "b": True, "y": b"z", "d": date(2030, 1, 2), "t": datetime(2030, 1, 2, tzinfo=UTC),
        "m": Decimal("1.10"), "l": [1, None], "r": {"x": 1}, "n": None,
    }  # fmt: skip
    made = data.create([row, {"s": "only", "late": 1}])
    assert made.table().to_pylist()[0] == {**row, "late": None}
    types = dict(zip(made.known().schema.names, map(str, made.known().schema.types), strict=True))
    assert types["m"] == "decimal128(3, 2)"
    assert types["t"] == "timestamp[us, tz=UTC]"
    assert types["late"] == "int64"
    assert data.create([{"a": 1}, {"a": 2.5}]).table().to_pylist() == [{"a": 1.0}, {"a": 2.5}]


def test_all_rows_of_a_list_decide_and_the_first_ones_of_a_stream(data: Data) -> None:
    rows = [{"a": None}] * 15_000 + [{"a": "text", "b": 1}]
    assert data.create(rows).table().to_pylist()[-1] == {"a": "text", "b": 1}
    kept = data.list()
    for words in ("'b'", "row 15000", "schema="):
        with pytest.raises(DataError, match=words):
            data.create(iter(rows))
    with pytest.raises(DataError, match=r"row 15000, column 'a': 'text' is no null; give schema="):
        data.create(row | {"b": None} for row in rows)
    assert data.list() == kept
    made = data.create(iter(rows), schema={"b": "int64", "a": pa.string()})
    assert made.known().schema.names == ["b", "a"]
    assert made.view(15_000, 1).table().to_pylist() == [{"b": 1, "a": "text"}]


def test_rows_that_make_no_table(data: Data) -> None:
    refused(data, [{"a": 1}, 7], "row 1 is no dict", "7")
    refused(data, ({"a": 1} if n else None for n in range(2)), "row 0 is no dict")
    refused(data, [{"a": 1}, {"a": "x"}], "column 'a'", "schema=")
    refused(data, [{1: "x"}], "name is text, not 1")
    refused(data, [{"": 1}], "no name")
    refused(data, [{"a": 2**70}], "column 'a'")
    refused(data, [{"a": object()}], "column 'a'")
    refused(data, {"a": [1, 2]}, "a dict is one row")
    refused(data, 7, "int")
    refused(data, b"bytes", "bytes")
    refused(data, None, "NoneType")
    refused(data, [{"a": "x"}], "row 0, column 'a': 'x' is no int64", schema={"a": "int64"})
    refused(data, [{"a": 1, "b": 2}], "'b'", "none of the columns a", schema={"a": "int64"})
    refused(data, [{"a": None}], "'a' must have values", schema=pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    refused(data, [], "no type", schema={"a": "integer of mine"})
    refused(data, [], "schema", schema=["a"])
    refused(data, [], "twice", schema=pa.schema([("a", pa.int64()), ("a", pa.int64())]))


def test_arrow_goes_into_the_schema_that_is_given(data: Data) -> None:
    made = data.create(TABLE, schema={"name": "string", "id": "double"})
    assert made.table().to_pylist() == [{"name": row["name"], "id": float(row["id"])} for row in TABLE.to_pylist()]
    kept = data.list()
    for schema, words in (({"id": "int64"}, "name"), ({"id": "int64", "name": "int64"}, "cannot become")):
        with pytest.raises(DataError, match=words):
            data.create(TABLE, schema=schema)
    with pytest.raises(DataError, match="'a' comes twice"):
        data.create(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    assert data.list() == kept


# Files.


def test_parquet_files_and_folders(data: Data, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "deep"
    folder.mkdir(parents=True)
    pq.write_table(TABLE, tmp_path / "one.parquet")
    pq.write_table(TABLE.slice(0, 2), folder / "a.parquet")
    pq.write_table(TABLE.slice(2, 1), tmp_path / "in" / "z.parquet")
    (tmp_path / "in" / "_SUCCESS").write_text("")
    for source in (tmp_path / "one.parquet", str(tmp_path / "one.parquet"), (tmp_path / "one.parquet").as_uri(),
                   tmp_path / "in"):  # fmt: skip
        assert data.create(source).table() == TABLE


def test_csv_files(data: Data, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,name\n1,a\n2,\n3,c\n")
    assert data.create(path).table().column("id").to_pylist() == [1, 2, 3]
    typed = data.create(path, schema={"id": "string", "name": "string"})
    assert typed.table().column("id").to_pylist() == ["1", "2", "3"]


def test_a_file_by_url(data: Data, tmp_path: Path) -> None:
    import fsspec

    with fsspec.open("memory://incoming/x.parquet", "wb") as file:
        pq.write_table(TABLE, file)
    assert data.create("memory://incoming/x.parquet").table() == TABLE


def test_files_that_make_no_table(data: Data, tmp_path: Path) -> None:
    refused(data, tmp_path / "missing.parquet", "no file", "Object.open")
    refused(data, "obj_01j000000000000000000000aa", "Object.open")
    (tmp_path / "empty").mkdir()
    refused(data, tmp_path / "empty", "no Parquet file")
    (tmp_path / "notes.txt").write_text("x")
    refused(data, tmp_path / "notes.txt", ".parquet")
    refused(data, "memory://somewhere/notes.txt", ".parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not at all")
    refused(data, tmp_path / "broken.parquet", "no table can be made")
    (tmp_path / "empty.csv").write_text("")
    refused(data, tmp_path / "empty.csv", "empty.csv", "CSV")
    with (tmp_path / "late.csv").open("w") as file:
        file.write("a\n" + "1\n" * 900_000 + "text\n")
    refused(data, tmp_path / "late.csv", "late.csv", "schema=")
    other = tmp_path / "other"
    other.mkdir()
    pq.write_table(TABLE, other / "a.parquet")
    pq.write_table(pa.table({"x": [1]}), other / "b.parquet")
    refused(data, other, "columns x: int64")


# Queries.


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (id INTEGER, name TEXT, price REAL)")
    connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(n, f"o:{n}", n / 2) for n in range(25_000)])
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"


def test_a_query(data: Data, shop: str) -> None:
    made = data.create(SQL("SELECT id, name FROM orders WHERE id < :top ORDER BY id", shop, {"top": 3}))
    assert made.table().to_pylist() == [{"id": n, "name": f"o:{n}"} for n in range(3)]
    assert data.create(SQL("SELECT id, price FROM orders ORDER BY id", shop)).table().num_rows == 25_000
    engine = create_engine(shop)
    with engine.connect() as connection:
        for where in (engine, connection):
            made = data.create(SQL("SELECT sum(id) AS total FROM orders", where))
            assert made.table().to_pylist() == [{"total": 312_487_500}]
    engine.dispose()
    driver = sqlite3.connect(shop.removeprefix("sqlite:///"))
    made = data.create(SQL("SELECT id FROM orders WHERE id > ?", driver, (24_997,)))
    assert made.table().to_pylist() == [{"id": 24_998}, {"id": 24_999}]
    driver.close()


async def test_a_query_from_async_code(data: Data, shop: str) -> None:
    made = await Object.create(SQL("SELECT id FROM orders WHERE id = 7", shop))
    assert await made.head() == [{"id": 7}]


def test_queries_that_make_no_table(data: Data, shop: str) -> None:
    refused(data, SQL("SELECT id, id FROM orders", shop), "'id' twice")
    refused(data, SQL("CREATE TABLE x (a)", shop), "gives no rows")
    refused(data, SQL("SELECT 1"), "cannot run a query", "SQL(query")
    refused(data, SQL("SELECT 1", parameters={"a": 1}), "no parameters")
    refused(data, SQL("SELECT 1", 7), "a URL or an open connection")
    for url in ("nonsense://user:hidden@host/x", "no url"):
        refused(data, SQL("SELECT 1", url), "SQLAlchemy")
    assert "hidden" not in repr(SQL("SELECT 1", "postgresql://user:hidden@host/x"))
    with pytest.raises(OperationalError, match="no such table"):
        data.create(SQL("SELECT * FROM nobody", shop))
    assert data.list() == []


# Places.


def test_urls_of_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    relative = Data("tables")
    monkeypatch.chdir("/")
    assert relative.url == (tmp_path / "tables").as_uri()
    assert relative.create(TABLE).table() == TABLE
    assert Data((tmp_path / "tables").as_uri()).list() == relative.list()
    for url in ("", "file://host/x", "file:///"):
        with pytest.raises(SettingsError):
            Data(url)
    with pytest.raises(DataError, match=r"'nonsense://u:\*\*\*@h/x'"):
        Data("nonsense://u:hidden@h/x").list()
    hidden = Data("clickhouse://u:hidden@h/x")
    assert "hidden" not in f"{hidden} {hidden.url} {hidden!r}"


def test_a_scheme_without_its_package_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtra, match="s3://"):
        Data("s3://bucket/tables").list()
    monkeypatch.delitem(sys.modules, "headrace.data.formats.fsspec")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match=r"headrace\[data\]"):
        Data("memory://x").list()


STREAM = """
import resource, sys
from headrace.data import Data
data = Data(sys.argv[1])
data.create([{"a": 1}]).table()
first = data.create(sys.argv[3])  # what the libraries take for themselves
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
made = data.create(sys.argv[2])
print(made.known().rows, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_file_is_streamed(tmp_path: Path) -> None:
    """The process grows by far less than the 64 MB that the table takes in memory: by 13, whatever the size."""
    rows = 1_000_000
    table = pa.table({name: pa.array(range(rows), pa.int64()) for name in "abcdefgh"})
    for name, part in (("large", table), ("small", table.slice(0, 50_000))):
        pq.write_table(part, tmp_path / f"{name}.parquet", row_group_size=50_000)
    del table
    files = [str(tmp_path / f"{name}.parquet") for name in ("large", "small")]
    said = subprocess.run(
        [sys.executable, "-c", STREAM, str(tmp_path / "place"), *files],
        capture_output=True, text=True, check=True, timeout=100,
    ).stdout.split()  # fmt: skip
    assert said[0] == str(rows)
    assert int(said[1]) < 35, f"grew by {said[1]} MB"
