"""What goes in comes out, in value and in type; what cannot be stored is refused, and never changed."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pyarrow

from headrace.core.errors import DataError
from headrace.testing.data_conformance.case import Cases
from headrace.testing.data_conformance.shapes import SHAPES
from headrace.testing.data_conformance.stand import Stand, refuses, same

pa: Any = cast("Any", pyarrow)

cases = Cases("types")


def _comes_back(name: str, make: Callable[[], Any], stand: Stand) -> None:
    table = make()
    if name in stand.refused:
        refuses(DataError, lambda: stand.write(table, "obj_refused"), "value")  # the name of the column
        assert stand.backend.meta("obj_refused") is None
        return
    meta = stand.write(table, "obj_whole", rows=2)
    same(stand.read("obj_whole"), table)
    assert meta.rows == table.num_rows
    assert meta.schema.equals(table.schema)
    assert stand.meta("obj_whole") == meta
    same(stand.read("obj_whole", 1, 1), table.slice(1, 1))
    # The same without a row: the types alone.
    stand.write(table.slice(0, 0), "obj_empty")
    same(stand.read("obj_empty"), table.slice(0, 0))


for _name, _make in SHAPES.items():
    cases.put(_name, partial(_comes_back, _name, _make))


@cases.add()
def a_column_that_must_have_values_stays_one(stand: Stand) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])
    table = pa.table({"id": [1, 2], "text": ["a", None]}, schema=schema)
    stand.write(table, "obj_a")
    same(stand.read("obj_a"), table)


@cases.add()
def names_of_columns_are_free(stand: Stand) -> None:
    """Spaces, quotes, dots, other scripts, words of SQL, and names that differ by case alone."""
    names = ["select", "a b", "ü ☃", 'quote"d', "it's", "back`tick", "semi;colon", "per%cent", "a.b", "A", "a", "_id"]
    table = pa.table({name: pa.array([number, None]) for number, name in enumerate(names)})
    stand.write(table, "obj_a")
    same(stand.read("obj_a"), table)
    same(stand.read("obj_a", columns=["A", "a.b", "back`tick"]), table.select(["A", "a.b", "back`tick"]))
