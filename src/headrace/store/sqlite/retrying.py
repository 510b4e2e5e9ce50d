"""Manual retry: what ended opens a new run. The write lock makes two at once one run."""

from collections.abc import Sequence

from headrace.core.states import TaskState
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.ending import Tally, ids_json


def retry(transaction: Transaction, ids: Sequence[int]) -> list[int]:
    changed: list[int] = []
    reopened: dict[int, Tally] = {}
    for task, state, job, keyed in transaction.rows("ended_rows", (ids_json(ids),)):
        if keyed and not _retake_keys(transaction, task):
            continue
        transaction.run("rerun", {"task": task, "now": transaction.now})
        if state == TaskState.COMPLETED:
            transaction.run("keep_attempt", (task,))
        transaction.wakes.update(queue for (queue,) in transaction.rows("leave_history", (task,)))
        changed.append(task)
        if job is not None:
            tally = reopened.setdefault(job, Tally())
            tally.completed += state == TaskState.COMPLETED
            tally.failed += state == TaskState.FAILED
            tally.cancelled += state == TaskState.CANCELLED
    for job, tally in sorted(reopened.items()):
        counts = {"completed": tally.completed, "failed": tally.failed, "cancelled": tally.cancelled}
        transaction.run("uncount_job", {"job": job, **counts})
        transaction.run("reopen_job", {"job": job, "now": transaction.now})
    return changed


def _retake_keys(transaction: Transaction, task: int) -> bool:
    """False when another task holds one of its unique keys by now."""
    parameters = {"task": task, "now": transaction.now}
    if transaction.row("blocked_keys", parameters) is not None:
        return False
    transaction.run("retake_keys", {"task": task})
    transaction.run("drop_key_names", {"task": task})
    return True


class Retrying(Part):
    async def retry(self, ids: Sequence[int]) -> list[int]:
        return await self.database.write(lambda transaction: retry(transaction, ids))
