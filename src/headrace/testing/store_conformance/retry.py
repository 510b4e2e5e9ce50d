"""Retry by hand: a new run with a fresh budget."""

from headrace.core.lanes import Lane
from headrace.core.states import TaskState
from headrace.core.task import TaskFilter
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    expired,
    failed,
    failed_for_good,
    ref,
    stopped,
    task,
)

cases = Cases("retry")


@cases.add("F49")
async def a_failed_task_gets_a_new_run(ledger: Ledger) -> None:
    """Pending again, with a fresh budget, in the retry lane; F49: and no dead letter any more."""
    task_id = await ledger.enqueue_one(max_attempts=2)
    for _ in range(2):
        await ledger.finish("a", failed(await ledger.claim_due(), dead_letter=True))
    assert [r.id for r in await ledger.store.list(TaskFilter(dead_letter=True))] == [task_id]
    assert await ledger.store.retry([task_id]) == [task_id]
    assert await ledger.store.list(TaskFilter(dead_letter=True)) == []
    again = await ledger.get(task_id)
    assert (again.state, again.run_no, again.attempt) == (TaskState.PENDING, 2, 0)
    assert (again.lane, again.reason, again.result, again.finished_at) == (Lane.RETRY, None, None, None)
    assert again.claim_no == 2
    claim = await ledger.claim_due(lanes=(Lane.RETRY,))
    assert (claim.claim_no, claim.run_no, claim.attempt) == (3, 2, 0)
    await ledger.finish("a", failed(claim))
    assert await ledger.state(task_id) == "pending"
    await ledger.finish("a", completed(await ledger.claim_due(), "1"))
    done = await ledger.get(task_id)
    assert (done.state, done.attempt, done.run_no, done.result) == (TaskState.COMPLETED, 2, 2, "1")
    assert [(a.run_no, a.attempt) for a in await ledger.attempts(task_id)] == [(1, 1), (1, 2), (2, 1), (2, 2)]


@cases.add()
async def completed_and_cancelled_tasks_too(ledger: Ledger) -> None:
    await ledger.enqueue(task(), task())
    one, two = await ledger.claim()
    await ledger.finish("a", completed(one, "1"), stopped(two))
    assert sorted(await ledger.store.retry([one.id, two.id])) == sorted([one.id, two.id])
    assert (await ledger.get(one.id)).result is None
    await ledger.let_pass(0.01)
    assert {claim.id for claim in await ledger.claim()} == {one.id, two.id}


@cases.add()
async def what_has_not_ended_is_not_run_again(ledger: Ledger) -> None:
    pending, claimed = await ledger.enqueue(task(priority=-1), task())
    claim = await ledger.claim_one()
    assert claim.id == claimed
    before = await ledger.store.get([pending, claimed])
    assert await ledger.store.retry([pending, claimed, 987_654_321]) == []
    assert await ledger.store.get([pending, claimed]) == before


@cases.add()
async def retrying_twice_is_one_run(ledger: Ledger) -> None:
    """The second call finds nothing to change."""
    task_id = await ledger.enqueue_one()
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    assert await ledger.store.retry([task_id, task_id]) == [task_id]
    assert await ledger.store.retry([task_id]) == []
    await ledger.let_pass(0.01)
    assert len(await ledger.claim()) == 1
    assert (await ledger.get(task_id)).run_no == 2


@cases.add("F50")
async def the_age_counts_from_the_retry(ledger: Ledger) -> None:
    """F50: a task that expired is not sent back at once when it is retried."""
    task_id = await ledger.enqueue_one(max_age=0.5)
    first = await ledger.get(task_id)
    await ledger.let_pass(0.6)
    await ledger.finish("a", expired(await ledger.claim_one()))
    assert await ledger.store.retry([task_id]) == [task_id]
    again = await ledger.get(task_id)
    assert again.created_at == first.created_at
    assert again.enqueued_at > first.enqueued_at
    assert again.expires_at is not None
    assert first.expires_at is not None
    assert again.expires_at > first.expires_at
    assert not (await ledger.claim_due()).expired


@cases.add()
async def retry_of_a_retried_task(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one(max_attempts=1)
    for run in range(1, 5):
        claim = await ledger.claim_due()
        assert claim.run_no == run
        await ledger.finish("a", failed(claim))
        assert await ledger.store.retry([task_id]) == [task_id]
    attempts = await ledger.attempts(task_id)
    assert [(a.run_no, a.attempt, a.claim_no) for a in attempts] == [(n, 1, n) for n in range(1, 5)]


@cases.add()
async def a_retry_forgets_what_the_last_run_left(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.start("a", [ref(claim)])
    await ledger.store.progress("a", [(ref(claim), "0.5")])
    await ledger.finish("a", failed_for_good(claim))
    await ledger.store.retry([task_id])
    again = await ledger.get(task_id)
    assert (again.worker, again.claimed_at, again.started_at, again.error_class) == (None, None, None, None)
