"""So many requests a minute for each token, or for each address without a good one: a token bucket in memory. The
handshake of a WebSocket is a request."""

import math
import time
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from headrace.core.values import value
from headrace.server.problems import Problem, answer, phrase, refuse

_COUNTED = frozenset({"http", "websocket"})
# Whoever watches over a server must not be turned away; what they are told is kept for a second, and costs nothing.
_PROBES = frozenset({"/live", "/ready", "/health"})
_MOST_KEYS = 20_000


@value
class Bucket:
    left: float
    at: float


@value
class Taken:
    bucket: Bucket
    granted: bool
    wait: float  # seconds until there is one more


def take(bucket: Bucket | None, *, per_minute: int, now: float) -> Taken:
    """A full bucket holds a minute's worth."""
    rate = per_minute / 60
    left = float(per_minute) if bucket is None else min(per_minute, bucket.left + (now - bucket.at) * rate)
    if left >= 1:
        return Taken(bucket=Bucket(left=left - 1, at=now), granted=True, wait=0.0)
    return Taken(bucket=Bucket(left=left, at=now), granted=False, wait=(1 - left) / rate)


def address_of(scope: Scope) -> str:
    return f"from {(scope.get('client') or ('nowhere',))[0]}"


class Rates:
    """`name_of` gives whom a request is counted for: a token that is known to be good. Where it gives None the address
    counts, so that nobody gets around the limit with tokens that do not exist.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        per_minute: int,
        name_of: Callable[[Scope], str | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._per_minute = per_minute
        self._name_of = name_of
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in _COUNTED or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        now = self._clock()
        key = self._name_of(scope) or address_of(scope)
        taken = take(self._buckets.get(key), per_minute=self._per_minute, now=now)
        if key not in self._buckets and len(self._buckets) >= _MOST_KEYS:
            self._forget(now)
        self._buckets[key] = taken.bucket
        full_in = math.ceil((self._per_minute - taken.bucket.left) * 60 / self._per_minute)
        said = {
            "RateLimit-Limit": str(self._per_minute),
            "RateLimit-Remaining": str(int(taken.bucket.left)),
            "RateLimit-Reset": str(full_in),
        }
        if not taken.granted:
            wait = max(1, math.ceil(taken.wait))
            headers = {**said, "Retry-After": str(wait)}
            problem = Problem(
                429, phrase(429), f"{self._per_minute} requests a minute; go on in {wait} s", headers=headers
            )
            if scope["type"] == "websocket":
                await refuse(WebSocket(scope, receive, send), problem)
            else:
                await answer(problem, scope)(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, text in said.items():
                    headers[name] = text
            await send(message)

        await self._app(scope, receive, counted)

    def _forget(self, now: float) -> None:
        """Those whose bucket is full again count for nothing; if all are at work, the oldest half."""
        for key, bucket in list(self._buckets.items()):
            if bucket.left + (now - bucket.at) * self._per_minute / 60 >= self._per_minute:
                del self._buckets[key]
        if len(self._buckets) >= _MOST_KEYS:
            oldest = sorted(self._buckets, key=lambda each: self._buckets[each].at)
            for key in oldest[: _MOST_KEYS // 2]:
                del self._buckets[key]
