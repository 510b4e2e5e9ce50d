"""What is known of an object, as the comment of its table: one JSON text, the Arrow schema within it."""

import base64
import json
import zlib
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast

import pyarrow

from headrace.data.backend import Draft, ObjectMeta

pa: Any = cast("Any", pyarrow)

_INSTANTS = ("created_at", "expires_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """`version` is of one writing of the table: an object that was replaced has another. `page` is how many rows are
    read at a time."""

    meta: ObjectMeta
    version: int
    page: int


def to_comment(record: Record) -> str:
    meta = record.meta
    values = {field.name: getattr(meta, field.name) for field in fields(meta) if field.name != "schema"}
    for name in _INSTANTS:
        if values[name] is not None:
            values[name] = values[name].isoformat()
    schema = base64.b64encode(zlib.compress(meta.schema.serialize().to_pybytes(), 6)).decode()
    return json.dumps({"headrace": 1, "version": record.version, "page": record.page, "schema": schema, "meta": values})


def from_comment(comment: str) -> Record | None:
    """None for a table that is not ours."""
    try:
        found = json.loads(comment)
        if found["headrace"] != 1:
            return None
        schema = pa.ipc.read_schema(pa.py_buffer(zlib.decompress(base64.b64decode(found["schema"]))))
        values: dict[str, Any] = {name: found["meta"][name] for name in _NAMES if name in found["meta"]}
        for name in _INSTANTS:
            if values[name] is not None:
                values[name] = datetime.fromisoformat(values[name])
        meta = ObjectMeta(**values, schema=schema)
        return Record(meta=meta, version=found["version"], page=found["page"])
    except (ValueError, KeyError, TypeError, zlib.error, pa.ArrowException):
        return None


def complete(draft: Draft, *, rows: int, bytes: int, schema: Any) -> ObjectMeta:
    known = {field.name: getattr(draft, field.name) for field in fields(Draft)}
    return ObjectMeta(**known, rows=rows, bytes=bytes, schema=schema)


_NAMES = [field.name for field in fields(ObjectMeta) if field.name != "schema"]
