"""The store of a process that has time: while it cannot be reached, wait.

Only an outage is waited out. What another try would only repeat (a URL that is wrong, a password, a database that does
not exist, a schema that is newer, a driver that is not installed) is raised at once.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import Any

from headrace.core.errors import SchemaError, StoreUnavailable
from headrace.store.base import Store
from headrace.telemetry.events import Bus, StoreBack, StoreLost

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_SAID_AGAIN = 30.0  # and from then on after twice as long each time


async def reach(
    make: Callable[[], Store], *, who: str, bus: Bus, stopping: asyncio.Event, upgrade: bool = False
) -> Store | None:
    """The open store, with its schema made first where `upgrade` asks for it; None when `stopping` came before it."""
    complaint, pause = _Complaint(who, bus), _SHORTEST_PAUSE
    while not stopping.is_set():
        try:
            store = await _unless(stopping, _opened(make, upgrade=upgrade))
        except StoreUnavailable as error:
            complaint.say(error)
        else:
            if store is not None:
                complaint.over()
            return store
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), pause)
        pause = min(_LONGEST_PAUSE, pause * 2)
    return None


async def _opened(make: Callable[[], Store], *, upgrade: bool) -> Store:
    if upgrade:
        await _answers(make())
    store = make()
    try:
        if upgrade:
            await store.upgrade()
        await store.open()
    except BaseException:
        await store.close()
        raise
    return store


async def _answers(store: Store) -> None:
    """Asked before a migration: that runs on a thread, which cannot be given up while it connects."""
    try:
        with contextlib.suppress(SchemaError):
            await store.open()
    finally:
        await store.close()


async def _unless[T](stopping: asyncio.Event, act: Coroutine[Any, Any, T]) -> T | None:
    """What it gives. It is given up (None) when `stopping` is set first: a host that drops packets answers late."""
    acting, told = asyncio.ensure_future(act), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait({acting, told}, return_when=asyncio.FIRST_COMPLETED)
        return acting.result() if acting.done() else None
    finally:
        acting.cancel()
        told.cancel()
        await asyncio.gather(acting, told, return_exceptions=True)


class _Complaint:
    """Says why it waits: at once, and then ever more rarely."""

    def __init__(self, who: str, bus: Bus) -> None:
        self._who = who
        self._bus = bus
        self._since: float | None = None
        self._next = 0.0

    def say(self, error: StoreUnavailable) -> None:
        now = time.monotonic()
        if self._since is None:
            self._since, self._next = now, now + _SAID_AGAIN
        elif now >= self._next:
            self._next = now + (now - self._since)
        else:
            return
        self._bus.emit(StoreLost(what=self._who, error=str(error)))

    def over(self) -> None:
        if self._since is not None:
            self._bus.emit(StoreBack(what=self._who, after=time.monotonic() - self._since))
