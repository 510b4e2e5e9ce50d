"""Hears wake-ups: hints that there may be work, or that something is to be cancelled."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.runtime.service import Pace, Service
from headrace.store.base import RETRIES, Store


class Poke(Protocol):
    def __call__(self, queue: str | None, /, *, new: bool = True) -> None: ...


class Listener(Service):
    """Listens until the queues change or the store goes away, then anew; polling covers whatever is missed."""

    name = "listener"

    def __init__(
        self,
        *,
        store: Store,
        worker: Callable[[], str],
        poke: Poke,
        cancel: Callable[[], None],
    ) -> None:
        super().__init__(Pace(interval=0.5))
        self._store = store
        self._worker = worker
        self._poke = poke
        self._cancel = cancel
        self._queues: tuple[str, ...] = ()
        self._changed = asyncio.Event()

    def set_queues(self, queues: Sequence[str]) -> None:
        if tuple(queues) != self._queues:
            self._queues = tuple(queues)
            self._changed.set()
            self.wake()

    async def run_once(self) -> float | None:
        self._changed.clear()
        if not self._queues:
            return None
        hearing = asyncio.create_task(self._hear(), name="headrace.listener.hearing")
        changed = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait({hearing, changed}, return_when=asyncio.FIRST_COMPLETED)
            if hearing.done():
                hearing.result()
                return None
            return 0.0
        finally:
            for task in (hearing, changed):
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await hearing

    async def _hear(self) -> None:
        async with self._store.listen(self._worker(), self._queues) as wakeups:
            self._poke(None)  # whatever was missed until now
            async for name in wakeups:
                if name == "cancel":
                    self._cancel()
                elif name.startswith(RETRIES):
                    self._poke(name.removeprefix(RETRIES), new=False)
                else:
                    self._poke(name)
