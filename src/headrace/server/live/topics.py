"""One topic: the end of a sequence in memory, once, and the places in it where its watchers are."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from headrace.server.live.messages import BEGINNING, Message, Position
from headrace.server.live.pace import PAGE, SLICE, SLICE_BYTES, Pace
from headrace.server.live.sources import Source
from headrace.server.live.watchers import Watcher
from headrace.store.base import Store


class Reading(Protocol):
    """Does something with the store, wherever that lives."""

    async def __call__[T](self, act: Callable[[Store], Coroutine[Any, Any, T]], /) -> T: ...


class Topic:
    """Lives on the server's loop. Everything behind `floor` up to `last` is in `items`, and nothing else."""

    def __init__(self, source: Source, pace: Pace) -> None:
        self.source = source
        self.pace = pace
        self.watchers: set[Watcher] = set()
        self.items: list[Message] = []
        self.start = 0  # the number of items[0] among all that were ever appended here
        self.floor: Position = BEGINNING
        self.last: Position = BEGINNING
        self.appended = 0  # bytes, ever
        self.held = 0  # bytes
        self.state: Message | None = None
        self.version = 0  # of the state: how often it was another

    @property
    def end(self) -> int:
        return self.start + len(self.items)

    @property
    def has_late_join(self) -> bool:
        """It began with what a late watcher is shown, so while nothing is forgotten that is here."""
        return self.start == 0 or len(self.items) >= self.source.late_join

    def covers(self, position: Position) -> bool:
        """Whether everything behind that position is here, or still to come."""
        return position >= self.floor

    def place_behind(self, position: Position) -> int:
        """The number of the first item behind a position."""
        for place in range(len(self.items), 0, -1):
            found = self.items[place - 1].position
            if found is not None and found <= position:
                return self.start + place
        return self.start

    async def begin(self, read: Reading) -> None:
        """With what a late watcher is shown: the store is asked once for all who come at once."""
        state = await read(self.source.state)
        last, self.floor = await read(self.source.last)
        self.last = self.floor
        self.append(last)
        self._show(state)

    async def read(self, read: Reading) -> None:
        """What is new. The state is read first and shown last: of a task that has ended, everything was shown."""
        state = await read(self.source.state)
        while self.source.late_join:
            page = await read(lambda store: self.source.behind(store, self.last, PAGE))
            await self._deliver(page)
            if len(page) < PAGE:
                break
        self._show(state)

    async def _deliver(self, page: list[Message]) -> None:
        for part in _slices(page):
            for watcher in self.watchers:
                if watcher.messages_behind > self.pace.most_messages or watcher.bytes_behind > self.pace.most_bytes:
                    watcher.drop()
            self.append(part)
            for watcher in self.watchers:
                watcher.wake()
            # One turn of the loop: whoever can send has sent, and is not behind when the next slice comes.
            await asyncio.sleep(0)

    def append(self, part: Iterable[Message]) -> None:
        for message in part:
            self.items.append(message)
            self.last = message.position or self.last
            self.appended += message.size
            self.held += message.size
        # More than who is not dropped can be behind, with a slice to spare.
        keep = max(self.source.late_join, self.pace.most_messages + SLICE)
        most = 2 * (self.pace.most_bytes + SLICE_BYTES)
        if len(self.items) > 2 * keep or self.held > 2 * most:
            self._forget(keep, most)

    def _forget(self, keep: int, most: int) -> None:
        gone = 0
        while gone < len(self.items) - 1 and (len(self.items) - gone > keep or self.held > most):
            self.held -= self.items[gone].size
            self.floor = self.items[gone].position or self.floor
            gone += 1
        del self.items[:gone]
        self.start += gone

    def _show(self, state: Message | None) -> None:
        if state is None or (self.state is not None and state.text == self.state.text):
            return
        self.state = state
        self.version += 1
        for watcher in self.watchers:
            watcher.wake()


def _slices(page: list[Message]) -> Iterable[list[Message]]:
    part: list[Message] = []
    size = 0
    for message in page:
        part.append(message)
        size += message.size
        if len(part) >= SLICE or size >= SLICE_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
