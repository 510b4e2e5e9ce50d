"""One pure decision for workers, supervisors and rescuers: what becomes of a claimed task."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.lanes import Lane
from headrace.core.outcome import (
    Cancelled,
    Completed,
    Expired,
    Failed,
    Lost,
    Outcome,
    Released,
    Retried,
    Snoozed,
    Suspended,
)
from headrace.core.retry import ErrorSignature, Retry
from headrace.core.settlement import Execution, Settlement, settle
from headrace.core.states import AttemptState, TaskState, allowed
from headrace.core.task import ClaimedTask, ErrorInfo

POLICY = Retry(max_attempts=3, backoff="fixed", base=5, jitter=0)
ERROR = ErrorInfo(error_class="builtins.ValueError", message="no")


def claim(**changes: object) -> ClaimedTask:
    plain = ClaimedTask(
        id=7, claim_no=4, name="t", kind="function", queue="q", pool="coroutine", lane=0, priority=0, arguments="{}",
        codec="json/1", version=1, options="{}", attempt=0, losses=0, max_attempts=3, run_no=1, job=None, gated=False,
        expired=False, state="claimed", order_at=0, waited=0.0,
    )  # fmt: skip
    return plain._replace(**changes)


def decided(
    outcome: Outcome, *, policy: Retry = POLICY, execution: Execution | None = None, **changes: object
) -> Settlement:
    return settle(
        claim(**changes), outcome, policy, rng=random.Random(0), execution=execution or Execution(ran_for=0.1)
    )


def failure(kind: str = "error", verdict: str | None = None) -> Failed:
    return Failed(
        error=ERROR,
        signature=ErrorSignature(kind=kind, mro=("builtins.ValueError", "builtins.Exception"), verdict=verdict),  # type: ignore[arg-type]
    )


def test_success_is_charged_and_completed():
    written = decided(Completed(result="1"))
    assert (written.state, written.charged, written.attempt, written.result) == (
        TaskState.COMPLETED,
        True,
        AttemptState.SUCCEEDED,
        "1",
    )


def test_a_failure_with_attempts_left_goes_to_the_retry_lane_after_the_delay():
    written = decided(failure())
    assert (written.state, written.lane, written.delay, written.charged) == (TaskState.PENDING, Lane.RETRY, 5, True)


@pytest.mark.requirement("A18")
def test_the_last_allowed_attempt_fails_for_good():
    """A18: with max_attempts 3 the second failure is retried and the third is final."""
    assert decided(failure(), attempt=1).state is TaskState.PENDING
    last = decided(failure(), attempt=2)
    assert (last.state, last.reason) == (TaskState.FAILED, "error")


@pytest.mark.requirement("A65")
def test_a_permanent_error_fails_at_once():
    """A65 (task's part): the first attempt of three is final when the error is permanent."""
    assert decided(failure(verdict="permanent")).state is TaskState.FAILED


@pytest.mark.requirement("D59")
def test_the_policy_decides_alike_for_errors_timeouts_and_lost_processes():
    """D59: each kind is retried while attempts remain, and fails with its own reason when none does."""
    lost = Lost(error=ERROR)
    for outcome, reason in ((failure(), "error"), (failure("timeout"), "timeout"), (lost, "lost")):
        assert decided(outcome).state is TaskState.PENDING
        final = decided(outcome, attempt=2)
        assert (final.state, final.reason, final.charged) == (TaskState.FAILED, reason, True)


def test_a_policy_may_end_tasks_at_timeouts_and_losses():
    policy = Retry(max_attempts=3, timeouts=False, lost="fail")
    assert decided(failure("timeout"), policy=policy).state is TaskState.FAILED
    assert decided(failure("soft_timeout"), policy=policy).reason == "timeout"
    assert decided(Lost(error=ERROR), policy=policy).state is TaskState.FAILED


def test_dead_letters_are_marked_only_by_a_policy_that_keeps_them():
    assert decided(failure(), attempt=2).dead_letter is False
    assert decided(failure(), attempt=2, policy=Retry(max_attempts=3, dead_letter=True)).dead_letter is True


@pytest.mark.parametrize(
    "outcome", [Snoozed(delay=3), Released(delay=3), Released(suspect=True), Suspended(delay=3), Expired()]
)
def test_what_did_not_fail_is_not_charged(outcome: Outcome):
    assert decided(outcome).charged is False


def test_a_release_of_a_suspect_says_so():
    assert decided(Released(suspect=True)).suspect is True
    assert decided(Released()).suspect is False


def test_a_returned_retry_is_charged_and_ends_when_attempts_do():
    asked = Retried(delay=9, message="later")
    assert (decided(asked).delay, decided(asked).charged) == (9, True)
    assert decided(asked, attempt=2).state is TaskState.FAILED


@pytest.mark.parametrize(
    "outcome", [failure(), Lost(error=ERROR), Snoozed(delay=1), Released(), Retried(delay=1, message="x")]
)
def test_a_task_that_is_being_cancelled_is_never_requeued(outcome: Outcome):
    written = decided(outcome, execution=Execution(ran_for=0.1, cancelling=True))
    assert written.state is TaskState.CANCELLED


def test_success_while_cancelling_is_success():
    assert decided(Completed(result="1"), execution=Execution(ran_for=1, cancelling=True)).state is TaskState.COMPLETED


@given(
    outcome=st.sampled_from(
        [
            Completed(),
            failure(),
            failure("timeout"),
            failure(verdict="permanent"),
            Lost(error=ERROR),
            Snoozed(delay=1),
            Retried(delay=1, message="m"),
            Suspended(step="e"),
            Released(),
            Cancelled(reason="user"),
            Expired(),
        ]
    ),
    attempt=st.integers(0, 5),
    cancelling=st.booleans(),
)
def test_every_decision_is_a_legal_transition_and_keeps_the_fence(outcome: Outcome, attempt: int, cancelling: bool):
    before = TaskState.CANCELLING if cancelling else TaskState.RUNNING
    written = decided(outcome, attempt=attempt, execution=Execution(ran_for=0.1, cancelling=cancelling))
    assert (written.task, written.claim_no) == (7, 4)
    assert allowed(before, written.state)
    assert written.delay >= 0


@pytest.mark.requirement("D57")
def test_the_wait_counts_the_failures_so_far() -> None:
    """D57: the first failure waits the base, the second twice that; a loss is no different."""
    policy = Retry(max_attempts=9, base=60, cap=3600, jitter=0)
    for outcome in (failure(), Lost(error=ERROR)):
        waits = [decided(outcome, policy=policy, attempt=n, max_attempts=9).delay for n in range(8)]
        assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_the_wait_after_a_loss_counts_from_the_last_sign_of_life() -> None:
    """Silence that was waited for to tell a death is part of the wait; what it was longer is no debt."""
    assert decided(Lost(error=ERROR, ago=2.0)).delay == 3
    assert decided(Lost(error=ERROR, ago=60.0)).delay == 0
    assert decided(Lost(error=ERROR, ago=60.0)).charged is True
