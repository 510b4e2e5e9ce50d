"""Cancel: at once where nobody holds the task, by a signal to its worker where somebody does."""

from collections.abc import Sequence

from headrace.core.states import AttemptState, Reason, TaskState
from headrace.core.task import Ref
from headrace.store.base import CancelAnswer
from headrace.store.expecting import Expected
from headrace.store.sqlite.attempts import Attempt, close_attempts, ends_at
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.ending import Ending, LiveRow, cancelled, ids_json, rows_by_id
from headrace.store.sqlite.enqueueing import seconds_to_micros
from headrace.store.sqlite.expecting import as_expected
from headrace.store.sqlite.job_counting import conclude


def cancel_expected(
    transaction: Transaction, ids: Sequence[int], reason: str, expected: Expected | None
) -> dict[int, CancelAnswer]:
    chosen = as_expected(transaction, ids, expected)
    return {**dict.fromkeys(ids, CancelAnswer.CHANGED_MEANWHILE), **cancel(transaction, chosen, reason)}


def cancel(transaction: Transaction, ids: Sequence[int], reason: str) -> dict[int, CancelAnswer]:
    answers = dict.fromkeys(ids, CancelAnswer.UNKNOWN)
    rows = rows_by_id(transaction, ids)
    if held := [row.id for row in rows if row.held]:
        parameters = {"ids": ids_json(held), "reason": reason, "now": transaction.now}
        transaction.run("mark_cancelling", parameters)
        transaction.cancels = True
        answers.update(dict.fromkeys(held, CancelAnswer.CANCELLING))
    free = [row for row in rows if not row.held]
    conclude(transaction, cancelled(free, reason))
    answers.update({row.id: CancelAnswer.CANCELLED for row in free})
    missing = [id for id, answer in answers.items() if answer is CancelAnswer.UNKNOWN]
    for (id,) in transaction.rows("ended_ids", (ids_json(missing),)):
        answers[id] = CancelAnswer.TOO_LATE
    return answers


def end_cancelling(transaction: Transaction, grace: float, limit: int) -> int:
    """End what no worker answered for. The claim number rises: its late report finds no fence."""
    until = transaction.now - seconds_to_micros(grace)
    found = transaction.rows("cancelling_too_long", {"until": until, "limit": limit})
    rows = [(LiveRow(*row[:-1]), row[-1]) for row in found]
    close_attempts(
        transaction,
        [
            Attempt(
                task=row.id,
                claim_no=row.claim_no,
                run_no=row.run_no,
                number=row.attempt + 1 if row.started_at else None,
                state=AttemptState.CANCELLED.value,
                charged=row.started_at is not None,
                worker=worker,
                executor=None,
                claimed_at=row.claimed_at,
                started_at=row.started_at,
                finished_at=ends_at(transaction.now, row.claimed_at, row.started_at),
                error_class=None,
                error_message=None,
                traceback=None,
                exit_code=None,
                recorded_by="sweeper",
            )
            for row, worker in rows
        ],
    )
    endings = [
        Ending(
            row=row,
            state=TaskState.CANCELLED,
            reason=row.reason or Reason.USER,
            claim_no=row.claim_no + 1,
            attempt=row.attempt + (row.started_at is not None),
        )
        for row, _ in rows
    ]
    conclude(transaction, endings)
    return len(endings)


class Cancelling(Part):
    async def cancel(
        self, ids: Sequence[int], *, reason: str = "user", expected: Expected | None = None
    ) -> dict[int, CancelAnswer]:
        return await self.database.write(lambda transaction: cancel_expected(transaction, ids, reason, expected))

    async def cancelling(self, worker: str) -> list[Ref]:
        rows = await self.database.read(lambda transaction: transaction.rows("cancelling_of_worker", (worker,)))
        return [Ref(*row) for row in rows]

    async def end_cancelling(self, *, grace: float, limit: int = 500) -> int:
        return await self.database.write(lambda transaction: end_cancelling(transaction, grace, limit))
