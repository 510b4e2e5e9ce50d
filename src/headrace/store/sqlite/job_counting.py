"""The fate of a job: counters by sums, its end, and the hook that runs once."""

from collections.abc import Mapping
from dataclasses import replace

from headrace.core.errors import MovedAway
from headrace.core.states import JobState, Reason
from headrace.core.task import Enqueued, NewTask
from headrace.store.base import JobEnd
from headrace.store.hooks import hook_task
from headrace.store.sqlite.connection import Transaction
from headrace.store.sqlite.ending import LiveRow, Tally, cancelled, end, ids_json
from headrace.store.sqlite.enqueueing import enqueue


def count(transaction: Transaction, tallies: Mapping[int, Tally]) -> None:
    """Add to the jobs' counters and end those that are over. Sorted, as every lock order is."""
    for job in sorted(tallies):
        _count_one(transaction, job, tallies[job])


def _count_one(transaction: Transaction, job: int, tally: Tally) -> None:
    counts = {"completed": tally.completed, "failed": tally.failed, "cancelled": tally.cancelled}
    row = transaction.row("count_job", {"job": job, **counts})
    state = transaction.row("job_row", (job,))
    if row is None or state is None or JobState(state[0]).terminal:
        return
    if tally.critical_failed:
        end_job(transaction, job, JobState.FAILED, None, Reason.JOB_FAILED)
        return
    total, completed, failed, gone = row
    if completed + failed + gone < total:
        return
    if completed + failed + gone < total + fold_additions(transaction, job):
        return
    end_job(transaction, job, _final_state(transaction, job, completed, failed), None, Reason.JOB_FAILED)


def _final_state(transaction: Transaction, job: int, completed: int, failed: int) -> JobState:
    # A retry of some of its tasks opened the job again: another failure may still stand.
    if failed and transaction.row("critical_failure", (job,)):
        return JobState.FAILED
    return JobState.COMPLETED if completed or failed else JobState.CANCELLED


def fold_additions(transaction: Transaction, job: int) -> int:
    """Count what users' transactions added; how many tasks that were."""
    row = transaction.row("additions", (job,))
    n = row[0] if row else 0
    if n:
        transaction.run("fold_additions", {"job": job, "n": n})
        transaction.run("drop_additions", (job,))
    return n


def end_job(transaction: Transaction, job: int, state: JobState, reason: str | None, task_reason: str) -> bool:
    """End the job with whatever is left of it, and enqueue its hook; False when it was already over."""
    if not transaction.run("end_job", {"job": job, "state": state.value, "reason": reason, "now": transaction.now}):
        return False
    fold_additions(transaction, job)
    cancel_rest(transaction, job, task_reason)
    row = transaction.row("job_row", (job,))
    made = None
    if row is not None and transaction.run("take_hook", (job,)):
        hook = row[2] if state == JobState.COMPLETED else row[3]
        if hook is not None:
            task = hook_task(hook)
            (answer,) = _enqueue_hook(transaction, task)
            made = task if answer.created else None
    started_at = None if row is None else row[4]
    took = None if started_at is None else (transaction.now - started_at) / 1e6
    transaction.job_ends.append(JobEnd(job=job, state=state, took=took, hook=made))
    return True


def _enqueue_hook(transaction: Transaction, task: NewTask) -> list[Enqueued]:
    try:
        return enqueue(transaction, [task])
    except MovedAway:
        # Nobody can ask the other database from in here. A hook may run twice beside another; it must not be lost.
        return enqueue(transaction, [replace(task, keys=())])


def cancel_rest(transaction: Transaction, job: int, reason: str) -> int:
    """Cancel what nobody holds (how many that were) and tell the rest to stop."""
    rows = [LiveRow(*row) for row in transaction.rows("open_tasks_of_job", (job,))]
    if held := [row.id for row in rows if row.held]:
        parameters = {"ids": ids_json(held), "reason": reason, "now": transaction.now}
        transaction.run("mark_cancelling", parameters)
        transaction.cancels = True
    # The job is over by now, so counting these cannot end it again.
    endings = cancelled((row for row in rows if not row.held), reason)
    count(transaction, end(transaction, endings))
    return len(endings)
