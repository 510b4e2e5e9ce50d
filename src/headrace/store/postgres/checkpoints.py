"""Durable steps."""

from collections.abc import Mapping
from dataclasses import replace

from headrace.core.errors import DurableError
from headrace.core.task import NewTask, Ref
from headrace.store.postgres.connection import Connection, Database
from headrace.store.postgres.enqueueing import Enqueueing, document, ready_queues


class Checkpoints:
    def __init__(self, database: Database, queries: Mapping[str, str], enqueueing: Enqueueing) -> None:
        self._database = database
        self._queries = queries
        self._enqueueing = enqueueing

    async def save_checkpoint(self, worker: str, ref: Ref, name: str, value: str) -> str | None:
        rows = await self._database.fetch(
            self._queries["save_checkpoint"], worker, ref.id, ref.claim_no, name, value, repeatable=True
        )
        return rows[0][0] if rows else None

    async def spawn(self, worker: str, ref: Ref, name: str, task: NewTask) -> int | None:
        ids = await self._enqueueing.take_ids(1)
        repeats = self._enqueueing.repeats

        async def write(connection: Connection) -> int | None:
            # Under the lock of the task that spawns: of two at once, and of an earlier try, the second finds the step.
            found = await connection.fetch(self._queries["step_of_claim"], worker, ref.id, ref.claim_no)
            if not found:
                return None
            stored = await connection.fetchval(self._queries["checkpoint"], ref.id, name)
            if stored is None:
                mine = task if task.owner is not None else replace(task, owner=found[0][0])
                text = document([mine], ids=ids, repeats=repeats, own=True, notify=ready_queues([mine]))
                [child] = await self._enqueueing.write(connection, text)
                if child.id == ref.id:
                    raise DurableError(
                        f"task {ref.id} calls {task.name!r} with a unique key that it holds itself: it would wait for "
                        "its own end; nothing was enqueued"
                    )
                [row] = await connection.fetch(
                    self._queries["save_checkpoint"], worker, ref.id, ref.claim_no, name, str(child.id)
                )
                stored = row[0]
            return int(stored)

        return await self._database.run(write, repeatable=True)

    async def checkpoints(self, task: int) -> dict[str, str]:
        rows = await self._database.fetch(self._queries["checkpoints"], task, repeatable=True)
        return {row["name"]: row["value"] for row in rows}

    async def checkpoint(self, task: int, name: str) -> str | None:
        rows = await self._database.fetch(self._queries["checkpoint"], task, name, repeatable=True)
        return rows[0][0] if rows else None
