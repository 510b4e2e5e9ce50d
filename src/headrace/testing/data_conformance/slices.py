"""Slices are what PyArrow gives, every time, and views have every row once."""

from random import Random
from typing import Any, cast

import pyarrow

from headrace.core.errors import DataError
from headrace.testing.data_conformance.case import Cases
from headrace.testing.data_conformance.stand import Stand, numbers, refuses, same

pa: Any = cast("Any", pyarrow)

cases = Cases("slices")


@cases.add("A74")
def a_slice_is_what_pyarrow_gives(stand: Stand) -> None:
    """Every slice equals `table.slice` of the rows in the order in which they were written (stable order): at the
    borders of batches and row groups, beyond the end, and at random."""
    rows = 35_000
    table = numbers(rows)
    stand.write(table, "obj_a", rows=7000)
    random = Random(5)
    edges = [0, 1, 6999, 7000, 9999, 10_000, 10_001, 19_999, 20_000, rows - 1, rows, rows + 5]
    spans = [(offset, limit) for offset in edges for limit in (0, 1, 10_000)]
    spans += [(random.randrange(rows), random.randrange(2 * rows)) for _ in range(20)]
    for offset, limit in spans:
        found = stand.read("obj_a", offset, limit, ["n"])
        assert found.equals(table.select(["n"]).slice(offset, limit)), (offset, limit)
    same(stand.read("obj_a", 34_990), table.slice(34_990))


@cases.add("A74")
def slices_are_disjoint_and_complete(stand: Stand) -> None:
    """Chunks of any size, put together again, are the whole: no row is missing (complete) or comes twice (disjoint)."""
    table = numbers(23_456)
    stand.write(table, "obj_a", rows=5000)
    for size in (1111, 10_000, 23_455, 23_456, 50_000):
        chunks = [stand.read("obj_a", offset, size) for offset in range(0, table.num_rows, size)]
        assert pa.concat_tables(chunks).equals(table), size


@cases.add()
def tables_at_random(stand: Stand) -> None:
    random = Random(11)
    for number in range(12):
        rows = random.choice((0, 1, 2, 17, 300))
        table = pa.table(
            {
                "k": pa.array([random.choice((None, random.randrange(5))) for _ in range(rows)], pa.int64()),
                "s": pa.array([random.choice((None, "", "a", "é" * 7)) for _ in range(rows)], pa.string()),
                "f": pa.array([random.random() for _ in range(rows)], pa.float64()),
            }
        )
        id = f"obj_{number:02}"
        stand.write(table, id, rows=random.randrange(1, 50))
        for _ in range(6):
            offset, limit = random.randrange(rows + 2), random.randrange(rows + 2)
            same(stand.read(id, offset, limit), table.slice(offset, limit))


@cases.add()
def columns_come_in_the_order_asked_for(stand: Stand) -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [0.5, None, 1.5]})
    stand.write(table, "obj_a")
    same(stand.read("obj_a", 1, 2, ["c", "a"]), table.select(["c", "a"]).slice(1, 2))
    refuses(DataError, lambda: stand.read("obj_a", columns=["a", "nobody"]), "'nobody'", "obj_a")


@cases.add()
def rows_that_are_alike_keep_their_places(stand: Stand) -> None:
    """An order by the values would not be stable here: most of them are equal."""
    table = pa.table({"k": [n % 3 for n in range(25_000)], "n": list(range(25_000))})
    stand.write(table, "obj_a", rows=999)
    for _ in range(2):
        assert stand.read("obj_a", 9_990, 20).equals(table.slice(9_990, 20))
    assert stand.read("obj_a", 12_345, 5, ["k"]).equals(table.select(["k"]).slice(12_345, 5))


@cases.add()
def a_reader_may_stop_early(stand: Stand) -> None:
    stand.write(numbers(30_000), "obj_a")
    reader = stand.backend.read("obj_a")
    assert next(reader).num_rows > 0
    del reader
    assert stand.backend.drop("obj_a") is True
