"""From a request to its caller: by bearer token, or by the cookie of somebody who logged in."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Scope

from headrace.app import App
from headrace.client.accounts import digest_of
from headrace.core.accounts import Credential
from headrace.core.errors import StoreError
from headrace.core.values import value
from headrace.server.auth.caller import ANYONE, Caller, caller_of
from headrace.server.auth.origins import require_loopback_name, require_same_origin
from headrace.server.auth.tokens import is_csrf_of, looks_like_one
from headrace.server.options import ServerOptions
from headrace.server.problems import Problem

COOKIE = "headrace_session"
CSRF_COOKIE = "headrace_csrf"
CSRF_HEADER = "X-CSRF-Token"
# What a browser's WebSocket offers, because it can send no other header: ["headrace.live", "headrace.token.<token>"].
TOKEN_SUBPROTOCOL = "headrace.token."
_GOOD_FOR = 5.0  # seconds for which a credential is trusted without asking: so late is a revocation seen
_TOUCH_EACH = 60.0
_MOST = 10_000
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
log = logging.getLogger("headrace.server")


class Shown(NamedTuple):
    """What a request shows, and how."""

    secret: str
    by_cookie: bool

    def may_be(self, credential: Credential) -> bool:
        """A session is for browsers alone; a token comes by cookie where somebody logged in with it."""
        return self.by_cookie or credential.token.kind == "api"


@value
class _Known:
    credential: Credential
    until: float


class Authenticator:
    """Asks the ledger once in five seconds for each token, and tells it once a minute which were used."""

    def __init__(self, app: App, options: ServerOptions, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._options = options
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._asking: dict[tuple[int, str], asyncio.Task[Credential | None]] = {}
        self._generation = 0  # raised when something is forgotten: what was asked before then is not kept
        self._used: set[int] = set()
        self._touching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Authenticator":
        self._touching = asyncio.create_task(self._touch(), name="headrace.server.touch")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._touching is not None:
            self._touching.cancel()
            with suppress(asyncio.CancelledError):
                await self._touching
        await self.touch_once()

    async def __call__(self, connection: HTTPConnection) -> Caller:
        """Raises Problem 401, or 403 for an act by cookie that does not come from a page of ours."""
        found = secret_of(connection.scope)
        if found is None:
            raise _unknown("send a token, as a bearer in the header Authorization, or log in")
        credential = await self.find(found.secret)
        if credential is None or not found.may_be(credential):
            raise _unknown("this token is not known, or was revoked, or has expired")
        if found.by_cookie:
            _check_page(connection, found.secret)
        self._used.add(credential.token.id)
        return caller_of(credential, by_cookie=found.by_cookie)

    async def find(self, secret: str) -> Credential | None:
        if not looks_like_one(secret):
            return None
        digest = digest_of(secret)
        known = self._known.get(digest)
        if known is not None and known.until > self._clock():
            return known.credential
        # Of many requests at once with one token, one asks; not one that began before something was forgotten.
        generation = self._generation
        asking = self._asking.get((generation, digest))
        if asking is None:
            asking = self._asking[generation, digest] = asyncio.create_task(self._ask(generation, digest))
        return await asyncio.shield(asking)

    async def of(self, scope: Scope) -> Credential | None:
        """What the request shows, if it is good."""
        found = secret_of(scope)
        if found is None or (credential := await self.find(found.secret)) is None:
            return None
        return credential if found.may_be(credential) else None

    def name_of(self, scope: Scope) -> str | None:
        """Whom a request is counted for, if its token is known to be good: nothing is asked for this."""
        found = secret_of(scope)
        known = None if found is None else self._known.get(digest_of(found.secret))
        return None if known is None else f"token {known.credential.token.id}"

    def forget(self, *, token: int | None = None, user: str | None = None) -> None:
        """What changed here holds at once; other servers see it within five seconds."""
        self._generation += 1
        for digest, known in list(self._known.items()):
            if known.credential.token.id == token or known.credential.user.name == user:
                del self._known[digest]

    async def touch_once(self) -> None:
        used, self._used = self._used, set()
        if used:
            with suppress(StoreError):  # when it was last used is for people to look at: one minute more or less
                await self._app.engine.run(lambda store: store.touch_tokens(sorted(used)))

    async def _ask(self, generation: int, digest: str) -> Credential | None:
        try:
            asked = self._clock()
            credential = await self._app.engine.run(lambda store: store.find_token(digest))
            if credential is None:
                self._known.pop(digest, None)
            elif generation == self._generation:
                if len(self._known) >= _MOST:
                    self._make_room()
                self._known[digest] = _Known(credential=credential, until=asked + _GOOD_FOR)
            return credential
        finally:
            del self._asking[generation, digest]

    def _make_room(self) -> None:
        now = self._clock()
        self._known = {digest: known for digest, known in self._known.items() if known.until > now}
        if len(self._known) >= _MOST:
            self._known.clear()

    async def _touch(self) -> None:
        while True:
            await asyncio.sleep(_TOUCH_EACH)
            try:
                await self.touch_once()
            except Exception:
                log.exception("when tokens were used could not be written")


class OpenDoor:
    """In place of an Authenticator, where there are no users: everybody is the same one, and a browser that is shown
    a page of somebody else's is nobody.
    """

    def __init__(self, options: ServerOptions) -> None:
        self._options = options

    async def __call__(self, connection: HTTPConnection) -> Caller:
        if not self._options.open_to_all:
            require_loopback_name(connection)
        if connection.scope["type"] == "websocket" or connection.scope["method"] not in _SAFE:
            require_same_origin(connection)
        return ANYONE

    def name_of(self, scope: Scope) -> str | None:
        """Only addresses are counted."""
        return None


def secret_of(scope: Scope) -> Shown | None:
    """A token in a header wins: programs that hold both mean it."""
    headers = Headers(scope=scope)
    scheme, _, rest = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and rest.strip():
        return Shown(rest.strip(), by_cookie=False)
    offered: list[str] = scope.get("subprotocols") or []
    if token := next((each for each in offered if each.startswith(TOKEN_SUBPROTOCOL)), None):
        return Shown(token.removeprefix(TOKEN_SUBPROTOCOL), by_cookie=False)
    secret = _cookie(headers.getlist("cookie"))
    return None if secret is None else Shown(secret, by_cookie=True)


def _cookie(lines: Sequence[str]) -> str | None:
    for line in lines:
        with suppress(CookieError):
            found = SimpleCookie(line).get(COOKIE)
            if found is not None and found.value:
                return found.value
    return None


def _check_page(connection: HTTPConnection, session: str) -> None:
    """A cookie comes along with whatever page makes the browser send something: acts need what only our pages know."""
    if connection.scope["type"] == "websocket":
        require_same_origin(connection)
    elif connection.scope["method"] not in _SAFE:
        require_same_origin(connection)
        if not is_csrf_of(session, connection.headers.get(CSRF_HEADER, "")):
            raise Problem(
                403, "Forbidden", f"an act by cookie needs the header {CSRF_HEADER} with the csrf token of the session"
            )


def _unknown(detail: str) -> Problem:
    return Problem(401, "Unauthorized", detail, headers={"WWW-Authenticate": 'Bearer realm="headrace"'})
