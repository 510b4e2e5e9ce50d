"""From a source to record batches, made while they are asked for."""

import contextlib
import itertools
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, cast

import pyarrow

from headrace.core.errors import DataError
from headrace.data.backend import RecordBatch, Schema
from headrace.data.formats.rows import Incoming, incoming_rows
from headrace.data.formats.schemas import checked_schema, shown_schema
from headrace.data.sources import SQL, Source

pa: Any = cast("Any", pyarrow)


@contextlib.contextmanager
def opened(source: Source, schema: Any = None) -> Generator[Incoming]:
    """What the source gives, in the given schema if there is one. DataError for what no table can be made of."""
    wanted = None if schema is None else checked_schema(schema)
    with contextlib.ExitStack() as stack:
        try:
            found = _open(source, wanted, stack)
            yield found._replace(batches=_without_forbidden_nulls(found))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise DataError(f"no table can be made of this: {error}") from error


def _open(source: Any, schema: Schema | None, stack: contextlib.ExitStack) -> Incoming:
    library = type(source).__module__.partition(".")[0]
    if isinstance(source, str | PathLike):
        from headrace.data.formats.paths import open_path

        return in_schema(stack.enter_context(open_path(fspath(cast("str", source)), schema)), schema)
    if isinstance(source, SQL):
        from headrace.data.formats.sql import rows_of

        return incoming_rows(stack.enter_context(rows_of(source)), schema)
    if library == "pandas":
        from headrace.data.formats.pandas import arrow_table

        return in_schema(_of_arrow(arrow_table(source)), schema)
    if library == "polars":
        from headrace.data.formats.polars import arrow_table

        return in_schema(_of_arrow(arrow_table(source)), schema)
    if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return in_schema(_of_arrow(source), schema)
    if hasattr(source, "__arrow_c_stream__"):
        return in_schema(_of_arrow(pa.RecordBatchReader.from_stream(source)), schema)
    if isinstance(source, Mapping):
        raise DataError("a dict is one row; give a list of them, or pyarrow.table(…) for columns")
    if isinstance(source, Iterable) and not isinstance(source, bytes | bytearray):
        return _of_iterable(cast("Iterable[Any]", source), schema)
    raise DataError(
        f"no table can be made of a {type(source).__qualname__}; give rows, an Arrow table, a pandas or polars frame, "
        "the path of Parquet or CSV, or SQL"
    )


def _of_arrow(source: Any) -> Incoming:
    batches = iter([source]) if isinstance(source, pa.RecordBatch) else None
    if batches is None:
        batches = iter(source.to_batches()) if isinstance(source, pa.Table) else iter(source)
    return Incoming(source.schema, batches)


def _of_iterable(source: Iterable[Any], schema: Schema | None) -> Incoming:
    items = iter(source)
    nothing = object()
    first: Any = next(items, nothing)
    if isinstance(first, pa.RecordBatch | pa.Table):
        batches = (batch for item in itertools.chain([first], items) for batch in _of_arrow(item).batches)
        return in_schema(Incoming(first.schema, batches), schema)
    if iter(source) is not items:  # can be read again from its start
        return incoming_rows(source, schema)
    return incoming_rows(itertools.chain([] if first is nothing else [first], items), schema)


def _without_forbidden_nulls(incoming: Incoming) -> Iterator[RecordBatch]:
    required = [field.name for field in incoming.schema if not field.nullable]
    if not required:
        return incoming.batches
    return (_complete(batch, required, number) for number, batch in enumerate(incoming.batches))


def _complete(batch: RecordBatch, required: Sequence[str], number: int) -> RecordBatch:
    for name in required:
        if batch.column(name).null_count:
            raise DataError(f"the column {name!r} must have values, and batch {number} has nulls there")
    return batch


def in_schema(incoming: Incoming, schema: Schema | None) -> Incoming:
    """Its batches in this schema, or in their own, without metadata."""
    wanted = checked_schema(incoming.schema if schema is None else schema)
    return Incoming(wanted, _cast(incoming.batches, wanted))


def _cast(batches: Iterator[RecordBatch], schema: Schema) -> Iterator[RecordBatch]:
    for number, batch in enumerate(batches):
        if batch.schema.equals(schema, check_metadata=True):
            yield batch
            continue
        missing = [name for name in schema.names if name not in batch.schema.names]
        extra = [name for name in batch.schema.names if name not in schema.names]
        if missing or extra:
            raise DataError(f"batch {number} has {shown_schema(batch.schema)}, and not {shown_schema(schema)}")
        try:
            yield batch.select(schema.names).cast(schema)
        except (pa.ArrowException, ValueError) as error:
            raise DataError(f"batch {number} cannot become {shown_schema(schema)}: {error}") from error
