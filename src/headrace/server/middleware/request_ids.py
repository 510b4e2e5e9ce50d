"""The id of the request that is being answered: in the answer, in the log and in the audit list."""

import re
import secrets
from contextvars import ContextVar

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-ID"
_GOOD = re.compile(r"[\x21-\x7e]{1,128}")
_current: ContextVar[str | None] = ContextVar("headrace_request", default=None)


def request_id() -> str | None:
    """None outside a request."""
    return _current.get()


class RequestIds:
    """Takes the id that a proxy or a client gave, if it is one, else makes one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        id = given if _GOOD.fullmatch(given) else secrets.token_hex(8)

        async def named(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                MutableHeaders(scope=message)[HEADER] = id
            await send(message)

        token = _current.set(id)
        try:
            await self._app(scope, receive, named)
        finally:
            _current.reset(token)
