"""Successes, most of what is ever finished: the whole batch in one statement for each table."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, TaskState
from headrace.store.sqlite.advancing import OUTCOMES, advance
from headrace.store.sqlite.connection import Transaction
from headrace.store.sqlite.ending import Tally, free, ids_json
from headrace.store.sqlite.enqueueing import seconds_to_micros
from headrace.store.sqlite.job_counting import count
from headrace.store.texts import is_storable


def prepare_completing(connection: sqlite3.Connection, queries: Mapping[str, str]) -> None:
    connection.execute(queries["make_completed"])


def is_plain(settlement: Settlement) -> bool:
    """Whether the history row says all of its attempt, which then needs no row of its own, unless a start wrote one."""
    return (
        settlement.state is TaskState.COMPLETED
        and settlement.attempt is AttemptState.SUCCEEDED
        and settlement.charged
        and settlement.error is None
        and settlement.recorded_by == "worker"
    )


def succeeded(settlement: Settlement) -> bool:
    """Whether it is a success as `settle` makes them, so that the row and the outcome say all there is to write."""
    return (
        is_plain(settlement)
        and not (settlement.reason or settlement.suspect or settlement.dead_letter)
        and is_storable(settlement.result)
        and is_storable(settlement.result_ref)
    )


def complete(transaction: Transaction, worker: str, settlements: Sequence[Settlement]) -> set[int]:
    """Write the successes of different tasks; the tasks whose fence does not hold, of which nothing was written."""
    now = transaction.now
    transaction.run("clear_completed")  # of a batch that was undone
    transaction.insert_all("note_completed", [_outcome(settlement, now) for settlement in settlements])
    remarkable = transaction.rows("remarkable_completed", (worker,))
    unfenced = {task for task, is_unfenced, *_ in remarkable if is_unfenced}
    if len(unfenced) == len(settlements):
        return unfenced
    if unfenced:
        transaction.run("drop_unfenced", (ids_json(unfenced),))
    more = [row for row in remarkable if row[0] not in unfenced]
    if any(started for *_, started in more):
        transaction.run("completed_attempts", {"now": now})
    transaction.run("completed_history", {"now": now})
    transaction.run("delete_completed")
    transaction.run("clear_completed")
    if more:
        free(
            transaction,
            keyed=[task for task, _, _, keyed, *_ in more if keyed],
            gated=[(task, gates) for task, *_, gates, _ in more if gates is not None],
        )
        tallies: dict[int, Tally] = {}
        ended: list[int] = []
        for task, _, job, keyed, *_ in more:
            if job is not None:
                tallies.setdefault(job, Tally()).completed += 1
            if keyed or job is not None:
                ended.append(task)
        if ended:
            advance(transaction, {OUTCOMES[TaskState.COMPLETED]: ended}, tallies)
            count(transaction, tallies)
    completed = len(settlements) - len(unfenced)
    transaction.run("count_worker", {"worker": worker, "completed": completed, "failed": 0})
    return unfenced


def _outcome(settlement: Settlement, now: int) -> tuple[Any, ...]:
    result, result_ref, ttl, ran_for = (
        settlement.result,
        settlement.result_ref,
        settlement.result_ttl,
        settlement.ran_for,
    )
    return (
        settlement.task,
        settlement.claim_no,
        settlement.executor,
        None if ran_for is None else seconds_to_micros(ran_for),
        result,
        result_ref,
        None if ttl is None or not (result or result_ref) else now + seconds_to_micros(ttl),
    )
