"""Manual retry: what ended opens a new run, and what was cancelled because of it with it. The write lock makes two at
once one run.
"""

import sqlite3
from collections.abc import Mapping, Sequence

import orjson

from headrace.core.errors import NotFound, WrongState
from headrace.store.expecting import Expected
from headrace.store.sqlite.advancing import free_lowered
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.ending import free, ids_json
from headrace.store.sqlite.expecting import as_expected


def prepare_retrying(connection: sqlite3.Connection, queries: Mapping[str, str]) -> None:
    connection.execute(queries["make_reopened"])


def retry(transaction: Transaction, ids: Sequence[int]) -> list[int]:
    transaction.run("clear_reopened")
    if not transaction.run("note_reopened", (ids_json(ids),)):
        return []
    transaction.run("note_taken_down")
    return _reopen(transaction)


def clear(transaction: Transaction, task: int) -> list[int]:
    """The task and all that is below it, as if they had never run."""
    if not transaction.rows("ended_ids", (ids_json([task]),)):
        if transaction.rows("rows_by_id", (ids_json([task]),)):
            raise WrongState(f"task {task} has not ended; cancel it first, or let it end")
        raise NotFound(f"task {task} does not exist")
    transaction.run("clear_reopened")
    transaction.run("note_cleared", (task,))
    if held := transaction.row("held_reopened"):
        raise WrongState(
            f"task {held[0]} waits for task {task}, or for one that does, and is in a worker's hands; let it end, or "
            "cancel it, and clear again. Nothing changed"
        )
    cleared = _reopen(transaction, of=task)
    if task not in cleared:
        raise WrongState(f"task {task} can never run: what it waits for ended the other way. Clear that instead")
    return cleared


def _reopen(transaction: Transaction, *, of: int | None = None) -> list[int]:
    """Those that are noted, as far as they may. `of`: the task that is cleared, and nothing of before counts."""
    retaken = _retake_keys(transaction, of)
    transaction.run("drop_impossible")
    [(found,)] = transaction.rows("reopened")
    changed: list[int] = orjson.loads(found)
    if left := retaken.difference(changed):
        free(transaction, keyed=sorted(left), gated=())
    if not changed:
        return []
    jobs = transaction.rows("reopened_of_jobs")
    transaction.run("rerun", {"now": transaction.now, "forgets": of is not None})
    transaction.run("keep_attempts")
    transaction.run("asked_again")
    transaction.run("leave_history")
    if of is not None:
        transaction.run("begin_anew", {"now": transaction.now})
        transaction.run("ask_anew")
        transaction.run("forget_checkpoints")
        transaction.run("forget_waits")
        transaction.run("forget_events_of_cleared")
    transaction.run("stop_releases")
    transaction.run("clear_lowered")
    if transaction.run("note_recounted"):
        transaction.run("block_again")
        transaction.run("count_barriers")
        free_lowered(transaction)
    [(queues,)] = transaction.rows("queues_of_reopened")
    transaction.wakes.update(orjson.loads(queues))
    for job, completed, failed, cancelled in jobs:
        counts = {"completed": completed, "failed": failed, "cancelled": cancelled}
        transaction.run("uncount_job", {"job": job, **counts})
        transaction.changed_jobs.add(job)
        transaction.run("reopen_job", {"job": job, "now": transaction.now})
    return changed


def _retake_keys(transaction: Transaction, of: int | None) -> set[int]:
    """Give those that had unique keys theirs again. One whose key another task holds by now stays as it is."""
    retaken: set[int] = set()
    refused: list[int] = []
    for (task,) in transaction.rows("keyed_reopened"):
        if transaction.row("blocked_keys", {"task": task, "now": transaction.now}) is not None:
            if of is not None:
                raise WrongState(f"another task holds a unique key of task {task}, so task {of} cannot be cleared")
            refused.append(task)
            continue
        transaction.run("retake_keys", {"task": task})
        transaction.run("drop_key_names", {"task": task})
        retaken.add(task)
    if refused:
        transaction.run("drop_reopened", (ids_json(refused),))
    return retaken


class Retrying(Part):
    async def retry(self, ids: Sequence[int], *, expected: Expected | None = None) -> list[int]:
        return await self.database.write(
            lambda transaction: retry(transaction, as_expected(transaction, ids, expected))
        )
