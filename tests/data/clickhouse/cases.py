"""What holds for objects in ClickHouse beyond what every place must do; run on a server's interface and on chDB.

`PlaceCases` takes a fixture `place`: a ClickHouseBackend on an empty database.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.core.errors import DataError, NotFound, ObjectExists
from headrace.data.backend import Draft
from headrace.data.formats.clickhouse.backend import ClickHouseBackend, page_statement

ID = "obj_01"
ALL = 150_000  # two pages
NUMBERS = pa.record_batch({"number": pa.array(range(ALL))})
TYPES: dict[str, pa.Array] = {
    "bool": pa.array([True, None, False]),
    "int8": pa.array([-128, None, 127], pa.int8()),
    "uint64": pa.array([0, None, 2**64 - 1], pa.uint64()),
    "float16": pa.array([1.5, None, -2.0], pa.float16()),
    "float64": pa.array([0.1, None, float("inf")]),
    "string": pa.array(["ä", None, ""]),
    "large_string": pa.array(["ä", None, ""], pa.large_string()),
    "string_view": pa.array(["ä", None, ""], pa.string_view()),
    "binary": pa.array([b"\xff\x00", None, b""]),
    "binary_view": pa.array([b"\xff\x00", None, b""], pa.binary_view()),
    "fixed": pa.array([b"ab\0", None, b"xyz"], pa.binary(3)),
    "date32": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
    "date64": pa.array([0, None, 86_400_000], pa.date64()),
    "time32": pa.array([time(1, 2, 3), None, time(0)], pa.time32("s")),
    "time64": pa.array([time(1, 2, 3, 4), None, time(0)], pa.time64("us")),
    "duration": pa.array([timedelta(milliseconds=-1), None, timedelta(days=1)], pa.duration("ms")),
    "naive": pa.array([datetime(1, 1, 1), None, datetime(9999, 12, 31)], pa.timestamp("us")),  # noqa: DTZ001
    "in a zone": pa.array([0, None, -(10**9)], pa.timestamp("s", "Europe/Berlin")),
    "at an offset": pa.array([1, None, 2], pa.timestamp("ns", "+02:00")),
    "decimal": pa.array([Decimal("1.10"), None, Decimal("-99999.99")], pa.decimal128(7, 2)),
    "decimal256": pa.array([Decimal(10**57), None, Decimal("-0.01")], pa.decimal256(60, 2)),
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "null": pa.nulls(3),
    "list": pa.array([[1, None], None, []]),
    "list of lists": pa.array([[["a"], []], None, []]),
    "list of a size": pa.array([[1, 2], None, [3, None]], pa.list_(pa.int32(), 2)),
    "struct": pa.array([{"x": 1, "y": time(1)}, None, {"x": None, "y": None}]),
    "map": pa.array([[("a", 1)], None, [("b", None)]], pa.map_(pa.string(), pa.int64())),
    # Names that mean something to ClickHouse.
    "": pa.array([1, 2, 3]),
    "_part": pa.array([1, 2, 3]),
    "_headrace_row": pa.array([3, 2, 1]),
    "a.b": pa.array([[1], None, []]),
    "a.c": pa.array([[1, 2], [3], None]),
    "A": pa.array([1, 2, 3]),
    "a": pa.array([4, 5, 6]),
    "`\\'\" %5F\n": pa.array([1, 2, 3]),
}


def draft(id: str = ID, **known: Any) -> Draft:
    return Draft(id=id, created_at=datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC), **known)


def write(place: ClickHouseBackend, table: pa.Table | pa.RecordBatch, id: str = ID, **options: Any) -> Any:
    batches = table.to_batches() if isinstance(table, pa.Table) else [table]
    return place.write(draft(id), table.schema, batches, **options)


def rows(place: ClickHouseBackend, id: str = ID, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in place.read(id, **options) for row in batch.to_pylist()]


def numbers(place: ClickHouseBackend, **options: Any) -> list[int]:
    return [number for batch in place.read(ID, **options) for number in batch["number"].to_pylist()]


def tables(place: ClickHouseBackend) -> list[str]:
    """Everything that is stored, seen or not."""
    with place._connections.client() as client:
        found = client.query("SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY name")
    return [name for (name,) in found.result_rows]


class PlaceCases:
    def test_every_type_and_name_comes_back_as_it_was(self, place: ClickHouseBackend):
        fields = [pa.field(name, array.type, metadata={"unit": "m"}) for name, array in TYPES.items()]
        fields.append(pa.field("never null", pa.int64(), nullable=False))
        schema = pa.schema(fields, metadata={"made by": "hand"})
        table = pa.table([*TYPES.values(), pa.array([1, 2, 3])], schema=schema)
        meta = write(place, table)
        assert place.meta(ID) == meta
        assert meta.schema.equals(schema, check_metadata=True)
        found = pa.Table.from_batches(place.read(ID), meta.schema)
        found.validate(full=True)
        assert found.equals(table)
        twice = place.concat(draft("obj_02"), [ID, ID])
        assert pa.Table.from_batches(place.read("obj_02"), twice.schema).equals(pa.concat_tables([table, table]))
        assert rows(place, columns=["struct", "a.b"], offset=1, limit=1) == [{"struct": None, "a.b": None}]

    def test_what_is_known_of_an_object_is_kept(self, place: ClickHouseBackend):
        full = draft(name='it\'s \\ "fine"', owner="o", job=1, task=2**62, kept=True, expires_at=datetime.now(UTC))
        meta = place.write(full, NUMBERS.schema, [])
        assert place.meta(ID) == meta
        assert [getattr(meta, name) for name in Draft.__slots__] == [getattr(full, name) for name in Draft.__slots__]
        assert list(place.list()) == [meta]

    def test_a_table_without_columns_has_its_rows(self, place: ClickHouseBackend):
        assert write(place, NUMBERS.slice(0, 3).select([])).rows == 3
        assert [batch.num_rows for batch in place.read(ID)] == [3]

    def test_what_cannot_be_held_is_refused_and_leaves_nothing(self, place: ClickHouseBackend):
        with pytest.raises(DataError, match="'odd': ClickHouse cannot hold month_day_nano_interval"):
            place.write(draft(), pa.schema([("odd", pa.month_day_nano_interval())]), _never())
        nested = pa.record_batch({"a": pa.array([[[1]], [None]], pa.list_(pa.list_(pa.int64())))})
        with pytest.raises(DataError, match="null"):
            place.write(draft(), nested.schema, [nested.slice(0, 1)] * 3 + [nested])
        assert tables(place) == []

    def test_a_slice_reads_a_range_of_the_key(self, place: ClickHouseBackend):
        write(place, NUMBERS)
        record = place._record(ID)
        with place._connections.client() as client:
            estimate = client.query(f"EXPLAIN ESTIMATE {page_statement(record, ['number'], 100_000, 110_000)}")
        to_read = estimate.result_rows[0][estimate.column_names.index("rows")]
        assert 10_000 <= to_read <= 10_000 + 2 * 8192
        assert numbers(place, offset=100_000, limit=10_000) == list(range(100_000, 110_000))

    @pytest.mark.parametrize("act", ["drop", "replace"])
    def test_a_reader_of_what_is_gone_is_told(self, place: ClickHouseBackend, act: str):
        write(place, NUMBERS)
        reader = place.read(ID)
        assert next(reader)["number"][0].as_py() == 0
        if act == "drop":
            place.drop(ID)
        else:
            write(place, NUMBERS, replace=True)
        with pytest.raises(NotFound, match="dropped or replaced"):
            list(reader)
        with pytest.raises(NotFound) if act == "drop" else nullcontext():
            assert numbers(place) == list(range(ALL))

    def test_one_of_those_who_write_an_id_at_once_wins(self, place: ClickHouseBackend):
        together = threading.Barrier(4)

        def batches(number: int) -> Iterator[Any]:
            together.wait(60)  # all have seen that the id is free
            yield pa.record_batch({"number": pa.array([number] * 5)})

        def compete(number: int) -> bool:
            try:
                place.write(draft(), NUMBERS.schema, batches(number))
            except ObjectExists:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(compete, range(4)))
        assert won.count(True) == 1
        assert rows(place) == [{"number": won.index(True)}] * 5
        assert tables(place) == [ID]

    def test_the_last_of_those_who_replace_stands_whole(self, place: ClickHouseBackend):
        batches = [pa.record_batch({"number": pa.array([number] * (number + 1))}) for number in range(6)]
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda batch: write(place, batch, replace=True), batches))
        found = rows(place)
        assert len(found) == found[0]["number"] + 1
        assert len({row["number"] for row in found}) == 1
        assert tables(place) == [ID]

    def test_many_threads_read_at_once(self, place: ClickHouseBackend):
        write(place, NUMBERS)
        with ThreadPoolExecutor(6) as pool:
            parts = pool.map(lambda first: numbers(place, offset=first, limit=10_000), range(0, ALL, 10_000))
            assert [number for part in parts for number in part] == list(range(ALL))

    def test_a_query_keeps_its_order_and_its_types(self, place: ClickHouseBackend):
        write(place, pa.table({name: TYPES[name] for name in ("A", "_part", "list", "a.b", "decimal")}))
        meta = place.query(draft("obj_02"), f"SELECT * FROM {ID} ORDER BY `A` DESC -- the last first;")
        assert meta.schema.names == ["A", "_part", "list", "a.b", "decimal"]
        assert [row["A"] for row in rows(place, "obj_02")] == [3, 2, 1]
        place.query(draft("obj_03"), f"SELECT l.*, r.`A` FROM {ID} l JOIN {ID} r USING (`A`) ORDER BY `A`;")
        assert [row["A"] for row in rows(place, "obj_03")] == [1, 2, 3]
        place.query(draft("obj_04"), "SELECT number AS n FROM numbers(500000) ORDER BY n DESC")
        assert rows(place, "obj_04", offset=250_000, limit=1) == [{"n": 249_999}]
        assert place.query(draft("obj_05"), "SELECT 1 AS a WHERE a = 2").rows == 0

    def test_a_query_gives_what_a_person_means(self, place: ClickHouseBackend):
        place.query(
            draft(),
            "SELECT toDate('2026-01-02') AS day, toDateTime('2026-01-02 03:04:05', 'UTC') AS at, "
            "generateUUIDv4() AS id, toIPv4('1.2.3.4') AS address, CAST('a', 'Enum8(\\'a\\' = 1)') AS letter, "
            "NULL AS nothing, [1] AS list",
        )
        (row,) = rows(place)
        assert (len(row.pop("id")), row) == (
            36,
            {
                "day": date(2026, 1, 2),
                "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
                "address": "1.2.3.4",
                "letter": "a",
                "nothing": None,
                "list": [1],
            },
        )

    @pytest.mark.parametrize(
        ("sql", "words"),
        [
            ("SELECT 1 AS a, * FROM (SELECT 2 AS a)", "name"),
            ("SELECT toInt128(1) AS a", "Int128; cast it in the query"),
            ("SELECT * FROM nothing_of_that_name", "UNKNOWN_TABLE"),
            ("DROP TABLE obj_01", "SYNTAX_ERROR"),
            ("SELECT 1) UNION ALL (SELECT 2", "SYNTAX_ERROR|UNION"),
            ("SELECT throwIf(number = 5000) FROM numbers(10000)", "throwIf"),
        ],
    )
    def test_a_query_that_cannot_be_an_object(self, place: ClickHouseBackend, sql: str, words: str):
        write(place, NUMBERS.slice(0, 5))
        with pytest.raises(DataError, match=words):
            place.query(draft("obj_02"), sql)
        assert tables(place) == [ID]

    def test_only_what_is_old_is_pruned(self, place: ClickHouseBackend):
        write(place, NUMBERS.slice(0, 5))
        seen: list[int] = []

        def batches() -> Iterator[Any]:
            yield NUMBERS
            seen.append(place.prune(datetime.now(UTC) - timedelta(minutes=5)))
            yield NUMBERS

        place.write(draft("obj_02"), NUMBERS.schema, batches())
        assert seen == [0]

        def swept() -> Iterator[Any]:
            yield NUMBERS
            seen.append(place.prune(datetime.now(UTC) + timedelta(minutes=5)))
            yield NUMBERS

        with pytest.raises(DataError):  # taken for dead, and told
            place.write(draft("obj_03"), NUMBERS.schema, swept())
        assert seen == [0, 1]
        assert tables(place) == [ID, "obj_02"]

    def test_closed_it_opens_again(self, place: ClickHouseBackend):
        write(place, NUMBERS.slice(0, 5))
        reader = place.read(ID)
        place.close()
        assert sum(batch.num_rows for batch in reader) == 5
        place.close()
        assert place.meta(ID) is not None

    def test_tables_of_others_are_left_alone(self, place: ClickHouseBackend):
        with place._connections.client() as client:
            client.command("CREATE TABLE obj_theirs (a Int64) ENGINE = MergeTree ORDER BY a COMMENT 'mine'")
        assert list(place.list()) == []
        assert place.meta("obj_theirs") is None
        with pytest.raises(ObjectExists):
            write(place, NUMBERS.slice(0, 5), "obj_theirs")
        assert not place.drop("obj_theirs")
        assert tables(place) == ["obj_theirs"]


def _never() -> Iterator[Any]:
    raise AssertionError("no row was to be read")
    yield
