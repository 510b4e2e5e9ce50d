"""Everything that is watched on one server: topics, who watches them, and one reader behind each."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Self

from headrace.app import App
from headrace.server.live.hints import EVERYTHING, listen_to_store
from headrace.server.live.pace import Pace
from headrace.server.live.sources import Source, grown
from headrace.server.live.topics import Topic
from headrace.server.live.watchers import Ended, Watcher
from headrace.server.options import ServerOptions
from headrace.server.problems import Problem
from headrace.store.base import Store

_LOG = logging.getLogger("headrace.live")
# Topics that are read at once: requests need connections, too.
_READERS = 4


class _Tail:
    """The reading of one topic: one at a time, and once more when something came meanwhile."""

    __slots__ = ("has_failed", "next_read", "opening", "reading", "topic")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.opening: asyncio.Task[None] | None = None
        self.reading: asyncio.Task[None] | None = None
        self.next_read: asyncio.Future[None] | None = None  # somebody asked for a read that has not begun
        self.has_failed = False

    @property
    def is_open(self) -> bool:
        opening = self.opening
        return opening is not None and opening.done() and not opening.cancelled() and opening.exception() is None


class Hub:
    """`async with Hub(app, options) as hub`, on the server's loop. One for each server process."""

    def __init__(self, app: App, options: ServerOptions, pace: Pace | None = None) -> None:
        self.pace = pace or Pace()
        self._engine = app.engine
        self._name = app.name
        self._redis_url = options.redis_url
        self._tails: dict[str, _Tail] = {}
        self._by_hint: dict[str, set[_Tail]] = {}
        self._watchers: set[Watcher] = set()
        self._most = options.watchers_per_caller
        self._by_caller: Counter[str] = Counter()
        self._readers = asyncio.Semaphore(_READERS)
        self._replays = asyncio.Semaphore(_READERS)
        self._services: list[asyncio.Task[None]] = []
        self._has_ended = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        if self._redis_url is not None:
            from headrace.server.live.redis import client

            client()  # one that is not installed is said at once
        services = {"hints": self._listen, "poll": self._poll, "ping": self._ping}
        self._services = [asyncio.create_task(run(), name=f"headrace-live-{name}") for name, run in services.items()]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end()
        tasks = [*self._services]
        for tail in self._tails.values():
            tasks += [task for task in (tail.opening, tail.reading) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def end(self) -> None:
        """Nobody is shown anything from here on: every watcher is told to come back to another server."""
        self._has_ended = True
        for watcher in tuple(self._watchers):
            watcher.end()

    @property
    def topics(self) -> frozenset[str]:
        """What is watched."""
        return frozenset(self._tails)

    @property
    def watchers(self) -> int:
        """How many watch."""
        return len(self._watchers)

    @asynccontextmanager
    async def watching(self, source: Source, *, ping: float, caller: str = "") -> AsyncGenerator[Watcher]:
        """A watcher for the time of the block. Its topic is as fresh as the moment in which this was called.
        Problem(429) when this caller has too many."""
        if self._has_ended:
            raise Ended
        self.check_room(caller)
        tail = self._tails.get(source.name)
        if tail is None:
            tail = self._tails[source.name] = _Tail(Topic(source, self.pace))
            for hint in source.hints:
                self._by_hint.setdefault(hint, set()).add(tail)
        watcher = Watcher(self, tail.topic, ping=ping)
        tail.topic.watchers.add(watcher)
        self._watchers.add(watcher)
        self._by_caller[caller] += 1
        try:
            await self._opened(tail)
            yield watcher
        finally:
            tail.topic.watchers.discard(watcher)
            self._watchers.discard(watcher)
            self._by_caller[caller] -= 1
            if not self._by_caller[caller]:
                del self._by_caller[caller]
            if not tail.topic.watchers:
                self._forget(tail)

    def check_room(self, caller: str) -> None:
        """Each holds a connection, a task and a place in memory: nobody may take them all. Problem(429)."""
        if self._most and self._by_caller[caller] >= self._most:
            raise Problem(
                429,
                "Too Many Requests",
                f"you watch {self._most} things at once; close some of them",
                headers={"Retry-After": "5"},
            )

    async def read_back[T](self, act: Callable[[Store], Coroutine[Any, Any, T]], /) -> T:
        """For one who comes late: a few at a time, however many come at once."""
        async with self._replays:
            return await self.read(act)

    async def read[T](self, act: Callable[[Store], Coroutine[Any, Any, T]], /) -> T:
        """The store lives on a loop of its own: nothing here waits for a database on the server's."""
        return await self._engine.run(act)

    def hinted(self, hint: str) -> None:
        found = self._tails.values() if hint == EVERYTHING else self._by_hint.get(hint, ())
        for tail in tuple(found):
            self._refresh(tail)

    async def _opened(self, tail: _Tail) -> None:
        if tail.is_open:
            await asyncio.shield(self._refresh(tail))
            return
        if tail.opening is None or tail.opening.done():
            tail.opening = asyncio.create_task(tail.topic.begin(self.read), name=f"open {tail.topic.source.name}")
        await asyncio.shield(tail.opening)
        if tail.next_read is not None:
            self._refresh(tail)

    def _refresh(self, tail: _Tail) -> asyncio.Future[None]:
        """Read what is new. Done when a read is that begins from now on, whether it succeeded or not."""
        if tail.next_read is None:
            tail.next_read = self._loop.create_future()
        if tail.reading is None and tail.is_open:
            tail.reading = asyncio.create_task(self._read_topic(tail), name=f"read {tail.topic.source.name}")
        return tail.next_read

    async def _read_topic(self, tail: _Tail) -> None:
        wanted: asyncio.Future[None] | None = None
        try:
            while (wanted := tail.next_read) is not None:
                tail.next_read = None
                try:
                    async with self._readers:
                        await tail.topic.read(self.read)
                    tail.has_failed = False
                except Exception as error:  # whatever a database can do: the next poll tries again
                    _warn("reading %s: %s", tail.topic.source.name, error, again=tail.has_failed)
                    tail.has_failed = True
                _finish(wanted)
                await asyncio.sleep(self.pace.rest)
        finally:
            tail.reading = None
            _finish(wanted)
            _finish(tail.next_read)

    def _forget(self, tail: _Tail) -> None:
        for task in (tail.opening, tail.reading):
            if task is not None:
                task.cancel()
        name = tail.topic.source.name
        if self._tails.get(name) is tail:
            del self._tails[name]
        for hint in tail.topic.source.hints:
            others = self._by_hint.get(hint, set())
            others.discard(tail)
            if not others:
                self._by_hint.pop(hint, None)

    async def _listen(self) -> None:
        failed = False
        while True:
            try:
                await self._hear()
            except Exception as error:  # hints are not needed, only quick
                _warn("waiting for hints: %s", error, again=failed)
                failed = True
            await asyncio.sleep(self.pace.poll)

    async def _hear(self) -> None:
        loop = self._loop

        def heard(hint: str) -> None:
            loop.call_soon_threadsafe(self.hinted, hint)

        if self._redis_url is None:
            await listen_to_store(self._engine, heard)
            return
        from headrace.server.live.redis import RedisHints

        await RedisHints(self._redis_url, self._engine, name=self._name).listen(self.hinted)

    async def _poll(self) -> None:
        failed = False
        while True:
            await asyncio.sleep(self.pace.poll)
            tails = [tail for tail in self._tails.values() if tail.is_open]
            if not tails:
                continue
            seen = [(tail.topic.source, tail.topic.last) for tail in tails]
            try:
                names = await self.read(lambda store, seen=seen: grown(store, seen))
                failed = False
            except Exception as error:  # as above
                _warn("looking for what has grown: %s", error, again=failed)
                failed = True
                continue
            for tail in tails:
                if tail.has_failed or tail.topic.source.name in names:
                    self._refresh(tail)

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self.pace.ping / 4, self.pace.comment / 4))
            now = self._loop.time()
            for watcher in tuple(self._watchers):
                watcher.ping(now)


def _finish(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)


def _warn(text: str, *values: object, again: bool) -> None:
    """Once for each outage."""
    _LOG.log(logging.DEBUG if again else logging.WARNING, f"live updates: {text}", *values)
