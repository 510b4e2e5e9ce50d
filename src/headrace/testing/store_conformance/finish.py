"""Finish: one transaction from the live row to history or back to pending."""

from datetime import timedelta

from headrace.core.outcome import Released, Suspended
from headrace.core.states import AttemptState, Reason, TaskState
from headrace.core.task import ErrorInfo
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import (
    RAN,
    Ledger,
    completed,
    expired,
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

cases = Cases("finish")


@cases.add("F20", "A16")
async def a_completed_task_keeps_its_result(ledger: Ledger) -> None:
    """F20, A16: claimed → completed without a written start is legal, and the result is there."""
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.let_pass(0.02)
    await ledger.finish("a", completed(claim, '{"answer":42}')._replace(ran_for=0.01))
    done = await ledger.get(task_id)
    assert (done.state, done.reason, done.result) == (TaskState.COMPLETED, None, '{"answer":42}')
    assert (done.attempt, done.claim_no, done.worker) == (1, 1, done.worker)
    assert done.finished_at is not None
    (attempt,) = await ledger.attempts(task_id)
    assert (attempt.state, attempt.attempt, attempt.charged) == (AttemptState.SUCCEEDED, 1, True)
    assert attempt.started_at is not None
    assert attempt.finished_at is not None
    # The worker sent a duration; the store made instants of it.
    assert abs((attempt.finished_at - attempt.started_at) - timedelta(seconds=0.01)) < timedelta(seconds=0.005)
    assert await ledger.claim() == []


@cases.add("A17", "A18", "F21", "F22", "F32")
async def failures_count_until_none_is_left(ledger: Ledger) -> None:
    """A17, F21, F22: each failure goes back to pending with attempt + 1; A18, F32: the fourth of four is final."""
    task_id = await ledger.enqueue_one(max_attempts=4)
    for number in (1, 2, 3):
        await ledger.finish("a", failed(await ledger.claim_due()))
        waiting = await ledger.get(task_id)
        assert (waiting.state, waiting.attempt) == (TaskState.PENDING, number)
        assert waiting.worker is None
    await ledger.finish("a", failed(await ledger.claim_due(), dead_letter=True))
    ended = await ledger.get(task_id)
    assert (ended.state, ended.reason, ended.attempt) == (TaskState.FAILED, Reason.ERROR, 4)
    assert ended.dead_letter
    assert (ended.error_class, ended.error_message) == ("builtins.ValueError", "no")
    attempts = await ledger.attempts(task_id)
    assert [attempt.attempt for attempt in attempts] == [1, 2, 3, 4]
    assert {attempt.error_class for attempt in attempts} == {"builtins.ValueError"}
    assert attempts[0].traceback == "Traceback: no"
    assert await ledger.claim() == []


@cases.add("F23")
async def a_permanent_error_is_final_at_once(ledger: Ledger) -> None:
    """F23: failed for good after one attempt of four, and kept as a dead letter."""
    task_id = await ledger.enqueue_one(max_attempts=4)
    await ledger.finish("a", failed_for_good(await ledger.claim_one(), dead_letter=True))
    ended = await ledger.get(task_id)
    assert (ended.state, ended.attempt, ended.dead_letter) == (TaskState.FAILED, 1, True)


@cases.add("F24")
async def what_is_given_back_is_not_charged(ledger: Ledger) -> None:
    """F24: released and snoozed tasks are pending again with the attempts they had."""
    task_id = await ledger.enqueue_one(max_attempts=1)
    await ledger.finish("a", released(await ledger.claim_one()))
    await ledger.finish("a", snoozed(await ledger.claim_due(), 0.0))
    await ledger.finish("a", released(await ledger.claim_due(), suspect=True))
    back = await ledger.get(task_id)
    assert (back.state, back.attempt, back.losses) == (TaskState.PENDING, 0, 1)
    claim = await ledger.claim_due()
    assert (claim.attempt, claim.losses, claim.claim_no) == (0, 1, 4)
    # Only the snooze ran: a task that was given back unstarted left no attempt.
    assert [a.state for a in await ledger.attempts(task_id)] == [AttemptState.SNOOZED]


@cases.add()
async def a_release_of_something_that_ran_is_recorded_uncharged(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.start("a", [ref(claim)])
    await ledger.finish("a", settled(claim, Released(attempt=AttemptState.RELEASED)))
    (attempt,) = await ledger.attempts(task_id)
    assert (attempt.state, attempt.charged, attempt.attempt) == (AttemptState.RELEASED, False, None)
    await ledger.finish("a", completed(await ledger.claim_due()))
    assert (await ledger.get(task_id)).attempt == 1


@cases.add()
async def a_release_of_a_started_task_leaves_no_running_attempt(ledger: Ledger) -> None:
    """Whoever gives it back may not know that the start was written."""
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.start("a", [ref(claim)])
    await ledger.finish("a", released(claim))
    assert AttemptState.RUNNING not in [attempt.state for attempt in await ledger.attempts(task_id)]


@cases.add()
async def a_requeue_waits_for_its_delay(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    await ledger.finish("a", snoozed(await ledger.claim_one(), 300.0))
    waiting = await ledger.get(task_id)
    assert waiting.eligible_at - await ledger.store.now() > timedelta(seconds=250)
    assert await ledger.claim() == []
    assert waiting.claimed_at is None or waiting.worker is None


@cases.add("A70")
async def a_loss_is_charged_until_none_is_left(ledger: Ledger) -> None:
    """A70: a task that kills its process three times of three allowed has failed as lost."""
    task_id = await ledger.enqueue_one(max_attempts=3)
    for _ in range(3):
        await ledger.finish("a", lost(await ledger.claim_due()))
    ended = await ledger.get(task_id)
    assert (ended.state, ended.reason, ended.attempt) == (TaskState.FAILED, Reason.LOST, 3)
    assert [a.state for a in await ledger.attempts(task_id)] == [AttemptState.LOST] * 3
    assert {a.recorded_by for a in await ledger.attempts(task_id)} == {"rescuer"}


@cases.add("F19", "F23")
async def a_retry_beyond_the_age_ends_the_task(ledger: Ledger) -> None:
    """F23: the retry would come after the task's age, so there is none; F19: the reason is the age."""
    task_id = await ledger.enqueue_one(max_age=60.0)
    await ledger.finish("a", failed(await ledger.claim_one(), delay=61.0))
    ended = await ledger.get(task_id)
    assert (ended.state, ended.reason) == (TaskState.FAILED, Reason.EXPIRED)
    assert ended.attempt == 1
    within = await ledger.enqueue_one(max_age=60.0)
    await ledger.finish("a", failed(await ledger.claim_one(), delay=30.0))
    assert await ledger.state(within) == "pending"


@cases.add("F19")
async def a_task_that_expired_before_it_started(ledger: Ledger) -> None:
    """F19: found too old when picked, it is failed as expired and was never charged."""
    task_id = await ledger.enqueue_one(max_age=0.05)
    await ledger.let_pass(0.1)
    claim = await ledger.claim_one()
    assert claim.expired
    await ledger.finish("a", expired(claim))
    ended = await ledger.get(task_id)
    assert (ended.state, ended.reason, ended.attempt) == (TaskState.FAILED, Reason.EXPIRED, 0)


@cases.add()
async def a_task_that_suspends_for_an_event_is_blocked(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    assert await ledger.store.receive("a", ref(claim), "paid", event="payment", key="7", timeout=None) is None
    await ledger.finish("a", settled(claim, Suspended(step="paid")))
    assert await ledger.state(task_id) == "blocked"
    assert await ledger.claim() == []
    await ledger.store.cancel([task_id])
    assert await ledger.state(task_id) == "cancelled"


@cases.add("A24")
async def outcomes_are_counted_for_the_worker(ledger: Ledger) -> None:
    """A24: three completed, one failed for good; a report that is repeated or refused counts nothing."""
    await ledger.register("a", "b")
    await ledger.enqueue(*[task() for _ in range(5)])
    claims = await ledger.claim("a")
    settlements = [completed(c) for c in claims[:3]] + [failed_for_good(claims[3])]
    await ledger.finish("a", *settlements)
    await ledger.store.finish("a", settlements)
    await ledger.store.finish("b", [completed(claims[4])])
    (a,) = [w for w in await ledger.store.workers() if w.id == "a"]
    (b,) = [w for w in await ledger.store.workers() if w.id == "b"]
    assert (a.tasks_completed, a.tasks_failed) == (3, 1)
    assert (b.tasks_completed, b.tasks_failed) == (0, 0)


@cases.add()
async def a_result_lives_for_its_time(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.finish("a", completed(claim, "1")._replace(result_ttl=60.0))
    done = await ledger.get(task_id)
    assert done.finished_at is not None
    assert done.result_expires_at == done.finished_at + timedelta(seconds=60)


@cases.add()
async def a_reference_instead_of_a_result(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.finish("a", completed(claim, None)._replace(result_ref="results/1/1"))
    done = await ledger.get(task_id)
    assert (done.result, done.result_ref) == (None, "results/1/1")


@cases.add()
async def data_the_database_refuses_fails_only_its_own_task(ledger: Ledger) -> None:
    """NUL and lone surrogates in results and errors; the good ones beside them are accepted as they are."""
    await ledger.enqueue(*[task(max_attempts=1) for _ in range(6)])
    c = await ledger.claim()

    def error(message: str) -> ErrorInfo:
        return ErrorInfo(error_class="builtins.ValueError", message=message, traceback=message)

    report = await ledger.store.finish(
        "a",
        [
            completed(c[0], '"good"'),
            completed(c[1], '"nul \0"'),
            failed(c[2], error("nul \0 in the message")),
            failed(c[3], error("half a pair \ud800 in the message")),
            completed(c[4], '"half a pair \udfff"'),
            completed(c[5], '"good too"'),
        ],
    )
    assert report.accepted == {ref(claim) for claim in c}
    records = [await ledger.get(claim.id) for claim in c]
    assert [r.result for r in (records[0], records[5])] == ['"good"', '"good too"']
    assert [r.state for r in (records[0], records[5])] == [TaskState.COMPLETED] * 2
    assert [r.state for r in (records[2], records[3])] == [TaskState.FAILED] * 2
    assert "in the message" in (records[2].error_message or "")
    for record in (records[1], records[4]):
        # Either the text is kept in a form the database takes, or the task is failed and says why.
        assert record.state in (TaskState.COMPLETED, TaskState.FAILED)
        assert record.result is not None or record.error_message
        for text in (record.result or "", record.error_message or ""):
            text.encode()  # a lone surrogate would raise here


@cases.add()
async def a_megabyte_of_error_and_result(ledger: Ledger) -> None:
    await ledger.enqueue(task(), task(max_attempts=1))
    one, two = await ledger.claim()
    big = "é" * 1_000_000
    error = ErrorInfo(error_class="builtins.ValueError", message=big, traceback=big)
    await ledger.finish("a", completed(one, f'"{big}"'), failed(two, error))
    assert (await ledger.get(one.id)).result == f'"{big}"'
    (attempt,) = await ledger.attempts(two.id)
    assert (attempt.traceback or "").startswith("ééé")
    assert len(attempt.traceback or "") > 1000


@cases.add()
async def a_batch_of_every_outcome(ledger: Ledger) -> None:
    await ledger.enqueue(*[task(max_attempts=2) for _ in range(7)])
    c = await ledger.claim()
    await ledger.finish(
        "a", completed(c[0]), failed(c[1]), failed_for_good(c[2]), stopped(c[3], "user"), snoozed(c[4], 60),
        released(c[5]), lost(c[6]),
    )  # fmt: skip
    states = [await ledger.state(claim.id) for claim in c]
    assert states == ["completed", "pending", "failed", "cancelled", "pending", "pending", "pending"]
    assert (await ledger.get(c[3].id)).reason == "user"


@cases.add()
async def five_hundred_in_one_finish(ledger: Ledger) -> None:
    await ledger.enqueue(*[task() for _ in range(500)])
    claims = await ledger.claim(n=500)
    report = await ledger.finish("a", *[completed(claim, str(claim.id)) for claim in claims])
    assert len(report.accepted) == 500
    records = await ledger.store.get([claim.id for claim in claims])
    assert all(record.result == str(task_id) for task_id, record in records.items())


@cases.add()
async def nothing_is_an_empty_report(ledger: Ledger) -> None:
    report = await ledger.store.finish("a", [])
    assert report.accepted == report.refused == report.repeated == frozenset()


@cases.add()
async def a_duration_that_is_too_long_does_not_start_before_the_claim(ledger: Ledger) -> None:
    """The worker's clock and the store's are not the same, and either may be stepped."""
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.finish("a", completed(claim)._replace(ran_for=3600.0))
    record = await ledger.get(task_id)
    (attempt,) = await ledger.attempts(task_id)
    for started, claimed in ((record.started_at, record.claimed_at), (attempt.started_at, attempt.claimed_at)):
        assert started is not None
        assert claimed is not None
        assert started >= claimed


@cases.add()
async def a_start_that_was_not_written_is_known_by_its_duration(ledger: Ledger) -> None:
    """An attempt that never ran has no start."""
    task_id = await ledger.enqueue_one(max_age=0.01)
    await ledger.let_pass(0.05)
    await ledger.finish("a", expired(await ledger.claim_one()))
    assert all(attempt.started_at is None for attempt in await ledger.attempts(task_id))
    ran = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.finish("a", completed(claim)._replace(ran_for=RAN.ran_for))
    assert (await ledger.get(ran)).started_at is not None


@cases.add()
async def what_is_given_back_too_old_says_why_it_ended(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one(max_age=0.1)
    claim = await ledger.claim_one()
    await ledger.let_pass(0.2)
    await ledger.finish("a", released(claim))
    record = await ledger.get(task_id)
    assert (record.state, record.reason, record.error_class) == ("failed", "expired", "headrace.Expired")
    assert record.error_message


@cases.add()
async def a_task_that_waits_again_has_made_no_progress(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.progress("a", [(ref(claim), "0.9")])
    await ledger.finish("a", failed(claim))
    assert (await ledger.get(task_id)).progress is None
