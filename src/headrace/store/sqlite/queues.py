"""Limits and rates that are set for a queue at run time."""

from collections.abc import Callable

from headrace.core.limits import Rate
from headrace.core.queue_settings import limit_key, patch
from headrace.store.sqlite.admission import READIED_AT_ONCE, ready_next
from headrace.store.sqlite.connection import Part, Transaction


class QueueSetting(Part):
    async def limit_queue(self, queue: str, limit: int | None) -> None:
        def ready(transaction: Transaction) -> int:
            return ready_next(transaction, f"limit:{limit_key(queue)}")

        await self._set_queue(queue, patch(limit=limit), ready)

    async def rate_queue(self, queue: str, rate: Rate | None) -> None:
        def ready(transaction: Transaction) -> int:
            parameters = {"queue": queue, "now": transaction.now, "limit": READIED_AT_ONCE}
            return transaction.run("ready_rated", parameters)

        await self._set_queue(queue, patch(rate=rate), ready)

    async def _set_queue(self, queue: str, patch: str, ready: Callable[[Transaction], int]) -> None:
        """The setting, and whoever waited for it: many of them in transactions of their own, after the first."""

        def write(transaction: Transaction) -> int:
            transaction.run("set_queue", {"queue": queue, "patch": patch})
            transaction.wakes.add(queue)
            return ready(transaction)

        readied = await self.database.write(write)
        while readied >= READIED_AT_ONCE:
            readied = await self.database.write(ready)
