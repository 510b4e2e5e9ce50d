"""Listens to the breakers of other processes for tasks that call services in this one."""

import asyncio

from headrace.runtime.service import Pace, Service
from headrace.worker.application import Listening


class BreakerWatch(Service):
    """One look at a small table each second, while tasks of this process use breakers; nothing otherwise.

    Code that cannot wait (a plain `with` inside a coroutine) goes by what this has heard. Children listen by themselves
    when they call a service.
    """

    name = "breaker watch"

    def __init__(self, sharing: Listening, *, interval: float = 1.0) -> None:
        super().__init__(Pace(interval=interval))
        self._sharing = sharing

    async def run_once(self) -> None:
        if self._sharing.in_use:
            await asyncio.wrap_future(self._sharing.look())
