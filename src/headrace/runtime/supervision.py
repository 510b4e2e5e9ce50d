"""Keeps services together: they start in order, stop in reverse, and one that dies takes the others down."""

import asyncio
from collections.abc import Iterable

from headrace.core.errors import HeadraceError
from headrace.runtime.service import Service


class ServiceDied(HeadraceError):
    """A background part ended by an error; its worker stops, because it would do harm without it."""


class Supervision:
    def __init__(self, services: Iterable[Service]) -> None:
        self.services = list(services)

    async def start(self) -> None:
        for service in self.services:
            await service.start()

    async def stop(self) -> None:
        for service in reversed(self.services):
            await service.stop()

    async def watch(self) -> None:
        """Returns never; raises ServiceDied as soon as a service has ended."""
        tasks = {service.task: service for service in self.services if service.task is not None}
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            error = None if task.cancelled() else task.exception()
            if isinstance(error, HeadraceError):
                raise error
            raise ServiceDied(f"{tasks[task].name} died ({error!r}); its worker stops") from error
