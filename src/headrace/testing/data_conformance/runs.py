"""Tables that are cut into parts, of which each is read alone, out of many of them."""

from functools import partial
from itertools import pairwise
from typing import Any, cast

import pyarrow

from headrace.core.errors import DataError, NotFound, ObjectExists
from headrace.testing.data_conformance.case import Cases
from headrace.testing.data_conformance.shapes import SHAPES
from headrace.testing.data_conformance.stand import Stand, numbers, refuses, same

pa: Any = cast("Any", pyarrow)

cases = Cases("runs")


@cases.add()
def a_part_is_its_rows_of_every_run_in_their_order(stand: Stand) -> None:
    """More runs than a place takes at once. Some have no rows of the part, and some have fewer parts."""
    cuts = [(2, 2, 4), (6,), (0, 5, 6), (1, 1), (0, 0, 0, 6), (3, 4, 6)]  # where their parts end
    rows: dict[str, list[list[int]]] = {}
    for run, ends in enumerate(cuts):
        table = numbers(6, start=10 * run)
        pieces = [table.slice(start, end - start) for start, end in pairwise((0, *ends))]
        _write(stand, f"obj_r{run}", pieces)
        rows[f"obj_r{run}"] = [piece.column("n").to_pylist() for piece in pieces]
    ids = [f"obj_r{run}" for run in (3, 0, 5, 1, 4, 2)] * 20
    for part in range(5):
        expected = [n for id in ids for n in ([*rows[id], [], [], [], []][part])]
        assert [n for batch in stand.backend.read_part(ids, part) for n in batch.column("n").to_pylist()] == expected
    assert not list(stand.backend.read_part([], 0))


@cases.add()
def all_of_it_can_be_read(stand: Stand) -> None:
    table = numbers(100)
    meta = _write(stand, "obj_a", [table.slice(0, 40), table.slice(40, 0), table.slice(40)])
    assert (meta.rows, meta.schema) == (100, table.schema)
    assert stand.meta("obj_a") == meta
    assert stand.ids() == ["obj_a"]
    same(stand.read("obj_a"), table)
    same(stand.read("obj_a", 35, 10, ["text"]), table.slice(35, 10).select(["text"]))
    stand.backend.concat(stand.draft("obj_b"), ["obj_a", "obj_a"])
    assert stand.backend.drop("obj_a")
    same(stand.read("obj_b"), pa.concat_tables([table, table]))
    refuses(NotFound, lambda: list(stand.backend.read_part(["obj_a"], 0)), "obj_a")


@cases.add()
def types_stay_what_they_are(stand: Stand) -> None:
    for number, (name, make) in enumerate(SHAPES.items()):
        if name in stand.refused:
            continue
        table = make()
        _write(stand, f"obj_t{number}", [table.slice(0, 1), table.slice(1)])
        for part, expected in enumerate([table.slice(0, 1), table.slice(1)]):
            batches = list(stand.backend.read_part([f"obj_t{number}"], part))
            same(pa.Table.from_batches(batches, expected.schema), expected)


@cases.add()
def a_run_without_rows(stand: Stand) -> None:
    table = numbers(0)
    meta = _write(stand, "obj_a", [table, table])
    assert (meta.rows, meta.schema) == (0, table.schema)
    assert not list(stand.backend.read_part(["obj_a"], 1))
    same(stand.read("obj_a"), table)


@cases.add()
def a_run_is_replaced_when_its_task_is_repeated(stand: Stand) -> None:
    table = numbers(3)
    _write(stand, "obj_a", [table])
    refuses(ObjectExists, partial(_write, stand, "obj_a", [table]), "obj_a")
    _write(stand, "obj_a", [table], replace=True)
    same(pa.Table.from_batches(stand.backend.read_part(["obj_a"], 0)), table)
    assert stand.ids() == ["obj_a"]
    refuses(DataError, partial(_write, stand, "obj_b", [table.select(["n"])], schema=table.schema))
    assert stand.backend.meta("obj_b") is None


@cases.add()
def what_was_not_cut_has_no_parts(stand: Stand) -> None:
    stand.write(numbers(3), "obj_a")
    refuses(DataError, lambda: list(stand.backend.read_part(["obj_a"], 0)))


def _write(stand: Stand, id: str, parts: list[Any], *, schema: Any = None, replace: bool = False) -> Any:
    cut = [part.to_batches() for part in parts]
    return stand.backend.write_run(stand.draft(id), schema or parts[0].schema, cut, replace=replace)
