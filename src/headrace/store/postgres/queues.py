"""Queues: pause, resume, what is set for them at run time, and how deep they are."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from headrace.core.limits import Gate, Rate, gates_to_json
from headrace.core.queue_settings import UNSET, counted, limit_key, patch, settings_from_json
from headrace.core.task import QueueRecord
from headrace.store.base import COUNTED_AT_MOST
from headrace.store.postgres.connection import Connection, Database, Rows, column
from headrace.store.postgres.wakeups import Waker

_DEPTHS = ("primary", "retry", "scheduled", "waiting", "claimed", "running")
_READIED_AT_ONCE = 1000  # as the function `wake_gates` does


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
        return [_record(row) for row in rows]

    async def limit_queue(self, queue: str, limit: int | None) -> None:
        gate = gates_to_json([Gate(kind="limit", key=limit_key(queue))])

        async def count(connection: Connection) -> None:
            if limit is not None:
                await self._count_running(connection, queue, limit)

        async def ready(connection: Connection) -> int:
            return await connection.fetchval(self._queries["wake_gates"], [gate])

        await self._set(queue, patch(limit=limit), ready, before=count)

    async def rate_queue(self, queue: str, rate: Rate | None) -> None:
        async def ready(connection: Connection) -> int:
            return len(await connection.fetch(self._queries["ready_rated"], queue, _READIED_AT_ONCE))

        await self._set(queue, patch(rate=rate), ready)

    async def _count_running(self, connection: Connection, queue: str, limit: int) -> None:
        """What runs already takes its place, so that a limit that is new counts it, too. Tasks before their gate, as
        everybody locks them."""
        key = f"limit:{limit_key(queue)}"
        settings = await connection.fetchval(self._queries["hold_queue"], queue)
        rows = await connection.fetch(self._queries["uncounted"], queue, key, settings in (None, UNSET))
        if not rows:
            return
        locked: Rows = []
        while not locked:  # `prune` may take it away between the two
            await connection.execute(self._queries["make_gates"], [key])
            locked = await connection.fetch(self._queries["lock_gates"], [key])
        taken = {row["slot"] for row in await connection.fetch(self._queries["slots"], [key])}
        first, n = max(taken, default=-1) + 1, max(limit, len(taken) + len(rows))
        ids = [row["id"] for row in rows]
        slots = list(range(first, first + len(rows)))
        claim_nos = [row["claim_no"] for row in rows]
        await connection.execute(self._queries["take_slots"], [key] * len(rows), slots, ids, claim_nos)
        gates = [gates_to_json(counted(queue, row["gates"], n)) for row in rows]
        await connection.execute(self._queries["set_gates"], ids, gates)

    async def _set(
        self,
        queue: str,
        patch: str,
        ready: Callable[[Connection], Awaitable[int]],
        *,
        before: Callable[[Connection], Awaitable[None]] | None = None,
    ) -> None:
        """The setting, and whoever waited for it: many of them in transactions of their own, after the first."""

        async def write(connection: Connection) -> int:
            if before is not None:
                await before(connection)
            await connection.execute(self._queries["set_queue"], queue, patch)
            return await ready(connection)

        readied = await self._database.run(write, repeatable=True)
        while readied >= _READIED_AT_ONCE:
            readied = await self._database.run(ready, repeatable=True)
        await self._waker.wake([queue])


def _record(row: Any) -> QueueRecord:
    limit, rate = settings_from_json(row["settings"])
    depths = {depth: row[depth] for depth in _DEPTHS}
    return QueueRecord(name=row["name"], paused=row["paused"], depths=depths, limit=limit, rate=rate)
