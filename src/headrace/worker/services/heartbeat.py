"""Renews the lease of a worker that has no supervisor. Weaker: a call that holds the GIL holds this back too."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from headrace.core.errors import LeaseLost, StoreUnavailable
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store


async def renew(store: Store, states: dict[str, str], *, within: float) -> set[str]:
    """One heartbeat for all; a store that does not answer in time counts as unreachable, and is asked again."""
    try:
        async with asyncio.timeout(max(1.0, within)):
            return await store.heartbeat(list(states), states=states)
    except TimeoutError as error:
        raise StoreUnavailable(f"no answer to a heartbeat within {within:g} s; trying again") from error


class Heartbeat(Service):
    name = "heartbeat"

    def __init__(
        self, *, store: Store, interval: float, states: Callable[[], dict[str, str]], beats: deque[float]
    ) -> None:
        super().__init__(Pace(interval=interval, jitter=0.1, longest=interval / 2))
        self._store = store
        self._states = states
        self._beats = beats

    async def run_once(self) -> None:
        states = self._states()
        alive = await renew(self._store, states, within=self.pace.interval)
        lost = sorted(set(states) - alive)
        if lost:
            raise LeaseLost(f"worker {lost[0]} was taken for dead; it stops its attempts and starts anew")
        self._beats.append(time.monotonic())
