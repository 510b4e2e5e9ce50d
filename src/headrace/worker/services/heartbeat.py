"""Renews the lease of a worker that has no supervisor. Weaker: a call that holds the GIL holds this back too."""

import time
from collections import deque
from collections.abc import Callable

from headrace.core.errors import LeaseLost
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store


class Heartbeat(Service):
    name = "heartbeat"

    def __init__(
        self, *, store: Store, interval: float, states: Callable[[], dict[str, str]], beats: deque[float]
    ) -> None:
        super().__init__(Pace(interval=interval, jitter=0.1))
        self._store = store
        self._states = states
        self._beats = beats

    async def run_once(self) -> None:
        states = self._states()
        alive = await self._store.heartbeat(list(states), states=states)
        lost = sorted(set(states) - alive)
        if lost:
            raise LeaseLost(f"worker {lost[0]} was taken for dead; it stops its attempts and starts anew")
        self._beats.append(time.monotonic())
