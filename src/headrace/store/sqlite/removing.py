"""Removal of tasks with everything that is keyed by them."""

from collections.abc import Iterable, Sequence

from headrace.core.states import Reason
from headrace.store.expecting import Expected
from headrace.store.removing import DeleteAnswer, removable
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.ending import cancelled, ids_json, rows_by_id
from headrace.store.sqlite.expecting import as_expected
from headrace.store.sqlite.job_counting import conclude

# With everything that is keyed by the task; a job's counters know of more from then on.
_REMOVAL = (
    "note_pruned_jobs",
    "prune_attempts",
    "prune_logs",
    "prune_checkpoints",
    "prune_waits",
    "prune_edges",
    "prune_barriers",
    "drop_releases",
    "prune_task_keys",
    "prune_history",
)


def remove(transaction: Transaction, ids: Iterable[int]) -> list[str]:
    """Remove ended tasks; what the results of those that are gone refer to."""
    parameters = (ids_json(ids),)
    blobs = [blob for (blob,) in transaction.rows("blobs_of_tasks", parameters)]
    for query in _REMOVAL:
        transaction.run(query, parameters)
    return blobs


def purge(transaction: Transaction, ids: Sequence[int]) -> list[int]:
    found = [id for (id,) in transaction.rows("dead_letters", (ids_json(ids),))]
    remove(transaction, found)
    return found


def delete_expected(transaction: Transaction, ids: Sequence[int], expected: Expected | None) -> dict[int, DeleteAnswer]:
    chosen = as_expected(transaction, ids, expected)
    return {**dict.fromkeys(ids, DeleteAnswer.CHANGED_MEANWHILE), **delete(transaction, chosen)}


def delete(transaction: Transaction, ids: Sequence[int]) -> dict[int, DeleteAnswer]:
    answers = dict.fromkeys(ids, DeleteAnswer.UNKNOWN)
    wanted = ids_json(answers)
    live = {row.id: row for row in rows_by_id(transaction, list(answers))}
    done = {id: bool(open_job) for id, open_job in transaction.rows("ended_with_jobs", (wanted,))}
    answers.update({id: DeleteAnswer.HELD if row.held else DeleteAnswer.NEEDED for id, row in live.items()})
    answers.update(dict.fromkeys(done, DeleteAnswer.NEEDED))
    free = [id for id, row in live.items() if not row.held and row.job is None]
    over = [id for id, open_job in done.items() if not open_job]
    waiting: list[tuple[int, int]] = [(task, waiter) for task, waiter in transaction.rows("live_waiters", (wanted,))]
    going = removable((*free, *over), waiting)
    # By way of an end like any other, so that whatever it held is free: keys, room behind gates, its place in an order.
    conclude(transaction, cancelled((live[id] for id in free if id in going), Reason.USER))
    transaction.run("drop_all_keys", (ids_json(going),))
    remove(transaction, going)
    return {**answers, **dict.fromkeys(going, DeleteAnswer.DELETED)}


class Removing(Part):
    async def purge(self, ids: Sequence[int]) -> list[int]:
        return await self.database.write(lambda transaction: purge(transaction, ids))

    async def delete(self, ids: Sequence[int], *, expected: Expected | None = None) -> dict[int, DeleteAnswer]:
        return await self.database.write(lambda transaction: delete_expected(transaction, ids, expected))
