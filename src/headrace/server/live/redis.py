"""Hints over Redis: many servers, and one of them listens to the database for all.

Workers know nothing of it: they announce to the database. The server that leads forwards what it hears; when it is
gone, another leads within a lease, and until then everybody looks by itself once a second as always.
"""

import asyncio
import os
import socket
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

from headrace.client.engine import Engine
from headrace.core.errors import MissingExtra
from headrace.server.live.hints import EVERYTHING, Heard, listen_to_store

ROLE = "live hints"
_LEASE = 6.0
_GATHER = 0.005  # hints of this time are one message


def client() -> Any:
    """The library, which ships with an extra. MissingExtra."""
    try:
        import redis.asyncio
    except ImportError:
        raise MissingExtra("hints over Redis need its client: pip install 'headrace[redis]'") from None
    return redis.asyncio


class RedisHints:
    def __init__(self, url: str, engine: Engine, *, name: str, lease: float = _LEASE) -> None:
        self._url = url
        self._engine = engine
        self._channel = f"{name}:live"
        self._lease = lease
        self._id = f"server:{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"

    async def listen(self, heard: Heard) -> None:
        """Until it is cancelled, or Redis or the database fails."""
        try:
            async with self._connected() as redis, asyncio.TaskGroup() as group:
                group.create_task(self._receive(redis, heard))
                group.create_task(self._lead(redis))
        except ExceptionGroup as failed:
            raise _first(failed) from None

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Any]:
        # It is asked whether it is there: a line that is dead without a word is found within half a minute.
        opened = client().from_url(self._url, health_check_interval=15, socket_connect_timeout=5)
        try:
            yield opened
        finally:
            await opened.aclose()

    async def _receive(self, redis: Any, heard: Heard) -> None:
        async with redis.pubsub() as subscribed:
            await subscribed.subscribe(self._channel)
            heard(EVERYTHING)  # what was announced before this moment
            while True:
                message = await subscribed.get_message(ignore_subscribe_messages=True, timeout=15.0)
                if message is not None:
                    for hint in message["data"].decode().split("\n"):
                        heard(hint)

    async def _lead(self, redis: Any) -> None:
        """Forward what the database announces, while this server leads; else wait to."""
        while True:
            if await self._leads():
                async with asyncio.TaskGroup() as group:
                    forwarding = group.create_task(self._forward(redis))
                    while not forwarding.done():
                        await asyncio.sleep(self._lease / 3)
                        if not await self._leads():
                            forwarding.cancel()
            await asyncio.sleep(self._lease / 3)

    async def _leads(self) -> bool:
        return await self._engine.run(lambda store: store.lead(ROLE, self._id, lease=self._lease))

    async def _forward(self, redis: Any) -> None:
        loop = asyncio.get_running_loop()
        gathered: dict[str, None] = {}
        came = asyncio.Event()

        def gather(hint: str) -> None:
            gathered[hint] = None
            came.set()

        def heard(hint: str) -> None:
            loop.call_soon_threadsafe(gather, hint)

        async def publish() -> None:
            while True:
                await came.wait()
                await asyncio.sleep(_GATHER)
                came.clear()
                hints, text = list(gathered), "\n".join(gathered)
                gathered.clear()
                if hints:
                    await redis.publish(self._channel, text)

        async with asyncio.TaskGroup() as group:
            group.create_task(listen_to_store(self._engine, heard))
            group.create_task(publish())


def _first(error: Exception) -> Exception:
    """The one that the others are about."""
    while isinstance(error, ExceptionGroup):
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    return error
