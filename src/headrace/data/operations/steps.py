"""The tasks that work over a table is made of. Workers find them by their dotted path and run them in child processes.

Each writes an object whose id it was given: a step that is repeated, because its worker died, replaces what it wrote.
"""

import asyncio
import base64
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, cast

from headrace.core.errors import DataError, NotFound, Permanent
from headrace.data.backend import ObjectMeta
from headrace.data.current import current_data
from headrace.data.operations.callbacks import Callback, filtered, mapped, reduced, reduced_rows

type Reference = dict[str, Any]

# Rows of the keys that are looked at to find boundaries, over the whole table.
_SAMPLES = 20_000
_LOOKS = 200


IN_WORKER = f"{__name__}.in_worker"


class ChunkFailed(DataError):
    """A callback failed on a chunk of a table, which the message names."""


async def in_worker(step: str, given: dict[str, Any]) -> Any:
    """A step of a place that only one process can open: on a thread of the worker, instead of in a child."""
    return await asyncio.to_thread(_STEPS[step], **given)


def map_chunk(chunk: int, view: Reference, to: str, callback: str, mode: Any, schema: str | None = None) -> Reference:
    with _naming(chunk, view):
        table = mapped(Callback(path=callback, mode=mode), _rows(view), read_schema(schema))
    return _written(to, table)


def filter_chunk(chunk: int, view: Reference, to: str, callback: str, mode: Any) -> Reference:
    with _naming(chunk, view):
        table = filtered(Callback(path=callback, mode=mode), _rows(view))
    return _written(to, table)


def reduce_chunk(chunk: int, view: Reference, to: str, callback: str, mode: Any) -> Reference:
    with _naming(chunk, view):
        table = reduced(Callback(path=callback, mode=mode), _rows(view))
    return _written(to, table)


def reduce_partials(parts: list[Reference], to: str, callback: str, mode: Any, empty: str) -> Reference:
    """What chunks were reduced to, reduced again; of no chunks an empty table."""
    if _is_done(parts, to):
        return {"table_id": to}
    tables = [_rows(part) for part in parts]
    if not tables:
        return _written(to, read_schema(empty).empty_table())
    found = Callback(path=callback, mode=mode)
    if mode == "row":
        # A chunk of one row was not reduced: it may have other columns than what comes of two.
        table = reduced_rows(found, [row for table in tables for row in table.to_pylist()])
    else:
        schema = _common([table.schema for table in tables])
        batches = (batch for table in tables for batch in table.to_batches())
        widened = [batch.cast(schema) for batch in _with_columns(batches, schema)]
        table = reduced(found, _pa().Table.from_batches(widened, schema))
    answer = _written(to, table)
    _drop(parts)
    return answer


def collect(
    parts: list[Reference], to: str, empty: str | None = None, callback: str | None = None, mode: Any = None
) -> Reference:
    """The chunks as one object, in their order. `empty` says what an object of no chunks looks like; without it, what
    the callback makes of no rows."""
    if _is_done(parts, to):
        return {"table_id": to}
    data = current_data()
    ids = [part["table_id"] for part in parts]
    if not ids:
        data.concat([], schema=_empty_schema(empty, callback, mode), id=to, replace=True)
        return {"table_id": to}
    schemas = [data.meta(id).schema for id in ids]
    if all(schema.equals(schemas[0]) for schema in schemas):
        data.concat(ids, id=to, replace=True)
    else:
        # Rows without a schema of their own: a column of None in one chunk, of numbers in the next.
        schema = _common(schemas)
        batches = (batch for id in ids for batch in data.backend.read(id))
        _stream(to, schema, (batch.cast(schema) for batch in _with_columns(batches, schema)))
    _drop(parts)
    return {"table_id": to}


def find_boundaries(sides: list[dict[str, Any]], to: str, by: list[list[str]], parts: int) -> Reference:
    """The keys that cut a table (or two, for a join) into parts of a size, from a sample of their rows."""
    from headrace.data.operations.shuffling import boundaries, nullable

    keys = _keys(by)
    names = [name for name, _ in keys]
    # Whether a column may be null differs between two sides.
    schema = nullable(current_data().meta(sides[0]["table_id"]).schema, names)
    samples = [table.cast(schema) for side in sides for table in _sample(side, names, parts)]
    return _written(to, boundaries(_pa().concat_tables([schema.empty_table(), *samples]), keys, parts))


def sort_run(cuts: Reference, chunk: int, view: Reference, to: str, by: list[list[str]]) -> Reference:
    """A chunk in the order of its keys, cut into parts where it is stored: where each begins is known to nobody else.
    That is a number for each part and run, too many to be handed to every part."""
    from headrace.data.operations.shuffling import split

    with _naming(chunk, view):
        table, starts = split(_rows(view), _keys(by), _rows(cuts))
    parts = [table.slice(start, end - start).to_batches() for start, end in pairwise(starts)]
    current_data().write_run(table.schema, parts, id=to)
    return {"table_id": to}


def merge_part(of: str, runs: int, part: int, to: str, by: list[list[str]]) -> Reference:
    """One part of every run as one, sorted."""
    from headrace.data.operations.shuffling import merged

    ids = run_ids(of, range(runs))
    table = _part_of(ids, part)
    if table is None:
        return _written(to, current_data().meta(ids[0]).schema.empty_table())
    return _written(to, merged([table], _keys(by)))


def join_part(
    of: str, runs: list[int], part: int, to: str, sides: list[str], on: list[str], how: str, suffix: str
) -> Reference:
    """One part of both sides, each of so many runs. Where one has no rows, it has columns."""
    from headrace.data.operations.shuffling import joined

    left, right = runs
    both: list[Any] = []
    for id, own in zip(sides, (range(left), range(left, left + right)), strict=True):
        table = _part_of(run_ids(of, own), part)
        both.append(current_data().meta(id).schema.empty_table() if table is None else table.combine_chunks())
    return _written(to, joined(both[0], both[1], on, how, suffix))


def run_ids(of: str, numbers: Iterable[int]) -> list[str]:
    """The runs of an object that is sorted or joined. A part is told how many there are: a list of them in each would
    be as many names as parts times runs."""
    return [f"{of}_r{number}" for number in numbers]


def finish_shuffle(parts: list[Reference], to: str, empty: str, temporary: list[str]) -> Reference:
    """The parts as one object; what was made on the way is dropped."""
    answer = collect(parts, to, empty)
    for id in temporary:
        current_data().backend.drop(id)
    return answer


def write_schema(schema: Any) -> str | None:
    """A schema as text, so that it can be an argument."""
    return None if schema is None else base64.b64encode(schema.serialize()).decode()


def read_schema(text: str | None) -> Any:
    return None if text is None else _pa().ipc.read_schema(_pa().py_buffer(base64.b64decode(text)))


def _pa() -> Any:
    import pyarrow

    return cast("Any", pyarrow)


@contextmanager
def _naming(chunk: int, view: Reference) -> Generator[None]:
    """Whatever a callback raises says on which rows it did. What will never work is not tried again."""
    first = view["offset"]
    where = f"chunk {chunk} (rows {first} to {first + view['limit'] - 1} of {view['table_id']})"
    try:
        yield
    except Permanent as error:
        raise Permanent(f"{where}: {error}") from error
    except NotFound:
        raise
    except Exception as error:
        raise ChunkFailed(f"{where}: {type(error).__qualname__}: {error}") from error


def _rows(reference: Reference) -> Any:
    """An object or a view as a table."""
    data = current_data()
    offset, limit = reference.get("offset", 0), reference.get("limit")
    batches = list(data.backend.read(reference["table_id"], offset=offset, limit=limit))
    return _pa().Table.from_batches(batches, data.meta(reference["table_id"]).schema)


def _written(to: str, table: Any) -> Reference:
    _stream(to, table.schema, table.to_batches())
    return {"table_id": to}


def _stream(to: str, schema: Any, batches: Iterable[Any]) -> ObjectMeta:
    return current_data().create(_pa().RecordBatchReader.from_batches(schema, batches), id=to, replace=True).known()


def _is_done(parts: Sequence[Reference], to: str) -> bool:
    """An earlier attempt put the parts together, dropped them, and died before it could say so. Where a part was made
    anew since then, the others are needed as well."""
    backend = current_data().backend
    whole = backend.meta(to) if parts else None
    found = [backend.meta(part["table_id"]) for part in parts]
    if all(meta is not None for meta in found):
        return False
    if whole is not None and not any(meta is not None and meta.created_at > whole.created_at for meta in found):
        return True
    missing = [number for number, meta in enumerate(found) if meta is None]
    raise Permanent(
        f"of {len(parts)} parts of this table {len(missing)} are gone, the first is part {missing[0]}: they were "
        "dropped when they had become one table, or a while after their job had failed; clear the tasks that make "
        "them as well, or begin anew"
    )


def _drop(parts: Iterable[Reference]) -> None:
    for part in parts:
        current_data().backend.drop(part["table_id"])


def _common(schemas: Sequence[Any]) -> Any:
    pa = _pa()
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise Permanent(f"the chunks have columns that do not go together, give map a schema: {error}") from error


def _with_columns(batches: Iterable[Any], schema: Any) -> Generator[Any]:
    """Batches with all columns of the schema: where a chunk has no such column, it is null."""
    pa = _pa()
    for batch in batches:
        have = batch.schema.names
        arrays = [batch.column(f.name) if f.name in have else pa.nulls(batch.num_rows, f.type) for f in schema]
        yield pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _empty_schema(empty: str | None, callback: str | None, mode: Any) -> Any:
    schema = read_schema(empty)
    if schema is None or callback is None or mode == "row":
        return schema  # of rows nobody can say what a callback makes of them
    try:
        return mapped(Callback(path=callback, mode=mode), schema.empty_table()).schema
    except Exception:  # it was never made for no rows
        return {}


def _keys(by: list[list[str]]) -> list[tuple[str, str]]:
    return [(name, order) for name, order in by]


def _sample(side: dict[str, Any], names: Sequence[str], parts: int) -> Generator[Any]:
    """Rows from all over a table: looks at even distances, a few rows each."""
    data = current_data()
    first, rows = side["offset"], side["limit"]
    # Several to a part: a table that is sorted already has its neighbours side by side.
    looks = min(max(_LOOKS, 4 * parts), max(1, rows // 50))
    take = max(5, _SAMPLES // looks)
    for look in range(looks):
        offset = rows * look // looks
        batches = list(
            data.backend.read(side["table_id"], offset=first + offset, limit=min(take, rows - offset), columns=names)
        )
        if batches:
            yield _pa().Table.from_batches(batches)


def _part_of(runs: Sequence[str], part: int) -> Any:
    """Of each run its rows of this part, in a table; None when there are none. There may be fewer parts than were
    planned, when keys repeat."""
    batches = list(current_data().backend.read_part(runs, part)) if runs else []
    return _pa().Table.from_batches(batches) if batches else None


_STEPS: dict[str, Callable[..., Any]] = {
    step.__name__: step
    for step in (
        *(map_chunk, filter_chunk, reduce_chunk, reduce_partials, collect),
        *(find_boundaries, sort_run, merge_part, join_part, finish_shuffle),
    )
}
