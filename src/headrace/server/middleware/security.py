"""Headers that keep browsers from guessing types, framing us, and keeping answers that others must not see."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ALWAYS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"content-security-policy": b"frame-ancestors 'none'",
    b"cache-control": b"no-store",
}


class SecurityHeaders:
    """Each where the route has not said it otherwise."""

    def __init__(self, app: ASGIApp, *, cross_origin: bool = False) -> None:
        self._app = app
        always = dict(_ALWAYS)
        if cross_origin:  # pages of other origins were allowed to read the answers
            always[b"cross-origin-resource-policy"] = b"cross-origin"
        self._always = tuple(always.items())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                said = {name for name, _ in headers}
                message["headers"] = [*headers, *(header for header in self._always if header[0] not in said)]
            await send(message)

        await self._app(scope, receive, secured)
