"""The arithmetic of sort and join over tables that are larger than memory: boundaries from samples cut the chunks.

Arrow itself compares, whatever the types and orders, with nulls last; so the parts in their order are what Arrow's own
sort of the whole would be. Rows of equal keys are never split, and keep their order.
"""

from collections.abc import Sequence
from typing import Any, cast

import pyarrow
import pyarrow.compute

from headrace.core.errors import DataError

pa: Any = cast("Any", pyarrow)
pc: Any = cast("Any", pyarrow.compute)

type SortKeys = Sequence[tuple[str, str]]

_SIDE, _ROW = "__headrace_side", "__headrace_row"
_ORDERS = ("ascending", "descending")


def sort_keys(by: Any, schema: Any) -> list[tuple[str, str]]:
    """`"a"`, `["a", "b"]` or `[("a", "descending"), …]`, checked against the columns that there are."""
    if not isinstance(by, str | list | tuple):
        raise DataError(f"sort takes a column, or a list of columns, not {by!r}")
    given: list[Any] = [by] if isinstance(by, str) else list(cast("Any", by))
    keys = [(key, "ascending") if isinstance(key, str) else tuple(key) for key in given]
    if not keys:
        raise DataError("sort needs at least one column")
    for key in keys:
        if len(key) != 2 or key[1] not in _ORDERS:
            raise DataError(f"sort takes columns, or (column, 'ascending' or 'descending'), not {key!r}")
        if key[0] not in schema.names:
            raise DataError(f"there is no column {key[0]!r} to sort by; there are {', '.join(schema.names) or 'none'}")
    try:
        pc.sort_indices(schema.empty_table(), sort_keys=keys)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise DataError(f"these columns have no order, cast them to a plain type such as text: {error}") from error
    return [(name, order) for name, order in keys]


def nullable(schema: Any, names: Sequence[str]) -> Any:
    """These columns of a schema, as they are where null is allowed."""
    return pa.schema([pa.field(name, schema.field(name).type) for name in names])


def boundaries(samples: Any, keys: SortKeys, parts: int) -> Any:
    """At most `parts` - 1 keys, in order and each once, that cut the samples into parts of a size."""
    names = [name for name, _ in keys]
    ordered = samples.select(names).take(pc.sort_indices(samples, sort_keys=list(keys)))
    if parts < 2 or not ordered.num_rows:
        return ordered.slice(0, 0)
    places = sorted({number * ordered.num_rows // parts for number in range(1, parts)})
    rows = ordered.take(places).to_pylist()
    kept = [place for place, row, before in zip(places, rows, [None, *rows], strict=False) if row != before]
    return ordered.take(kept)


def split(table: Any, keys: SortKeys, cuts: Any) -> tuple[Any, list[int]]:
    """The table sorted, and where in it each part begins, with its end as the last: one more number than parts. A row
    that equals a boundary belongs to the part before it."""
    count, marks = table.num_rows, cuts.num_rows
    names = [name for name, _ in keys]
    schema = nullable(table.schema, names)
    sides = [_sided(each.select(names).cast(schema), side) for side, each in enumerate((table, cuts))]
    marked = pa.concat_tables(sides).combine_chunks()
    order = [*keys, (_SIDE, "ascending"), (_ROW, "ascending")]
    indices = pc.sort_indices(marked, sort_keys=order)
    is_mark = pc.greater_equal(indices, pa.scalar(count, pa.uint64()))
    places = pc.indices_nonzero(is_mark).to_pylist()
    starts = [place - number for number, place in enumerate(places)]
    assert len(starts) == marks
    return table.take(indices.filter(pc.invert(is_mark))), [0, *starts, count]


def merged(parts: Sequence[Any], keys: SortKeys) -> Any:
    """Sorted runs as one sorted table; rows of equal keys in the order of the runs."""
    table = pa.concat_tables(parts).combine_chunks()
    numbered = _sided(table.select([name for name, _ in keys]), 0)
    order = [*keys, (_ROW, "ascending")]
    return table.take(pc.sort_indices(numbered, sort_keys=order))


def joined(left: Any, right: Any, on: Sequence[str], how: str, suffix: str) -> Any:
    taken = set(left.column_names) & set(right.column_names) - set(on)
    return left.join(
        right,
        keys=list(on),
        join_type="inner" if how == "inner" else "left outer",
        right_suffix=suffix if taken else None,
        use_threads=False,
    )


def checked_join(left: Any, right: Any, on: Any, how: str, suffix: str) -> tuple[list[str], Any]:
    """The keys, and the columns that a join of these two gives; DataError when it cannot be."""
    if not isinstance(on, str | list | tuple):
        raise DataError(f"join takes a column, or a list of columns, not {on!r}")
    keys: list[str] = [on] if isinstance(on, str) else list(cast("Any", on))
    if len(set(keys)) < len(keys):
        raise DataError(f"join takes each column once, not {keys!r}")
    if how not in ("inner", "left"):
        raise DataError(f"how is 'inner' or 'left', not {how!r}")
    if not keys:
        raise DataError("join needs at least one column")
    for side, schema in (("left", left), ("right", right)):
        for name in keys:
            if name not in schema.names:
                raise DataError(f"the {side} table has no column {name!r}; it has {', '.join(schema.names) or 'none'}")
    for name in keys:
        if left.field(name).type != right.field(name).type:
            raise DataError(
                f"column {name!r} is {left.field(name).type} on the left and {right.field(name).type} on the right; "
                "cast one of them"
            )
    sort_keys(keys, left)
    try:
        schema = joined(left.empty_table(), right.empty_table(), keys, how, suffix).schema
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise DataError(f"Arrow cannot join these tables: {error}") from error
    if twice := sorted({name for name in schema.names if schema.names.count(name) > 1}):
        raise DataError(f"column {twice[0]!r} would come twice; give another suffix=, or rename one")
    return keys, schema


def _sided(table: Any, side: int) -> Any:
    count = table.num_rows
    return table.append_column(_SIDE, pa.repeat(pa.scalar(side, pa.int8()), count)).append_column(
        _ROW, pa.array(range(count), pa.int64())
    )
