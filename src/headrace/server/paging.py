"""Keyset paging: a cursor is the place of the last row seen. Opaque to callers, who may not build one."""

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, cast
from urllib.parse import urlencode

import orjson
from fastapi import Query, Request, Response

from headrace.client.searching import BEGINNING, Place
from headrace.server.models.base import LARGEST
from headrace.server.problems import Problem

Limit = Annotated[int, Query(ge=1, le=500, description="At most so many")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the page before")]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = 253_402_300_799_000_000  # the last second of the year 9999, in microseconds


def encode(*place: int) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


def decode(cursor: str, parts: int, *, most: int = _LATEST) -> tuple[int, ...]:
    """The place that a cursor names. Problem(422) for one that was not made here, or for another list."""
    try:
        found: Any = orjson.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, UnicodeEncodeError):
        found = None
    if not isinstance(found, list):
        raise _bad()
    place = cast("list[Any]", found)
    if len(place) != parts or not all(type(part) is int and 0 <= part <= most for part in place):
        raise _bad()
    return tuple(place)


def _bad() -> Problem:
    return Problem(422, "Bad cursor", "this cursor is of no page of this list; begin without one")


def search_place(cursor: str | None) -> Place:
    """Where a search goes on."""
    if cursor is None:
        return BEGINNING
    live, ended_at, ended_id = decode(cursor, 3)
    if max(live, ended_id) > BEGINNING.live:
        raise _bad()
    return Place(live, ended_at, ended_id)


def place_cursor(at: datetime, id: int) -> str:
    return encode(_micros(at), id)


def place_of(cursor: str | None) -> tuple[datetime, int] | None:
    """An instant, and an id among those of that instant."""
    if cursor is None:
        return None
    micros, id = decode(cursor, 2)
    if id > LARGEST:
        raise _bad()
    return _EPOCH + timedelta(microseconds=micros), id


def instant_cursor(at: datetime) -> str:
    return encode(_micros(at))


def instant_place(cursor: str | None) -> datetime | None:
    return None if cursor is None else _EPOCH + timedelta(microseconds=decode(cursor, 1)[0])


def id_place(cursor: str | None) -> int | None:
    return None if cursor is None else decode(cursor, 1, most=LARGEST)[0]


def link_next(request: Request, response: Response, next: str | None) -> None:
    """The same as `next` in the body, as RFC 8288 has it."""
    if next is None:
        return
    asked = [(key, value) for key, value in request.query_params.multi_items() if key != "cursor"]
    query = urlencode([*asked, ("cursor", next)])
    response.headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'


def full[T](items: Sequence[T], limit: int) -> bool:
    """Whether there may be more behind."""
    return len(items) == limit


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
