"""What the ends of tasks come to: for those that wait for them, and for their jobs, whose counters are sums, which end
once, and whose hook runs once.
"""

from collections.abc import Mapping, Sequence

import orjson

from headrace.core.advance import FAILURES, breaks_job
from headrace.core.states import JobState, Reason
from headrace.core.task import EdgeKind
from headrace.store.base import JobEnd
from headrace.store.hooks import hook_task
from headrace.store.sqlite.advancing import OUTCOMES, advance
from headrace.store.sqlite.connection import Transaction
from headrace.store.sqlite.ending import Ending, LiveRow, Tally, cancelled, end, ids_json
from headrace.store.sqlite.enqueueing import enqueue_anyway
from headrace.store.sqlite.subscriptions import publish, publish_failures

KINDS: tuple[EdgeKind, ...] = (
    EdgeKind.ON_SUCCESS,
    EdgeKind.ON_DONE,
    EdgeKind.ON_FAILURE,
)  # by the number that a row has


def conclude(transaction: Transaction, endings: Sequence[Ending]) -> None:
    """End tasks with all that follows. Whatever ends a task comes by here, but for the successes of `completing`."""
    tallies = end(transaction, endings)
    ended: dict[int, list[int]] = {}
    for ending in endings:
        # A task without a job that somebody waits for is `keyed`.
        if ending.row.job is not None or ending.row.keyed:
            ended.setdefault(OUTCOMES[ending.state], []).append(ending.row.id)
    if ended:
        _break_jobs(transaction, endings, tallies)
        # First what waits for them, so that its reason is what really happened and not the end of the job.
        advance(transaction, ended, tallies)
    count(transaction, tallies)
    publish_failures(transaction, endings)


def _break_jobs(transaction: Transaction, endings: Sequence[Ending], tallies: Mapping[int, Tally]) -> None:
    failures = [ending for ending in endings if ending.state in FAILURES and ending.row.critical]
    if not failures:
        return
    kinds: dict[int, list[EdgeKind]] = {}
    number: int
    for upstream, number in transaction.rows("awaited_failures", (ids_json(ending.row.id for ending in failures),)):
        kinds.setdefault(upstream, []).append(KINDS[number])
    for ending in failures:
        if ending.row.job is not None and breaks_job(ending.state, critical=True, kinds=kinds.get(ending.row.id, ())):
            tallies[ending.row.job].broken = True


def count(transaction: Transaction, tallies: Mapping[int, Tally]) -> None:
    """Add to the jobs' counters and end those that are over. Sorted, as every lock order is."""
    for job in sorted(tallies):
        _count_one(transaction, job, tallies[job])


def _count_one(transaction: Transaction, job: int, tally: Tally) -> None:
    counts = {"completed": tally.completed, "failed": tally.failed, "cancelled": tally.cancelled}
    row = transaction.row("count_job", {"job": job, **counts})
    transaction.changed_jobs.add(job)
    state = transaction.row("job_row", (job,))
    if row is None or state is None or JobState(state[0]).terminal:
        return
    if tally.broken:
        end_job(transaction, job, JobState.FAILED, None, Reason.JOB_FAILED)
        return
    total, completed, failed, gone = row
    if completed + failed + gone < total:
        return
    if completed + failed + gone < total + fold_additions(transaction, job):
        return
    end_job(transaction, job, _final_state(transaction, job, completed, failed, gone), None, Reason.JOB_FAILED)


def _final_state(transaction: Transaction, job: int, completed: int, failed: int, gone: int) -> JobState:
    # Somebody waited for the failure; or a retry of some of its tasks opened the job again, and another still stands.
    if failed and transaction.row("critical_failure", (job,)):
        return JobState.FAILED
    if gone and transaction.row("critical_rejection", (job,)):
        return JobState.FAILED
    return JobState.COMPLETED if completed or failed else JobState.CANCELLED


def fold_additions(transaction: Transaction, job: int) -> int:
    """Count what users' transactions added; how many tasks that were."""
    row = transaction.row("additions", (job,))
    n = row[0] if row else 0
    if n:
        transaction.run("fold_additions", {"job": job, "n": n})
        transaction.run("drop_additions", (job,))
        transaction.changed_jobs.add(job)
    return n


def end_job(transaction: Transaction, job: int, state: JobState, reason: str | None, task_reason: str) -> bool:
    """End the job with whatever is left of it, and enqueue its hook; False when it was already over."""
    if not transaction.run("end_job", {"job": job, "state": state.value, "reason": reason, "now": transaction.now}):
        return False
    transaction.changed_jobs.add(job)
    fold_additions(transaction, job)
    cancel_rest(transaction, job, task_reason)
    row = transaction.row("job_row", (job,))
    made = None
    if row is not None and transaction.run("take_hook", (job,)):
        hook = row[2] if state == JobState.COMPLETED else row[3]
        if hook is not None:
            task = hook_task(hook)
            (answer,) = enqueue_anyway(transaction, [task])
            made = task if answer.created else None
    _publish_end(transaction, job, state)
    started_at = None if row is None else row[4]
    took = None if started_at is None else (transaction.now - started_at) / 1e6
    transaction.job_ends.append(JobEnd(job=job, state=state, took=took, hook=made))
    return True


def _publish_end(transaction: Transaction, job: int, state: JobState) -> None:
    event = f"job.{state.value}"
    if transaction.rows("subscriptions_of", (event,)):
        [(name,)] = transaction.rows("name_of_job", (job,))
        payload = orjson.dumps({"job": job, "name": name, "state": state.value}).decode()
        publish(transaction, event, str(job), payload)


def cancel_rest(transaction: Transaction, job: int, reason: str) -> int:
    """Cancel what nobody holds (how many that were) and tell the rest to stop."""
    rows = [LiveRow(*row) for row in transaction.rows("open_tasks_of_job", (job,))]
    if held := [row.id for row in rows if row.held]:
        parameters = {"ids": ids_json(held), "reason": reason, "now": transaction.now}
        transaction.run("mark_cancelling", parameters)
        transaction.cancels = True
    # The job is over by now, so counting these cannot end it again.
    endings = cancelled((row for row in rows if not row.held), reason)
    conclude(transaction, endings)
    return len(endings)
