"""The end of a task: its row moves to history, its keys and slots become free. What follows from it: `job_counting`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from headrace.core.states import TaskState
from headrace.store.sqlite.admission import release_gates
from headrace.store.sqlite.connection import Transaction

_MAY_BE_ASKED = (TaskState.PENDING_APPROVAL, TaskState.BLOCKED)


class LiveRow(NamedTuple):
    """In the order of `held_rows` and `rows_by_id`."""

    id: int
    claim_no: int
    state: str
    reason: str | None
    run_no: int
    attempt: int
    losses: int
    lane: int
    job: int | None
    critical: int
    gates: str | None
    keyed: int
    queue: str
    eligible_at: int
    order_at: int
    expires_at: int | None
    claimed_at: int | None
    started_at: int | None

    @property
    def held(self) -> bool:
        return TaskState(self.state).held


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What becomes of one live row. None where the row already says it."""

    row: LiveRow
    state: TaskState
    reason: str | None
    claim_no: int | None = None
    attempt: int | None = None
    losses: int | None = None
    started_at: int | None = None
    dead_letter: bool = False
    result: str | None = None
    result_ref: str | None = None
    result_expires_at: int | None = None
    error_class: str | None = None
    error_message: str | None = None
    executor: str | None = None

    def parameters(self, now: int) -> dict[str, Any]:
        row = self.row
        return {
            "task": row.id,
            "state": self.state.value,
            "reason": self.reason,
            "claim_no": row.claim_no if self.claim_no is None else self.claim_no,
            "attempt": row.attempt if self.attempt is None else self.attempt,
            "losses": row.losses if self.losses is None else self.losses,
            "started_at": row.started_at if self.started_at is None else self.started_at,
            "dead_letter": self.dead_letter,
            "result": self.result,
            "result_ref": self.result_ref,
            "result_expires_at": self.result_expires_at,
            "error_class": self.error_class,
            "error_message": self.error_message,
            "executor": self.executor,
            "now": now,
        }


@dataclass(slots=True)
class Tally:
    """What a batch adds to the counts of one job."""

    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    broken: bool = False  # by the failure of a critical task


def ids_json(ids: Iterable[int]) -> str:
    return orjson.dumps(list(ids)).decode()


def rows_by_id(transaction: Transaction, ids: Sequence[int]) -> list[LiveRow]:
    return [LiveRow(*row) for row in transaction.rows("rows_by_id", (ids_json(ids),))]


def end(transaction: Transaction, endings: Sequence[Ending]) -> dict[int, Tally]:
    """Move the rows to history and free what they held; what their jobs must count."""
    if not endings:
        return {}
    transaction.run_many("insert_history", [ending.parameters(transaction.now) for ending in endings])
    if waiting := [ending.row.id for ending in endings if ending.row.state in _MAY_BE_ASKED]:
        transaction.run("note_asked", (ids_json(waiting),))
    transaction.run("delete_tasks", (ids_json(ending.row.id for ending in endings),))
    free(
        transaction,
        keyed=[ending.row.id for ending in endings if ending.row.keyed],
        gated=[(ending.row.id, ending.row.gates) for ending in endings if ending.row.gates is not None],
    )
    tallies: dict[int, Tally] = {}
    for ending in endings:
        if ending.row.job is not None:
            _add(tallies.setdefault(ending.row.job, Tally()), ending)
    return tallies


def free(transaction: Transaction, *, keyed: Sequence[int], gated: Sequence[tuple[int, str | None]]) -> None:
    """Free what tasks that ended held: keys, and room behind gates."""
    if keyed:
        ids = ids_json(keyed)
        transaction.run("keep_key_names", (ids,))
        transaction.run("expire_keys", {"now": transaction.now, "ids": ids})
        transaction.run("drop_keys", (ids,))
    if gated:
        release_gates(transaction, gated)


def _add(tally: Tally, ending: Ending) -> None:
    match ending.state:
        case TaskState.COMPLETED:
            tally.completed += 1
        case TaskState.FAILED:
            tally.failed += 1
        case _:
            tally.cancelled += 1


def cancelled(rows: Iterable[LiveRow], reason: str) -> list[Ending]:
    """The endings of rows that nobody holds."""
    return [Ending(row=row, state=TaskState.CANCELLED, reason=reason) for row in rows]
