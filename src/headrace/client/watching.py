"""Hints that something in the ledger has grown, for everyone in this process who waits for it."""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Generator
from contextvars import Context

from headrace.core.errors import StoreError
from headrace.store.base import Store
from headrace.store.watching import EVERYTHING

_LINGER = 5.0  # seconds after the last one who waited
_PAUSE = 1.0  # before another try where hints cannot be had; whoever waits polls meanwhile

_logger = logging.getLogger("headrace.client")


class Hub:
    """Lives on the background loop. One watch of the store, begun when somebody waits."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._signals: dict[str, set[asyncio.Event]] = {}
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._stopped = False

    @contextlib.contextmanager
    def listening(self, topics: Collection[str]) -> Generator[asyncio.Event]:
        """An event that a hint at one of these sets."""
        signal = asyncio.Event()
        for topic in topics:
            self._signals.setdefault(topic, set()).add(signal)
        try:
            yield signal
        finally:
            for topic in topics:
                signals = self._signals[topic]
                signals.discard(signal)
                if not signals:
                    del self._signals[topic]
            if not self._signals and self._task is not None and self._ending is None:
                self._ending = asyncio.get_running_loop().call_later(_LINGER, self._rest)

    async def wait(self, signal: asyncio.Event, pause: float) -> None:
        """Returns when the event is set, or after `pause` seconds."""
        if self._task is None and not self._stopped:
            # In a context of its own: it serves everyone, and must not end with the task whose call came first.
            self._task = asyncio.create_task(self._serve(), name="headrace-hub", context=Context())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await signal.wait()
        if self._stopped:
            raise StoreError("the store was closed while something in it was followed; it goes on without us")

    async def stop(self) -> None:
        self._stopped = True
        self._tell(EVERYTHING)
        if self._ending is not None:
            self._ending.cancel()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _rest(self) -> None:
        """Nobody has waited for a while: what the watch costs is given back."""
        self._ending = None
        if not self._signals and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _serve(self) -> None:
        while True:
            try:
                async with self._store.watch() as hints:
                    async for hint in hints:
                        self._tell(hint)
            except Exception as error:
                _logger.debug("no hints from the store: %s", error)
            await asyncio.sleep(_PAUSE)

    def _tell(self, hint: str) -> None:
        told = self._signals.values() if hint == EVERYTHING else (self._signals.get(hint, ()),)
        for signals in told:
            for signal in signals:
                signal.set()
