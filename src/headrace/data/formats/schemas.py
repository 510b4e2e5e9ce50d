"""What the columns of a table may be, whatever it is kept in."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import pyarrow

from headrace.core.errors import DataError
from headrace.data.backend import Schema

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


def shown_schema(schema: Schema) -> str:
    return "columns " + (", ".join(f"{field.name}: {field.type}" for field in schema) or "none")


def _field(name: Any, kind: Any) -> Any:
    if not isinstance(name, str):
        raise DataError(f"a column's name is text, not {name!r}")
    try:
        return pa.field(name, pa.type_for_alias(kind) if isinstance(kind, str) else kind)
    except (ValueError, TypeError) as error:
        raise DataError(f"column {name!r}: {kind!r} is no type of pyarrow's: {error}") from error
