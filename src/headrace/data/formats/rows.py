"""Rows as record batches. The columns and their types are those of the schema, or found in the rows themselves."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import pyarrow

from headrace.core.errors import DataError
from headrace.data.backend import RecordBatch, Schema
from headrace.data.formats.schemas import checked_schema

pa: Any = cast("Any", pyarrow)

BATCH_ROWS = 10_000


class Incoming(NamedTuple):
    """What is about to be written: batches of exactly this schema, made while they are asked for."""

    schema: Schema
    batches: Iterator[RecordBatch]


def incoming_rows(rows: Iterable[Any], schema: Schema | None) -> Incoming:
    """Without a schema, a list is looked through first; of what can be read only once, the first batch decides."""
    chunks = _chunks(rows)
    if schema is not None:
        return Incoming(schema, _batches(chunks, schema))
    if isinstance(rows, Sequence) and len(rows) > BATCH_ROWS:
        found = [_inferred(chunk, number * BATCH_ROWS) for number, chunk in enumerate(_chunks(rows))]
        try:
            schema = checked_schema(pa.unify_schemas(found, promote_options="permissive"))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DataError(f"the rows do not agree on a type: {error}; give schema=") from error
        return Incoming(schema, _batches(chunks, schema))
    first = next(chunks, list[Any]())
    schema = checked_schema(_inferred(first, 0))
    return Incoming(schema, _batches(itertools.chain([first] if first else [], chunks), schema))


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    return map(list, itertools.batched(rows, BATCH_ROWS))


def _batches(chunks: Iterable[list[Any]], schema: Schema) -> Iterator[RecordBatch]:
    start = 0
    known = frozenset(schema.names)
    for chunk in chunks:
        for position, row in enumerate(chunk):
            if not isinstance(row, Mapping):
                raise DataError(f"row {start + position} is no dict but {_shown(row)}")
            if not cast("Mapping[Any, Any]", row).keys() <= known:
                extra = next(name for name in cast("Mapping[Any, Any]", row) if name not in known)
                raise DataError(
                    f"row {start + position} has {extra!r}, which is none of the columns "
                    f"{', '.join(schema.names) or '(none)'}; give schema= with every column"
                )
        try:
            batch = pa.RecordBatch.from_pylist(chunk, schema=schema)
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise DataError(_culprit(chunk, schema, start) or f"rows from {start} on: {error}") from error
        yield batch
        start += len(chunk)


def _inferred(chunk: list[Any], start: int) -> Schema:
    names: dict[Any, None] = {}
    for position, row in enumerate(chunk):
        if not isinstance(row, Mapping):
            raise DataError(f"row {start + position} is no dict but {_shown(row)}")
        names.update(dict.fromkeys(cast("Mapping[Any, Any]", row)))
    fields: list[Any] = []
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"a column's name is text, not {name!r}")
        try:
            fields.append(pa.field(name, pa.array([row.get(name) for row in chunk]).type))
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise DataError(f"column {name!r}, in rows from {start} on: {error}; give schema=") from error
    return pa.schema(fields)


def _culprit(chunk: list[Any], schema: Schema, start: int) -> str | None:
    """Only on the way to an exception, so it may be slow."""
    for field in schema:
        for position, row in enumerate(chunk):
            value = row.get(field.name)
            try:
                pa.array([value], field.type)
            except (pa.ArrowException, OverflowError, ValueError, TypeError):
                return (
                    f"row {start + position}, column {field.name!r}: {_shown(value)} is no {field.type}; "
                    "give schema= with a type that fits"
                )
    return None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
