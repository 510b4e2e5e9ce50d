"""Somebody who watches a topic: what it was sent, and what it is to be sent next. It holds no messages of its own."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from headrace.server.live.messages import Message, Position
from headrace.server.live.pace import PAGE

if TYPE_CHECKING:
    from headrace.server.live.hub import Hub
    from headrace.server.live.topics import Topic


class Dropped(Exception):
    """This watcher was too slow; what it missed is in the ledger, behind the last number that it saw."""


class Ended(Exception):
    """The server stops."""


class Watcher:
    """In a block of `sending`: `async for page in watcher.join(after)`, then `take` until None, `wait`, and so on."""

    def __init__(self, hub: "Hub", topic: "Topic", *, ping: float) -> None:
        self._hub = hub
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._deadline: asyncio.Timeout | None = None
        self._place: int | None = None  # of the next item; None until everything older is on its way
        self._bytes = 0  # of the topic that are behind it
        self._after: Position | None = None  # nothing up to here: it was seen on another connection
        self._version = 0
        self._is_dropped = False
        self._has_ended = False
        self._ping_each = ping
        self._ping_at = self._loop.time() + ping
        self.ping_due = False

    @property
    def messages_behind(self) -> int:
        return 0 if self._place is None else self._topic.end - self._place

    @property
    def bytes_behind(self) -> int:
        return 0 if self._place is None else self._topic.appended - self._bytes

    @asynccontextmanager
    async def sending(self) -> AsyncGenerator[None]:
        """Around everything that sends: a send that does not end is interrupted. Dropped; Ended."""
        try:
            async with asyncio.timeout(None) as self._deadline:
                self._check()
                yield
        except TimeoutError:
            self._check()
            raise Dropped from None  # a page took longer than it may
        finally:
            self._deadline = None

    async def join(self, after: Position | None) -> AsyncGenerator[list[Message]]:
        """What was before, in pages: everything behind `after`, or what a late watcher is shown. A page is read when
        the one before was sent: however much there is, one is in memory, and nobody waits for this watcher."""
        topic = self._topic
        if topic.state is not None:
            self._version = topic.version
            yield [topic.state]
        if after is None and topic.has_late_join:
            yield self._attach(topic.end - topic.source.late_join)
            return
        if after is None:
            page, after = await self._hub.read_back(topic.source.last)
            yield page
            after = (page[-1].position or after) if page else after
        while not topic.covers(after):
            page = await self._hub.read_back(lambda store, behind=after: topic.source.behind(store, behind, PAGE))
            if not page:
                break
            yield page
            after = page[-1].position or after
        self._after = after
        yield self._attach(topic.place_behind(after))

    def _attach(self, place: int) -> list[Message]:
        """From here on it is live. What it is given with this does not count as being behind."""
        topic = self._topic
        self._place, self._bytes = topic.end, topic.appended
        return topic.items[max(0, place - topic.start) :]

    def take(self) -> Message | None:
        """The next message, without waiting. Dropped; Ended."""
        self._check()
        topic = self._topic
        assert self._place is not None
        while self._place < topic.end:
            if self._place < topic.start:
                self._is_dropped = True
                raise Dropped
            message = topic.items[self._place - topic.start]
            self._place += 1
            self._bytes += message.size
            if self._after is not None:
                if message.position is not None and message.position <= self._after:
                    continue
                self._after = None
            return message
        if self._version != topic.version:
            self._version = topic.version
            return topic.state
        return None

    async def wait(self) -> None:
        """Until there may be something to take, or a ping is due."""
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def ping(self, now: float) -> None:
        if now >= self._ping_at:
            self._ping_at = now + self._ping_each
            self.ping_due = True
            self.wake()

    def within(self, seconds: float | None) -> None:
        """From now on, what is being sent has so long; None: as long as it takes."""
        if self._deadline is not None and not self._deadline.expired():
            self._check()
            self._deadline.reschedule(None if seconds is None else self._loop.time() + seconds)

    def drop(self) -> None:
        if not self._is_dropped:
            self._is_dropped = True
            self._interrupt()

    def end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._interrupt()

    def _interrupt(self) -> None:
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(self._loop.time())

    def _check(self) -> None:
        if self._has_ended:
            raise Ended
        if self._is_dropped:
            raise Dropped
