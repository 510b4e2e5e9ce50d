"""The id of the request that is being answered: in the answer, in the log and in the audit list."""

import random
import re
from contextvars import ContextVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-ID"
_NAME = HEADER.lower().encode()
_GOOD = re.compile(rb"[\x21-\x7e]{1,128}")
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
        given = next((value for name, value in scope["headers"] if name == _NAME), b"")
        # Nobody must not guess it: what it has to be is different, and cheap.
        id = given.decode("ascii") if _GOOD.fullmatch(given) else f"{random.getrandbits(64):016x}"

        async def named(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = [header for header in message.get("headers", ()) if header[0] != _NAME]
                message["headers"] = [*headers, (_NAME, id.encode())]
            await send(message)

        token = _current.set(id)
        try:
            await self._app(scope, receive, named)
        finally:
            _current.reset(token)
