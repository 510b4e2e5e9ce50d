"""Durable steps: a value stored once under a name."""

from headrace.core.task import Ref
from headrace.store.sqlite.connection import Part, Transaction


def save_checkpoint(transaction: Transaction, worker: str, ref: Ref, name: str, value: str) -> str | None:
    fence = {"task": ref.id, "claim_no": ref.claim_no, "worker": worker, "name": name}
    transaction.run("save_checkpoint", {**fence, "value": value, "now": transaction.now})
    row = transaction.row("checkpoint_that_stands", fence)
    return None if row is None else row[0]


class Checkpointing(Part):
    async def save_checkpoint(self, worker: str, ref: Ref, name: str, value: str) -> str | None:
        return await self.database.write(lambda transaction: save_checkpoint(transaction, worker, ref, name, value))

    async def checkpoints(self, task: int) -> dict[str, str]:
        return dict(await self.database.read(lambda transaction: transaction.rows("checkpoints", (task,))))
