"""Durable steps: a value stored once under a name."""

from dataclasses import replace

from headrace.core.errors import DurableError
from headrace.core.task import NewTask, Ref
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.graphs import add


def save_checkpoint(transaction: Transaction, worker: str, ref: Ref, name: str, value: str) -> str | None:
    fence = {"task": ref.id, "claim_no": ref.claim_no, "worker": worker, "name": name}
    transaction.run("save_checkpoint", {**fence, "value": value, "now": transaction.now})
    row = transaction.row("checkpoint_that_stands", fence)
    return None if row is None else row[0]


def spawn(transaction: Transaction, worker: str, ref: Ref, name: str, task: NewTask) -> int | None:
    """The write lock makes two at once one task."""
    fence = {"task": ref.id, "claim_no": ref.claim_no, "worker": worker, "name": name}
    if (row := transaction.row("checkpoint_that_stands", fence)) is not None:
        return int(row[0])
    caller = transaction.row("owner_of_claim", fence)
    if caller is None:
        return None
    (answer,) = add(transaction, [task if task.owner is not None else replace(task, owner=caller[0])])
    if answer.id == ref.id:
        raise DurableError(
            f"task {ref.id} calls {task.name} as {name!r}, whose unique key it holds itself: it would wait for itself. "
            "Give the call a key of its own"
        )
    stored = save_checkpoint(transaction, worker, ref, name, str(answer.id))
    return None if stored is None else int(stored)


class Checkpointing(Part):
    async def save_checkpoint(self, worker: str, ref: Ref, name: str, value: str) -> str | None:
        return await self.database.write(lambda transaction: save_checkpoint(transaction, worker, ref, name, value))

    async def spawn(self, worker: str, ref: Ref, name: str, task: NewTask) -> int | None:
        return await self.database.write(lambda transaction: spawn(transaction, worker, ref, name, task))

    async def checkpoints(self, task: int) -> dict[str, str]:
        return dict(await self.database.read(lambda transaction: transaction.rows("checkpoints", (task,))))

    async def checkpoint(self, task: int, name: str) -> str | None:
        row = await self.database.read(lambda transaction: transaction.row("checkpoint", (task, name)))
        return None if row is None else row[0]
