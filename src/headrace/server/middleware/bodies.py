"""Bodies: none that is too large, none that is not JSON, and nothing in them that no database can hold.

A body is read here in full before the route is asked, as FastAPI would do anyway; so a refusal is an answer and not an
error in the middle of something.
"""

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.server.problems import Problem, answer, phrase

_DEEPEST = 200
_NUL, _HALF = "the character NUL", "half of a surrogate pair"
_READ_ONLY = frozenset({"GET", "HEAD", "OPTIONS"})
_OPENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{\]}]', re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


class Bodies:
    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        problem = _bad_address(scope)
        if problem is None and scope["method"] not in _READ_ONLY:
            size = headers.get("content-length", "")
            body = None if size.isdecimal() and int(size) > self._limit else await _read(receive, self._limit)
            if body is None:
                problem = Problem(413, phrase(413), f"a body may have {self._limit} bytes", limit=self._limit)
            else:
                problem = _bad_body(body, headers) if body else None
                receive = _replayed(body, receive)
        if problem is not None:
            await answer(problem, scope)(scope, receive, send)
            return
        await self._app(scope, receive, send)


async def _read(receive: Receive, limit: int) -> bytes | None:
    """None when it is larger than that; what comes after is not read."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":  # the client has gone: whoever asks for more is told
            return b"".join(parts)
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()  # waits for the end of the connection
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _bad_address(scope: Scope) -> Problem | None:
    path: bytes = scope.get("raw_path") or b""
    if "\0" in scope["path"] or b"%00" in path or b"%00" in scope.get("query_string", b""):
        return _no_text("the address", _NUL)
    try:
        scope["path"].encode()
    except UnicodeEncodeError:
        return _no_text("the address", _HALF)
    return None


def _bad_body(body: bytes, headers: Headers) -> Problem | None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not kind.startswith("application/") or not (kind == "application/json" or kind.endswith("+json")):
        return Problem(415, phrase(415), "send the body as application/json")
    if b"\\u" in body and (what := _unstorable(body)) is not None:
        return _no_text("the body", what)
    if body.count(b"[") + body.count(b"{") > _DEEPEST and _depth(body) > _DEEPEST:
        return Problem(422, phrase(422), f"the body is nested deeper than {_DEEPEST} levels")
    return None


def _unstorable(body: bytes) -> str | None:
    """Looks at the escapes alone: neither can stand in UTF-8 JSON as it is."""
    half = -1  # where the second half of a pair has to follow
    for found in _ESCAPE.finditer(body):
        code = int(found.group(1) or b"ffff", 16)
        if half >= 0 and not (0xDC00 <= code <= 0xDFFF and found.start() == half):
            return _HALF
        if half < 0 and 0xDC00 <= code <= 0xDFFF:
            return _HALF
        if code == 0:
            return _NUL
        half = found.end() if 0xD800 <= code <= 0xDBFF else -1
    return None if half < 0 else _HALF


def _depth(body: bytes) -> int:
    deepest = depth = 0
    for found in _OPENS.finditer(body):
        match found.group()[:1]:
            case b"[" | b"{":
                depth += 1
                deepest = max(deepest, depth)
            case b"]" | b"}":
                depth -= 1
            case _:
                pass
    return deepest


def _no_text(where: str, what: str) -> Problem:
    return Problem(422, phrase(422), f"{where} holds {what}, which cannot be stored as text")
