"""Where tasks run in the process of a test: event loops, and what the app's lifespan opened on each.

A test that awaits has a loop of its own, and its tasks run there. For a test that blocks there is one loop on a thread.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context as Variables
from typing import Any

from headrace.client.bridge import running_loop
from headrace.testing.application import TestedApp

_LONGEST_CLOSE = 30.0


class Room:
    """The resources of one loop. A task of that loop holds the lifespan: entered and left by the same task, and left
    also when the loop ends first, which cancels its tasks.
    """

    def __init__(self, app: TestedApp) -> None:
        self.loop = asyncio.get_running_loop()
        self._app = app
        self._entered: asyncio.Future[Mapping[str, Any]] = self.loop.create_future()
        self._leave = asyncio.Event()
        self._holder = self.loop.create_task(self._hold(), name="headrace.testing.lifespan", context=Variables())

    async def resources(self) -> Mapping[str, Any]:
        return await asyncio.shield(self._entered)

    async def _hold(self) -> None:
        try:
            async with self._app.lifespan_context() as resources:
                self._entered.set_result(resources)
                await self._leave.wait()
        except BaseException as error:
            if self._entered.done():
                raise
            self._entered.set_exception(error)

    async def close(self) -> None:
        """Raises what the lifespan raises when it is left."""
        self._leave.set()
        await self._holder

    def close_soon(self) -> None:
        """From a thread that cannot wait for it: in the next turns of its loop."""
        with suppress(RuntimeError):  # the loop is closed, and with it the lifespan
            self.loop.call_soon_threadsafe(self._leave.set)


class LoopThread:
    """One event loop on a thread, for callers that block."""

    def __init__(self) -> None:
        ready: Future[asyncio.AbstractEventLoop] = Future()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="headrace-testing", daemon=True)
        self._thread.start()
        self._loop = ready.result()

    def _run(self, ready: Future[asyncio.AbstractEventLoop]) -> None:
        async def turn() -> None:
            ready.set_result(asyncio.get_running_loop())
            await self._stop.wait()

        # Cancels at its end what tasks left behind, and closes their generators.
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            runner.run(turn())

    def call[T](self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Block until it is done. What Ctrl-C leaves behind is cancelled."""
        future = asyncio.run_coroutine_threadsafe(work(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


class Rooms:
    """Those of one inline mode or one drain."""

    def __init__(self, app: TestedApp) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None
        self._rooms: dict[asyncio.AbstractEventLoop, Room] = {}

    @property
    def thread(self) -> LoopThread:
        with self._lock:
            if self._thread is None:
                self._thread = LoopThread()
            return self._thread

    async def resources_here(self) -> Mapping[str, Any]:
        """On the running loop."""
        loop = asyncio.get_running_loop()
        room = self._rooms.get(loop)
        if room is None:
            room = self._rooms[loop] = Room(self._app)
        return await room.resources()

    async def resources(self, *, blocking: bool) -> Mapping[str, Any]:
        return self.thread.call(self.resources_here) if blocking else await self.resources_here()

    async def aclose(self) -> None:
        here = self._rooms.pop(asyncio.get_running_loop(), None)
        try:
            if here is not None:
                await here.close()
        finally:
            self.close()

    def close(self) -> None:
        rooms, self._rooms = self._rooms, {}
        thread, self._thread = self._thread, None
        try:
            for loop, room in rooms.items():
                if loop is running_loop():
                    room.close_soon()
                elif loop.is_running():
                    asyncio.run_coroutine_threadsafe(room.close(), loop).result(timeout=_LONGEST_CLOSE)
        finally:
            if thread is not None:
                thread.stop()
