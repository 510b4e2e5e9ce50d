"""Finds what would change its meaning on the way: a datetime without a timezone, a float that JSON does not have.

Validation lets both pass, and turning them into JSON would lose them without a word.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast

_DEEPEST = 254


class Refused(NamedTuple):
    path: str
    why: str


def find_refused(value: Any) -> Refused | None:
    """The first such leaf inside containers, dataclasses and models; None when there is none."""
    return _find(value, "", 0)


def _find(value: Any, path: str, depth: int) -> Refused | None:
    if value is None or isinstance(value, str | bytes | int) or depth > _DEEPEST:
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else Refused(path, "NaN and infinities cannot be stored as JSON")
    if isinstance(value, datetime):
        if value.utcoffset() is not None:
            return None
        return Refused(path, "the datetime is naive; give it a timezone, for example datetime.now(UTC)")
    for key, member in _members(value):
        found = _find(member, f"{path}.{key}" if path else str(key), depth + 1)
        if found is not None:
            return found
    return None


def _members(value: Any) -> Iterable[tuple[object, Any]]:
    if isinstance(value, Mapping):
        return cast("Mapping[object, Any]", value).items()
    if isinstance(value, list | tuple | set | frozenset):
        return enumerate(cast("list[Any]", value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    # A Pydantic model, without importing Pydantic for tasks that have none.
    if hasattr(cast("Any", type(value)), "model_fields"):
        return cast("dict[object, Any]", vars(value)).items()
    return ()
