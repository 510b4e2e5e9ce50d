"""A line to PostgreSQL on the caller's own event loop, for calls that hand over a few tasks.

The way over the background loop changes threads twice, which takes as long as the statement itself (1.2 ms a call
instead of 0.8). So a loop that enqueues gets a small store of its own. It is closed with the app, or when the loop
ends: that closes the asynchronous generators that were begun on it, and one of them holds the store.

Bulk enqueues do not come here: they prepare one chunk while the last is written, which takes two threads.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import wait as wait_for_futures

from headrace.client.bridge import BRIDGE, must_block, running_loop
from headrace.client.coalescing import Coalescer
from headrace.core.task import Enqueued, NewTask
from headrace.store.base import Store

_LONGEST_CLOSE, _LOOK = 5.0, 0.1


class _Line:
    def __init__(self, loop: asyncio.AbstractEventLoop, new_store: Callable[[], Store]) -> None:
        self.loop = loop
        self.coalescer = Coalescer(self._write, loop)
        self._new_store = new_store
        self._opening = asyncio.Lock()
        self._store: Store | None = None
        self._holder: AsyncGenerator[None] | None = None

    async def _write(self, tasks: Sequence[NewTask]) -> list[Enqueued]:
        store = self._store
        if store is None:
            store = await self._open()
        return await store.enqueue(tasks)

    async def _open(self) -> Store:
        async with self._opening:
            if self._store is None:
                store = self._new_store()
                try:
                    await store.open()
                except BaseException:
                    await store.close()
                    raise
                self._holder = self._hold(store)
                await anext(self._holder)
                self._store = store
            return self._store

    async def _hold(self, store: Store) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            self._store = None
            await store.close()

    async def close(self) -> None:
        """Once what was begun before is written."""
        await self.coalescer.flushed()
        async with self._opening:
            if self._holder is not None:
                await self._holder.aclose()


class Nearby:
    """The lines of one app, one per loop."""

    def __init__(self, new_store: Callable[[], Store]) -> None:
        self._new_store = new_store
        # With the number of forks that led here: the parent's are not ours to use, nor to destroy.
        self._lines: dict[tuple[int, int], _Line] = {}

    def coalescer(self) -> Coalescer | None:
        """Of the running loop. None where a thread blocks, and on the background loop, which has its own."""
        loop = running_loop()
        if loop is None or must_block() or (BRIDGE.running and loop is BRIDGE.loop):
            return None
        key = (BRIDGE.forks, id(loop))
        line = self._lines.get(key)
        if line is None or line.loop is not loop:
            self._forget_ended()
            line = self._lines[key] = _Line(loop, self._new_store)
        return line.coalescer

    async def aclose(self) -> None:
        """Close those of this process; whoever enqueues afterwards opens one anew."""
        for key, line in list(self._lines.items()):
            if key[0] == BRIDGE.forks:
                self._lines.pop(key, None)
                if line.loop is running_loop():
                    await line.close()
                elif line.loop.is_running():
                    await _closed_elsewhere(line)
                # One that stands still cannot be asked. It closes what it has when it goes on or ends.

    def _forget_ended(self) -> None:
        for key, line in list(self._lines.items()):
            if key[0] == BRIDGE.forks and line.loop.is_closed():
                self._lines.pop(key, None)


async def _closed_elsewhere(line: _Line) -> None:
    """Wait for another thread's loop, but not for ever: it may be blocked, or end at this moment."""
    closing = line.close()
    try:
        closed = asyncio.run_coroutine_threadsafe(closing, line.loop)
    except RuntimeError:  # it has ended
        closing.close()
        return
    until = time.monotonic() + _LONGEST_CLOSE
    while not closed.done() and line.loop.is_running() and time.monotonic() < until:
        if running_loop() is None:
            wait_for_futures({closed}, timeout=_LOOK)
        else:
            await asyncio.wait({asyncio.wrap_future(closed)}, timeout=_LOOK)
