"""Queues: pause, resume, and how deep they are."""

from collections.abc import Mapping

from headrace.core.task import QueueRecord
from headrace.store.base import COUNTED_AT_MOST
from headrace.store.postgres.connection import Database, column
from headrace.store.postgres.wakeups import Waker

_DEPTHS = ("primary", "retry", "scheduled", "waiting", "claimed", "running")


class Queues:
    def __init__(self, database: Database, queries: Mapping[str, str], waker: Waker) -> None:
        self._database = database
        self._queries = queries
        self._waker = waker

    async def pause(self, queue: str) -> None:
        await self._database.fetch(self._queries["pause"], queue, repeatable=True)

    async def resume(self, queue: str) -> None:
        await self._database.fetch(self._queries["resume"], queue, repeatable=True)
        await self._waker.wake([queue])

    async def queue_names(self) -> list[str]:
        return column(await self._database.fetch(self._queries["queue_names"], repeatable=True))

    async def queues(self) -> list[QueueRecord]:
        rows = await self._database.fetch(self._queries["queues"], COUNTED_AT_MOST, repeatable=True)
        return [
            QueueRecord(name=row["name"], paused=row["paused"], depths={depth: row[depth] for depth in _DEPTHS})
            for row in rows
        ]
