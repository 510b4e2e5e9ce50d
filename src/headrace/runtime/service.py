"""Every background part is the same `Service`: read one and you have read all."""

import asyncio
import contextlib
import random
from dataclasses import dataclass

from headrace.core.errors import StoreUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often a service runs; `jitter` is the part of the interval by which each pause may be longer or shorter.

    While the store cannot be reached a service asks ever more rarely, up to `longest`.
    """

    interval: float
    jitter: float = 0.1
    longest: float = 5.0


class Service:
    """Runs `run_once` each interval in a named asyncio task until it is stopped.

    An unreachable store is waited out; any other error ends the service, and its supervision ends the worker: a part
    that is silently missing is worse than a worker that is visibly gone.
    """

    name = "service"

    def __init__(self, pace: Pace, *, rng: random.Random | None = None) -> None:
        self.pace = pace
        self._rng = rng or random.Random()
        self._soon = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def run_once(self) -> float | None:
        """One round. Returns the seconds until the next one where that differs from the interval."""
        raise NotImplementedError

    async def start(self) -> None:
        if self.task is None:
            self.task = asyncio.create_task(self._run(), name=f"headrace.{self.name}")

    async def stop(self) -> None:
        """End it now. Idempotent; a service that had died stays silent here, its supervision has spoken."""
        if self.task is None:
            return
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self.task

    def wake(self) -> None:
        """Run the next round now."""
        self._soon.set()

    async def _run(self) -> None:
        failures = 0
        while True:
            pause: float | None = None
            self._soon.clear()
            try:
                pause = await self.run_once()
                failures = 0
            except StoreUnavailable:
                failures += 1
                pause = min(self.pace.longest, self.pace.interval * 2 ** min(failures, 10))
            await self._rest(self.pace.interval if pause is None else pause)

    async def _rest(self, seconds: float) -> None:
        pause = seconds * (1 + self.pace.jitter * (2 * self._rng.random() - 1))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._soon.wait(), pause)
