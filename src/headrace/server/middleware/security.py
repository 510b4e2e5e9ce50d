"""Headers that keep browsers from guessing types, framing us, and keeping answers that others must not see."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_POLICY = "Content-Security-Policy"


class SecurityHeaders:
    def __init__(self, app: ASGIApp, *, cross_origin: bool = False) -> None:
        self._app = app
        self._always = dict(_ALWAYS)
        if cross_origin:  # pages of other origins were allowed to read the answers
            self._always["Cross-Origin-Resource-Policy"] = "cross-origin"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._always.items():
                    headers.setdefault(name, value)
                headers.setdefault(_POLICY, "frame-ancestors 'none'")
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, secured)
