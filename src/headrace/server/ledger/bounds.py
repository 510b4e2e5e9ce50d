"""Arguments of a verb within what both databases can hold, and what one call may cost. Pure."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from headrace.core.task import After, TaskFilter
from headrace.store.http.verbs import MOST_AT_ONCE, MOST_ROWS

_LARGEST = 2**63 - 1
_SMALL = 2**31 - 1  # priorities, attempts, versions: columns of 32 bits
_LONGEST = 3_155_760_000  # seconds: a hundred years
_IDS = frozenset({"task", "job"})  # of an argument, or of a field
_PLACES = frozenset({"after", "before", "claim_no", "seen", "expected"})  # in a sequence, from -1 on


def bounded(verb: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The same. Raises ValueError for what cannot be."""
    most = MOST_ROWS.get(verb, MOST_AT_ONCE)
    for name, value in arguments.items():
        if name == "limit":
            _check_limit(value, most)
        else:
            _look(name, value)
        if isinstance(value, TaskFilter):
            _check_limit(value.limit, most)
    return dict(arguments)


def _check_limit(limit: int | None, most: int) -> None:
    """Whoever asks for more is not given less in silence: they would take it for all there is. None is for verbs whose
    rows are few."""
    if limit is not None and not 1 <= limit <= most:
        raise ValueError(f"limit is not within 1 and {most}, the rows of one answer: {limit}; ask for page after page")


def _look(name: str, value: Any) -> None:
    match value:
        case bool() | None:
            pass
        case int():
            _whole(name, value)
        case float():
            if not math.isfinite(value) or abs(value) > _LONGEST:
                raise ValueError(f"{name} is no number of seconds that can be kept: {value}")
        case datetime():
            if value.utcoffset() is None or not 1970 < value.year < 9000:
                raise ValueError(f"{name} is out of range, or has no offset; write 2026-05-01T08:00:00Z")
        case After():
            _look("input", value.input)
            _look("place" if value.local else "task", value.task)
        case Mapping():
            for key, each in cast("Mapping[Any, Any]", value).items():
                _look(str(key), each)
        case Sequence() if not isinstance(value, str | bytes):
            _each(name, cast("Sequence[Any]", value))
        case _ if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                if field.name != "limit":
                    _look(field.name, getattr(value, field.name))
        case _:
            pass


def _each(name: str, values: Sequence[Any]) -> None:
    ids = name in ("ids", "tasks") and any(isinstance(each, int) for each in values)
    if ids and len(values) > MOST_AT_ONCE:
        raise ValueError(f"{name}: {len(values)} ids in one call; {MOST_AT_ONCE} are the most")
    for each in values:
        _look("task" if ids else name, each)


def _whole(name: str, value: int) -> None:
    least, most = -_SMALL, _SMALL
    if name in _IDS:
        least, most = 1, _LARGEST
    elif name in _PLACES:
        least, most = -1, _LARGEST
    if not least <= value <= most:
        raise ValueError(f"{name} is not within {least} and {most}: {value}")
