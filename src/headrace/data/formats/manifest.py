"""The manifest of an object that is files: what it is, and which files it has. It is written last."""

import base64
import json
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import pyarrow

from headrace.data.backend import ObjectMeta

pa: Any = cast("Any", pyarrow)

MANIFEST = "object.json"
_FORMAT = 1


class File(NamedTuple):
    name: str
    groups: tuple[int, ...]  # rows of each row group
    bytes: int
    parts: int | None = None  # of a run

    @property
    def rows(self) -> int:
        return sum(self.groups)


class Stored(NamedTuple):
    meta: ObjectMeta
    files: tuple[File, ...]


def dumped(stored: Stored) -> bytes:
    meta = stored.meta
    return json.dumps(
        {
            "format": _FORMAT,
            "id": meta.id,
            "name": meta.name,
            "owner": meta.owner,
            "job": meta.job,
            "task": meta.task,
            "kept": meta.kept,
            "created_at": meta.created_at.isoformat(),
            "expires_at": meta.expires_at.isoformat() if meta.expires_at else None,
            "rows": meta.rows,
            "bytes": meta.bytes,
            "columns": {field.name: str(field.type) for field in meta.schema},  # for people; `schema` is exact
            "schema": base64.b64encode(meta.schema.serialize()).decode(),
            "files": [
                {"name": file.name, "bytes": file.bytes, "groups": file.groups}
                | ({} if file.parts is None else {"parts": file.parts})
                for file in stored.files
            ],
        }
    ).encode()


def loaded(content: bytes) -> Stored:
    found = cast("dict[str, Any]", json.loads(content))
    if found["format"] > _FORMAT:
        raise ValueError(f"it has format {found['format']}, and this version of headrace knows {_FORMAT}")
    meta = ObjectMeta(
        id=found["id"],
        name=found["name"],
        owner=found["owner"],
        job=found["job"],
        task=found["task"],
        kept=found["kept"],
        created_at=_instant(found["created_at"]),
        expires_at=_instant(found["expires_at"]) if found["expires_at"] else None,
        rows=found["rows"],
        bytes=found["bytes"],
        schema=pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["schema"]))),
    )
    files = (File(file["name"], tuple(file["groups"]), file["bytes"], file.get("parts")) for file in found["files"])
    return Stored(meta, tuple(files))


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
