"""Finds a datetime without a timezone: two hosts would read it as two instants."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

_DEEPEST = 254


def find_naive_datetime(value: Any, path: str = "") -> str | None:
    """The path of the first naive datetime inside containers, dataclasses and models; None when there is none."""
    return _find(value, path, 0)


def _find(value: Any, path: str, depth: int) -> str | None:
    if isinstance(value, datetime):
        return (path or "it") if value.utcoffset() is None else None
    if value is None or isinstance(value, str | bytes | int | float) or depth > _DEEPEST:
        return None
    for key, member in _members(value):
        found = _find(member, f"{path}.{key}" if path else str(key), depth + 1)
        if found is not None:
            return found
    return None


def _members(value: Any) -> list[tuple[object, Any]]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[object, Any]", value).items())
    if isinstance(value, list | tuple | set | frozenset):
        return list(enumerate(cast("list[Any]", value)))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    # A Pydantic model, without importing Pydantic for tasks that have none.
    if hasattr(cast("Any", type(value)), "model_fields"):
        return list(cast("dict[object, Any]", vars(value)).items())
    return []
