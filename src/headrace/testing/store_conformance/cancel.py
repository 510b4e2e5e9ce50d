"""Cancel: at once where nobody holds the task, by asking where somebody does; success may still win."""

from collections.abc import Callable

from headrace.core.outcome import Released
from headrace.core.settlement import Execution, Settlement
from headrace.core.states import AttemptState, Reason, TaskState
from headrace.core.task import ClaimedTask, Key
from headrace.store.base import CancelAnswer
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed,
    failed_for_good,
    lost,
    ref,
    released,
    settled,
    snoozed,
    stopped,
    task,
)

cases = Cases("cancel")


@cases.add("A19")
async def a_waiting_task_is_cancelled_at_once(ledger: Ledger) -> None:
    """A19: pending → cancelled, now or due later, and it is never claimed."""
    now = await ledger.enqueue_one()
    later = await ledger.enqueue_one(delay=0.05)
    assert await ledger.store.cancel([now, later]) == {now: CancelAnswer.CANCELLED, later: CancelAnswer.CANCELLED}
    for task_id in (now, later):
        record = await ledger.get(task_id)
        assert (record.state, record.reason, record.attempt) == (TaskState.CANCELLED, Reason.USER, 0)
        assert record.finished_at is not None
    await ledger.let_pass(0.1)
    assert await ledger.claim() == []


@cases.add("A19")
async def a_held_task_is_told_to_stop(ledger: Ledger) -> None:
    """A19: claimed and running → cancelling → cancelled, each told to its own worker."""
    first, second = await ledger.enqueue(task(), task())
    one = await ledger.claim_one("a")
    two = await ledger.claim_one("b")
    await ledger.store.start("b", [ref(two)])
    assert await ledger.store.cancel([first, second]) == {
        first: CancelAnswer.CANCELLING,
        second: CancelAnswer.CANCELLING,
    }
    assert await ledger.store.cancelling("a") == [ref(one)]
    assert await ledger.store.cancelling("b") == [ref(two)]
    assert await ledger.store.cancelling("c") == []
    assert (await ledger.get(first)).cancelling_at is not None
    await ledger.finish("a", settled(one, Released(), execution=Execution(cancelling=True)))
    await ledger.finish("b", stopped(two))
    assert await ledger.state(first) == "cancelled"
    ended = await ledger.get(second)
    assert (ended.state, ended.attempt) == (TaskState.CANCELLED, 1)
    assert [a.state for a in await ledger.attempts(first)] == []
    assert [a.state for a in await ledger.attempts(second)] == [AttemptState.CANCELLED]
    assert await ledger.store.cancelling("a") == []


@cases.add()
async def success_while_cancelling_is_completed(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.cancel([task_id])
    await ledger.finish("a", completed(claim, "1"))
    done = await ledger.get(task_id)
    assert (done.state, done.result) == (TaskState.COMPLETED, "1")


@cases.add()
async def a_requeue_while_cancelling_is_cancelled(ledger: Ledger) -> None:
    """The worker had not heard of it: whatever would bring the task back ends it instead."""
    ends: list[Callable[[ClaimedTask], Settlement]] = [failed, released, lost, lambda claim: snoozed(claim, 1.0)]
    await ledger.enqueue(*[task() for _ in ends])
    for end, claim in zip(ends, await ledger.claim(), strict=True):
        await ledger.store.cancel([claim.id])
        await ledger.finish("a", end(claim))
        record = await ledger.get(claim.id)
        assert (record.state, record.reason) == (TaskState.CANCELLED, Reason.USER)
    assert await ledger.claim() == []


@cases.add()
async def a_final_failure_while_cancelling_stays_a_failure(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.cancel([task_id])
    await ledger.finish("a", failed_for_good(claim))
    assert await ledger.state(task_id) == "failed"


@cases.add()
async def after_the_end_it_is_too_late(ledger: Ledger) -> None:
    await ledger.enqueue(task(), task(), task())
    one, two, three = await ledger.claim()
    await ledger.finish("a", completed(one), failed_for_good(two), stopped(three))
    before = await ledger.store.get([one.id, two.id, three.id])
    assert await ledger.store.cancel([one.id, two.id, three.id]) == dict.fromkeys(
        [one.id, two.id, three.id], CancelAnswer.TOO_LATE
    )
    assert await ledger.store.get([one.id, two.id, three.id]) == before


@cases.add()
async def unknown_and_repeated_ids(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    answer = await ledger.store.cancel([task_id, 987_654_321, task_id])
    assert answer == {task_id: CancelAnswer.CANCELLED, 987_654_321: CancelAnswer.UNKNOWN}
    assert await ledger.store.cancel([]) == {}
    assert await ledger.store.cancel([task_id]) == {task_id: CancelAnswer.TOO_LATE}


@cases.add()
async def cancelling_twice_asks_once(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.cancel([task_id])
    since = (await ledger.get(task_id)).cancelling_at
    await ledger.let_pass(0.02)
    assert await ledger.store.cancel([task_id]) == {task_id: CancelAnswer.CANCELLING}
    assert (await ledger.get(task_id)).cancelling_at == since
    assert await ledger.store.cancelling("a") == [ref(claim)]


@cases.add()
async def the_reason_is_kept(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    await ledger.store.cancel([task_id], reason="stopped")
    assert (await ledger.get(task_id)).reason == "stopped"


@cases.add()
async def tasks_that_wait_for_approval_or_an_event_can_be_cancelled(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one(approval=True)
    assert await ledger.store.cancel([task_id]) == {task_id: CancelAnswer.CANCELLED}
    assert await ledger.state(task_id) == "cancelled"


@cases.add()
async def cancel_frees_the_key(ledger: Ledger) -> None:
    keyed = task(keys=(Key(scope="unique", key="k"),))
    (first,) = await ledger.store.enqueue([keyed])
    await ledger.store.cancel([first.id])
    (second,) = await ledger.store.enqueue([keyed])
    assert second.created


@cases.add()
async def one_without_an_answer_is_ended_and_its_late_report_refused(ledger: Ledger) -> None:
    """The sweeper raises the claim number, so that success after the grace is refused."""
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.start("a", [ref(claim)])
    await ledger.store.cancel([task_id])
    assert await ledger.store.end_cancelling(grace=60.0) == 0
    await ledger.let_pass(0.1)
    assert await ledger.store.end_cancelling(grace=0.05) == 1
    assert await ledger.store.end_cancelling(grace=0.05) == 0
    ended = await ledger.get(task_id)
    assert ended.state is TaskState.CANCELLED
    assert ended.claim_no > claim.claim_no
    report = await ledger.store.finish("a", [completed(claim)])
    assert report.refused == {ref(claim)}
    assert await ledger.get(task_id) == ended
    assert AttemptState.RUNNING not in [attempt.state for attempt in await ledger.attempts(task_id)]
