"""What the end of a task means for those that wait for it, for whole batches: what `core.advance` decides for one.

Tasks that nobody waits for cost a look into an index, and those without a job not even that.
"""

import sqlite3
from collections.abc import Mapping, Sequence

import orjson

from headrace.core.states import TaskState
from headrace.store.base import RELEASED_AT_ONCE
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.ending import Tally, free, ids_json

OUTCOMES = {TaskState.COMPLETED: 0, TaskState.FAILED: 1, TaskState.REJECTED: 1, TaskState.CANCELLED: 2}

_TABLES = ("make_ended", "make_lost", "make_lowered")


def prepare_advancing(connection: sqlite3.Connection, queries: Mapping[str, str]) -> None:
    for table in _TABLES:
        connection.execute(queries[table])


def advance(transaction: Transaction, ended: Mapping[int, Sequence[int]], tallies: dict[int, Tally]) -> None:
    """Settle what waits for tasks that just ended, by their outcomes; what can never run is added to the tallies."""
    transaction.run("clear_ended")
    noted = 0
    for outcome, ids in ended.items():
        noted += transaction.run("note_ended", {"ids": ids_json(ids), "outcome": outcome})
    if not noted:
        return
    most = {"most": RELEASED_AT_ONCE}
    remarkable = transaction.rows("remarkable_ended", most)
    if any(lost for _, _, lost in remarkable) and _cancel_lost(transaction, tallies):
        remarkable = transaction.rows("remarkable_ended", most)
    if wide := [id for id, n, lost in remarkable if n - lost > RELEASED_AT_ONCE]:
        transaction.run("keep_back", (ids_json(wide),))
        transaction.run("drop_kept_back", (ids_json(wide),))
        transaction.releasing = True
    transaction.run("clear_lowered")
    if transaction.run("note_lowered"):
        transaction.run("lower_barriers")
        free_lowered(transaction)


def _cancel_lost(transaction: Transaction, tallies: dict[int, Tally]) -> int:
    """Move all that can never run to history; how many of those somebody waits for."""
    transaction.run("clear_lost")
    if not transaction.run("note_lost"):
        return 0
    for job, n in transaction.rows("lost_of_jobs"):
        if job is not None:
            tallies.setdefault(job, Tally()).cancelled += n
    beside = transaction.rows("remarkable_lost")
    transaction.run("lost_history", {"now": transaction.now})
    transaction.run("note_lost_asked")
    transaction.run("delete_lost")
    free(
        transaction,
        keyed=[task for task, keyed, _ in beside if keyed],
        gated=[(task, gates) for task, _, gates in beside if gates is not None],
    )
    return transaction.run("lost_have_ended")


def free_lowered(transaction: Transaction) -> None:
    """Those whose barrier is down, of the ones that were just lowered or counted."""
    if transaction.run("free_lowered", {"now": transaction.now}):
        [(queues,)] = transaction.rows("queues_of_lowered")
        transaction.wakes.update(orjson.loads(queues))


def release(transaction: Transaction, limit: int) -> int:
    """Go on with dependents that were kept back, in the order of their ids; how many it looked at."""
    looked_at = 0
    while looked_at < limit and (row := transaction.row("next_release")) is not None:
        upstream, state, after = row
        place = {"upstream": upstream, "after": after}
        [(n, last)] = transaction.rows("part_of_release", {**place, "limit": limit - looked_at})
        if n:
            transaction.run("clear_lowered")
            transaction.run("note_released", {**place, "last": last, "outcome": OUTCOMES[TaskState(state)]})
            transaction.run("lower_barriers")
            free_lowered(transaction)
        if n < limit - looked_at:
            transaction.run("drop_releases", (ids_json([upstream]),))
        else:
            transaction.run("move_release", {"upstream": upstream, "last": last})
        looked_at += n
    return looked_at


class Advancing(Part):
    async def release(self, *, limit: int = 1000) -> int:
        # Mostly there is nothing: whoever only looks takes no lock.
        if not await self.database.read(lambda transaction: transaction.rows("next_release")):
            return 0
        return await self.database.write(lambda transaction: release(transaction, limit))
