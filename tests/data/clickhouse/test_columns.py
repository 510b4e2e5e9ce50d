"""What goes to ClickHouse for a column, and what is refused before anything goes."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import DataError
from headrace.data.formats.clickhouse.columns import ROW, columns_of, decode, encode, shown_name, stored_name
from headrace.data.formats.clickhouse.staging import blocks

STRUCT = pa.struct([("c", pa.int8())])
REFUSED = {
    "a union": pa.dense_union([pa.field("a", pa.int64())]),
    "an interval": pa.month_day_nano_interval(),
    "run ends": pa.run_end_encoded(pa.int32(), pa.int64()),
    "an extension type": pa.uuid(),
    "a struct without fields": pa.struct([]),
    "a dictionary within a list": pa.list_(pa.dictionary(pa.int8(), pa.string())),
    "a null type within a list": pa.list_(pa.null()),
    "a decimal of tens": pa.decimal128(5, -1),
    "a field with a dot": pa.struct([("a.b", pa.int64())]),
    "a view of lists": pa.list_view(pa.int64()),
}


@pytest.mark.parametrize("type", REFUSED.values(), ids=REFUSED)
def test_a_type_that_clickhouse_cannot_hold_is_refused_by_name(type: pa.DataType):
    with pytest.raises(DataError, match="column 'odd"):
        columns_of(pa.schema([("even", pa.int64()), ("odd", type)]))


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(DataError, match="same name"):
        columns_of(pa.schema([("a", pa.int64()), ("a", pa.string())]))


def test_types_there():
    schema = pa.schema(
        [
            pa.field("count", pa.int64(), nullable=False),
            ("price", pa.decimal128(12, 2)),
            ("at", pa.timestamp("us", "Europe/Berlin")),
            ("offset", pa.timestamp("ms", "+02:00")),
            ("naive", pa.timestamp("ns")),
            ("tags", pa.list_(pa.string())),
        ]
    )
    assert [column.kind for column in columns_of(schema)] == [
        "Int64",
        "Nullable(Decimal(12, 2))",
        "Nullable(DateTime64(6, 'Europe/Berlin'))",
        "Nullable(DateTime64(3, 'UTC'))",
        "Nullable(DateTime64(9, 'UTC'))",
        "Array(Nullable(String))",
    ]
    assert [column.mask for column in columns_of(schema)] == [None] * 5 + ["_headrace_null_5"]


@given(st.text())
def test_every_name_has_one_of_its_own_and_comes_back(name: str):
    stored = stored_name(name)
    assert stored
    assert not stored.startswith("_")
    assert "." not in stored
    assert shown_name(stored) == name


def test_rows_are_numbered_from_where_the_last_batch_ended():
    batch = pa.record_batch({"a": pa.array([7, 8, 9])})
    columns = columns_of(batch.schema)
    assert encode(batch, columns, 0)[ROW].to_pylist() == [0, 1, 2]
    assert encode(batch, columns, 5)[ROW].to_pylist() == [5, 6, 7]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (pa.array([[[1], None]], pa.list_(pa.list_(pa.int64()))), r"'a\[\]'"),
        (pa.array([{"b": None}], pa.struct([("b", pa.list_(pa.int64()))])), "'a.b'"),
        (pa.array([[("k", None)]], pa.map_(pa.string(), pa.list_(pa.int64()))), r"'a\[\]'"),
        (pa.array([[{"b": [None]}]], pa.list_(pa.struct([("b", pa.list_(STRUCT))]))), r"a\[\].b\[\]"),
    ],
)
def test_a_null_that_would_come_back_as_something_else_is_refused(array: pa.Array, words: str):
    batch = pa.record_batch({"a": array})
    with pytest.raises(DataError, match=words):
        encode(batch, columns_of(batch.schema), 0)


def test_what_lies_outside_a_slice_or_under_a_null_is_not_refused():
    inner = pa.array([[[1], None], [[2]], None], pa.list_(pa.list_(pa.int64())))
    maps = pa.array([[("k", None)], [("k", [1])], None], pa.map_(pa.string(), pa.list_(pa.int64())))
    batch = pa.record_batch({"a": inner, "b": maps}).slice(1)
    columns = columns_of(batch.schema)
    stored = encode(batch, columns, 0)
    assert stored["_headrace_null_0"].to_pylist() == [False, True]
    assert decode(stored.select([name for column in columns for name in column.names]), columns).equals(batch)


def test_a_column_without_nulls_has_none():
    batch = pa.record_batch([pa.array([1, None])], schema=pa.schema([pa.field("a", pa.int64(), nullable=False)]))
    with pytest.raises(DataError, match="'a' says that it has no nulls, and has 1"):
        encode(batch, columns_of(batch.schema), 0)


def test_many_small_batches_make_few_inserts_and_a_large_one_is_cut():
    small = pa.record_batch({"a": pa.array(range(10))})
    assert [len(block) for block in blocks([small] * 50)] == [50]
    assert list(blocks([small.slice(0, 0)])) == []
    large = pa.record_batch({"a": pa.repeat(1, 2_500_000)})
    cut = [sum(piece.num_rows for piece in block) for block in blocks([large])]
    assert cut == [1_000_000, 1_000_000, 500_000]
    wide = pa.record_batch({"a": pa.array(["x" * (1 << 20)] * 40)})
    assert max(sum(piece.nbytes for piece in block) for block in blocks([wide])) <= 33 << 20
    assert sum(piece.num_rows for block in blocks([wide]) for piece in block) == 40
