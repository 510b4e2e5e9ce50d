"""What the columns of a table may be, whatever it is kept in."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pyarrow

from headrace.core.errors import DataError
from headrace.data.backend import RecordBatch, Schema

pa: Any = cast("Any", pyarrow)


def checked_schema(given: Any) -> Schema:
    """A schema of what a caller gave: one of Arrow's, or columns and types by name. Without metadata: it is about the
    whole of a frame (its index, say), and untrue for a slice."""
    if isinstance(given, Mapping):
        fields = [_field(name, kind) for name, kind in cast("Mapping[Any, Any]", given).items()]
        given = pa.schema(fields)
    if not isinstance(given, pa.Schema):
        raise DataError(f"a schema is one of pyarrow's, or a dict of column names and types, not {given!r}")
    twice = [name for name, count in Counter[str](given.names).items() if count > 1]
    if twice:
        raise DataError(f"the column {twice[0]!r} comes twice; rename one")
    if "" in given.names:
        raise DataError("a column has no name")
    return given.remove_metadata()


def wider_schema(schemas: Sequence[Schema]) -> Schema:
    """One that holds the values of all; DataError when there is none. It is that of the first where they are equal."""
    different = [schema for number, schema in enumerate(schemas) if not number or not schema.equals(schemas[0])]
    try:
        return pa.unify_schemas(different, promote_options="permissive") if different else pa.schema([])
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"these tables do not agree on their columns: {error}") from error


def widened(batch: RecordBatch, schema: Schema) -> RecordBatch:
    """The batch in a wider schema, with nulls for a column that it does not have."""
    names = frozenset(batch.schema.names)
    if extra := names - frozenset(schema.names):
        raise DataError(f"there is no column {min(extra)!r} in {shown_schema(schema)}")
    try:
        arrays = [
            batch.column(field.name).cast(field.type) if field.name in names else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    except pa.ArrowException as error:
        raise DataError(f"{shown_schema(batch.schema)} cannot become {shown_schema(schema)}: {error}") from error


def shown_schema(schema: Schema) -> str:
    return "columns " + (", ".join(f"{field.name}: {field.type}" for field in schema) or "none")


def _field(name: Any, kind: Any) -> Any:
    if not isinstance(name, str):
        raise DataError(f"a column's name is text, not {name!r}")
    try:
        return pa.field(name, pa.type_for_alias(kind) if isinstance(kind, str) else kind)
    except (ValueError, TypeError) as error:
        raise DataError(f"column {name!r}: {kind!r} is no type of pyarrow's: {error}") from error
