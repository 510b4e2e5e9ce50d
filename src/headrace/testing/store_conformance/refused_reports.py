"""Late and repeated reports: the fence refuses, the ledger remembers, the row does not change."""

from headrace.core.states import AttemptState, TaskState
from headrace.core.task import ClaimedTask, Ref
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed,
    failed_for_good,
    lost,
    ref,
    released,
    stopped,
    task,
)

cases = Cases("refused_reports")


async def _refused(ledger: Ledger, worker: str, claim: ClaimedTask, result: str = '"late"') -> None:
    before = await ledger.get(claim.id)
    report = await ledger.store.finish(worker, [completed(claim, result)])
    assert report.refused == {ref(claim)}, f"not refused: {report}"
    assert report.accepted == frozenset()
    after = await ledger.get(claim.id)
    assert after == before, "a refused report changed the row"


@cases.add("A69", "R113")
async def a_zombie_cannot_overwrite(ledger: Ledger) -> None:
    """A69: the first worker's report after a rescue is refused, whatever the second does; R113: by the condition of
    the one statement, so the row is untouched."""
    task_id = await ledger.enqueue_one()
    zombie = await ledger.claim_one("a")
    await ledger.finish("a", lost(zombie))  # as the rescuer does, in the dead worker's name
    await _refused(ledger, "a", zombie)
    second = await ledger.claim_due("b")
    await _refused(ledger, "a", zombie)
    await ledger.finish("b", completed(second, '"second"'))
    await _refused(ledger, "a", zombie)
    assert (await ledger.get(task_id)).result == '"second"'


@cases.add()
async def a_refusal_is_recorded_as_a_late_report(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    zombie = await ledger.claim_one("a")
    await ledger.finish("a", lost(zombie))
    await ledger.store.finish("a", [completed(zombie)])
    (attempt,) = await ledger.attempts(task_id)
    assert (attempt.state, attempt.charged) == (AttemptState.LOST, True)
    assert attempt.late_state == "succeeded"
    assert attempt.late_at is not None


@cases.add()
async def a_late_report_of_a_claim_without_an_attempt_gets_a_row_of_its_own(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    zombie = await ledger.claim_one("a")
    await ledger.finish("a", released(zombie))
    await ledger.store.finish("a", [completed(zombie)])
    (attempt,) = await ledger.attempts(task_id)
    assert (attempt.state, attempt.charged, attempt.attempt) == (AttemptState.REFUSED, False, None)
    assert attempt.claim_no == zombie.claim_no
    assert attempt.late_state == "succeeded"
    assert (await ledger.get(task_id)).attempt == 0


@cases.add()
async def the_same_report_twice_is_a_success(ledger: Ledger) -> None:
    """The answer was lost with the connection; the worker repeats."""
    await ledger.enqueue(*[task(max_attempts=9) for _ in range(4)])
    c = await ledger.claim()
    reports = [completed(c[0], "1"), failed(c[1], delay=60), failed_for_good(c[2]), stopped(c[3])]
    await ledger.finish("a", *reports)
    records = await ledger.store.get([claim.id for claim in c])
    again = await ledger.store.finish("a", reports)
    assert again.refused == frozenset()
    assert again.accepted | again.repeated == {ref(claim) for claim in c}
    assert await ledger.store.get([claim.id for claim in c]) == records
    for claim in c:
        (attempt,) = await ledger.attempts(claim.id)
        assert attempt.late_state is None


@cases.add()
async def the_same_fence_twice_in_one_call_counts_once(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    report = await ledger.store.finish("a", [completed(claim, "1"), completed(claim, "1")])
    assert ref(claim) in report.accepted | report.repeated
    assert (await ledger.get(task_id)).attempt == 1
    assert len(await ledger.attempts(task_id)) == 1


@cases.add()
async def strangers_are_refused(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one("a")
    before = await ledger.get(task_id)
    unknown = completed(claim)._replace(task=987_654_321)
    ahead = completed(claim)._replace(claim_no=claim.claim_no + 1)
    assert (await ledger.store.finish("b", [completed(claim)])).refused == {ref(claim)}
    assert (await ledger.store.finish("a", [unknown])).refused == {Ref(987_654_321, claim.claim_no)}
    assert (await ledger.store.finish("a", [ahead])).refused == {Ref(claim.id, claim.claim_no + 1)}
    assert await ledger.get(task_id) == before
    await ledger.finish("a", completed(claim))


@cases.add()
async def a_refusal_does_not_take_others_down(ledger: Ledger) -> None:
    await ledger.enqueue(task(), task())
    one, two = await ledger.claim("a")
    await ledger.finish("a", released(one))
    report = await ledger.store.finish("a", [completed(one), completed(two)])
    assert report.refused == {ref(one)}
    assert report.accepted == {ref(two)}
    assert await ledger.state(two.id) == "completed"


@cases.add()
async def a_report_for_a_task_that_was_run_again_by_hand(ledger: Ledger) -> None:
    """The old run's report must not end the new run."""
    task_id = await ledger.enqueue_one(max_attempts=1)
    first = await ledger.claim_one("a")
    await ledger.finish("a", failed(first))
    await ledger.store.retry([task_id])
    second = await ledger.claim_due("b")
    report = await ledger.store.finish("a", [completed(first, '"old"')])
    assert ref(first) not in report.accepted
    assert (await ledger.get(task_id)).state is TaskState.CLAIMED
    await ledger.finish("b", completed(second, '"new"'))
    assert (await ledger.get(task_id)).result == '"new"'


@cases.add()
async def another_outcome_for_a_claim_that_ended_is_refused(ledger: Ledger) -> None:
    """Completed once; the contradiction that comes later is not a repeat of it."""
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.finish("a", completed(claim, "1"))
    report = await ledger.store.finish("a", [failed_for_good(claim)])
    assert ref(claim) not in report.accepted
    done = await ledger.get(task_id)
    assert (done.state, done.result) == (TaskState.COMPLETED, "1")


@cases.add()
async def the_report_of_a_stranger_does_not_put_its_name_on_the_attempt(ledger: Ledger) -> None:
    """Its refusal made the row; the holder's own report says whose attempt it was."""
    ended, given_back, swept = await ledger.enqueue(*[task(max_attempts=9) for _ in range(3)])
    claims = {claim.id: claim for claim in await ledger.claim("a")}
    await ledger.store.finish("b", [completed(claim) for claim in claims.values()])
    await ledger.finish("a", completed(claims[ended]), failed(claims[given_back], delay=60))
    await ledger.store.cancel([swept])
    await ledger.let_pass(0.05)
    await ledger.store.end_cancelling(grace=0.01)
    for task_id in (ended, given_back, swept):
        (attempt,) = await ledger.attempts(task_id)
        assert (attempt.worker, attempt.late_state) == ("a", "succeeded")
        assert attempt.claimed_at is not None


@cases.add()
async def the_same_words_from_another_mouth_are_no_repeat(ledger: Ledger) -> None:
    """Who reports, and for whom, is a part of the report."""
    claim = (await ledger.enqueue_one(), await ledger.claim_one("a"))[1]
    await ledger.finish("a", completed(claim))
    report = await ledger.store.finish("b", [completed(claim)])
    assert (report.refused, report.repeated) == ({ref(claim)}, frozenset())
    (attempt,) = await ledger.attempts(claim.id)
    assert attempt.late_state == "succeeded"


@cases.add()
async def an_answer_after_the_sweeper_is_late(ledger: Ledger) -> None:
    """It ended as cancelled without its worker; what was entered is charged, as the worker's own answer would be."""
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one("a")
    await ledger.store.start("a", [ref(claim)])
    await ledger.store.cancel([task_id])
    await ledger.let_pass(0.05)
    assert await ledger.store.end_cancelling(grace=0.01) == 1
    report = await ledger.store.finish("a", [stopped(claim)])
    assert (report.refused, report.repeated) == ({ref(claim)}, frozenset())
    (attempt,) = await ledger.attempts(task_id)
    assert (attempt.state, attempt.charged, attempt.attempt) == (AttemptState.CANCELLED, True, 1)
    assert (attempt.recorded_by, attempt.late_state) == ("sweeper", "cancelled")
    assert (await ledger.get(task_id)).attempt == 1


@cases.add()
async def two_outcomes_of_one_claim_in_one_call_are_one_accepted(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    report = await ledger.store.finish("a", [completed(claim, "1"), failed_for_good(claim)])
    assert (report.accepted, report.refused) == ({ref(claim)}, frozenset())
    assert await ledger.state(task_id) == "completed"


@cases.add("A69")
async def a_worker_cannot_overwrite_its_own_second_claim(ledger: Ledger) -> None:
    """A69: the fence is the claim, not only the worker."""
    task_id = await ledger.enqueue_one()
    first = await ledger.claim_one("a")
    await ledger.finish("a", lost(first))
    second = await ledger.claim_due("a")
    report = await ledger.store.finish("a", [completed(first, '"first"')])
    assert report.refused == {ref(first)}
    await ledger.finish("a", completed(second, '"second"'))
    assert (await ledger.get(task_id)).result == '"second"'
