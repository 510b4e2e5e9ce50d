"""One object of several, in their order, which does not need them any more."""

from functools import partial
from typing import Any, cast

import pyarrow

from headrace.core.errors import DataError, NotFound, ObjectExists
from headrace.testing.data_conformance.case import Cases
from headrace.testing.data_conformance.stand import Stand, numbers, refuses, same

pa: Any = cast("Any", pyarrow)

cases = Cases("concat")


@cases.add()
def the_order_is_that_of_the_parts(stand: Stand) -> None:
    """Not that of their ids, nor that in which they were written; one may come twice, and one may be empty."""
    parts = {"obj_b": numbers(12_000), "obj_c": numbers(0), "obj_a": numbers(3, start=100)}
    for id, table in parts.items():
        stand.write(table, id)
    order = ["obj_c", "obj_b", "obj_a", "obj_b"]
    made = stand.backend.concat(stand.draft("obj_z", name="all"), order)
    whole = pa.concat_tables([parts[id] for id in order])
    assert (made.rows, made.name) == (24_003, "all")
    assert stand.meta("obj_z") == made
    same(stand.read("obj_z"), whole)
    assert stand.read("obj_z", 11_990, 30).equals(whole.slice(11_990, 30))


@cases.add()
def the_parts_can_be_dropped(stand: Stand) -> None:
    stand.write(numbers(3), "obj_a")
    stand.write(numbers(4), "obj_b")
    stand.backend.concat(stand.draft("obj_z"), ["obj_a", "obj_b"])
    stand.backend.drop("obj_a")
    stand.backend.drop("obj_b")
    same(stand.read("obj_z"), pa.concat_tables([numbers(3), numbers(4)]))
    stand.backend.concat(stand.draft("obj_y"), ["obj_z", "obj_z"])
    stand.backend.drop("obj_z")
    assert stand.meta("obj_y").rows == 14
    assert stand.ids() == ["obj_y"]


@cases.add()
def many_parts(stand: Stand) -> None:
    for number in range(40):
        stand.write(numbers(2, start=10 * number), f"obj_part_{number}")
    stand.backend.concat(stand.draft("obj_z"), [f"obj_part_{number}" for number in range(40)])
    assert stand.read("obj_z").column("n").to_pylist() == [10 * number + n for number in range(40) for n in (0, 1)]


@cases.add()
def what_cannot_be_one_is_refused(stand: Stand) -> None:
    stand.write(numbers(3), "obj_a")
    stand.write(pa.table({"n": ["x"]}), "obj_text")
    for parts, kind in ((["obj_a", "obj_text"], DataError), (["obj_a", "obj_nobody"], NotFound)):
        refuses(kind, partial(stand.backend.concat, stand.draft("obj_z"), parts), parts[1])
        assert stand.backend.meta("obj_z") is None


@cases.add()
def an_id_is_taken_once(stand: Stand) -> None:
    stand.write(numbers(3), "obj_a")
    stand.write(numbers(9), "obj_z")
    concat = partial(stand.backend.concat, stand.draft("obj_z"), ["obj_a", "obj_a"])
    refuses(ObjectExists, concat, "obj_z")
    same(stand.read("obj_z"), numbers(9))
    concat(replace=True)
    same(stand.read("obj_z"), pa.concat_tables([numbers(3), numbers(3)]))
