"""From an outcome to what the ledger writes: one pure decision for workers, supervisors and rescuers alike."""

import random
from typing import NamedTuple

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
from headrace.core.retry import ErrorSignature, Retry, delay, should_retry
from headrace.core.states import AttemptState, Reason, TaskState
from headrace.core.task import ClaimedTask, ErrorInfo
from headrace.core.values import value


class Settlement(NamedTuple):
    """One fenced write: WHERE id = task AND claim_no = claim_no AND worker = the holder AND state is held.

    `state` pending with `delay` requeues; a terminal state moves the row to history. `attempt` None writes no
    attempt row. Durations are what the worker measured; the store computes the instants from its own clock.

    A tuple, because one is made per task: a third of what an object with as many attributes costs. What stands between
    the fence and the result is alike for most tasks of a batch (`kind`).
    """

    task: int
    claim_no: int
    state: TaskState
    reason: str | None = None
    charged: bool = False
    suspect: bool = False
    delay: float = 0.0
    lane: Lane | None = None  # None keeps the lane
    attempt: AttemptState | None = None
    result_ref: str | None = None
    result_ttl: float | None = None
    error: ErrorInfo | None = None
    dead_letter: bool = False  # beside what the enqueue wrote
    recorded_by: str = "worker"
    executor: str | None = None
    # With state blocked: the name of the wait whose event resumes it, or the id of the task whose end does. Where that
    # has come meanwhile, the store makes it pending at once.
    awaits: str | int | None = None
    result: str | None = None
    ran_for: float | None = None  # seconds inside user code; None when it never started

    @property
    def terminal(self) -> bool:
        return self.state.terminal


KIND = slice(Settlement._fields.index("state"), Settlement._fields.index("awaits"))


@value
class Execution:
    """What the executing side knows beside the outcome."""

    ran_for: float | None = None
    recorded_by: str = "worker"
    executor: str | None = None
    cancelling: bool = False  # someone asked to cancel it; a retry is then a cancellation
    result_ttl: float | None = None


_NOTHING = Execution()
_COMPLETED, _SUCCEEDED = TaskState.COMPLETED, AttemptState.SUCCEEDED


def success(
    claim: ClaimedTask,
    outcome: Completed,
    ran_for: float | None,
    executor: str | None,
    result_ttl: float | None,
    recorded_by: str = "worker",
) -> Settlement:
    """Nothing is to be decided: a success stands, also of a task that someone is cancelling."""
    # By places: in the order of the fields.
    return Settlement._make(
        (
            claim.id, claim.claim_no, _COMPLETED, None, True, False, 0.0, None, _SUCCEEDED, outcome.result_ref,
            result_ttl, None, False, recorded_by, executor, None, outcome.result, ran_for,
        )
    )  # fmt: skip


def settle(
    claim: ClaimedTask,
    outcome: Outcome,
    policy: Retry,
    *,
    rng: random.Random,
    execution: Execution = _NOTHING,
) -> Settlement:
    """Decide what becomes of a claimed task. The store still checks the fence, the age and the cancellation."""
    # The commonest by far, before the functions below are made: those would cost more than the decision.
    if isinstance(outcome, Completed):
        return success(
            claim,
            outcome,
            ran_for=execution.ran_for,
            executor=execution.executor,
            result_ttl=execution.result_ttl,
            recorded_by=execution.recorded_by,
        )

    def write(state: TaskState, **changes: object) -> Settlement:
        return Settlement(
            task=claim.id,
            claim_no=claim.claim_no,
            state=state,
            ran_for=execution.ran_for,
            recorded_by=execution.recorded_by,
            executor=execution.executor,
            result_ttl=execution.result_ttl,
            **changes,  # pyright: ignore[reportArgumentType]
        )

    def failed(error: ErrorInfo, reason: str, attempt: AttemptState, *, charged: bool = True) -> Settlement:
        return write(
            TaskState.FAILED,
            reason=reason,
            charged=charged,
            attempt=attempt,
            error=error,
            dead_letter=policy.dead_letter,
        )

    def cancelled(reason: str, message: str | None, *, charged: bool) -> Settlement:
        error = ErrorInfo(error_class="headrace.TaskCancelled", message=message) if message else None
        return write(
            TaskState.CANCELLED,
            reason=reason,
            charged=charged,
            attempt=AttemptState.CANCELLED if execution.ran_for is not None else None,
            error=error,
        )

    def retried(error: ErrorInfo, attempt: AttemptState, wait: float) -> Settlement:
        if execution.cancelling:
            return cancelled(Reason.USER, error.message, charged=True)
        return write(TaskState.PENDING, charged=True, delay=wait, lane=Lane.RETRY, attempt=attempt, error=error)

    charged_now = claim.attempt + 1
    match outcome:
        case Failed(error=error, signature=signature):
            attempt = AttemptState.TIMED_OUT if signature.kind == "timeout" else AttemptState.FAILED
            if charged_now < claim.max_attempts and should_retry(policy, error=signature, attempt=charged_now):
                wait = delay(
                    policy,
                    failures=charged_now,
                    error_type=signature.error_type,
                    retry_after=signature.retry_after,
                    rng=rng,
                )
                return retried(error, attempt, wait)
            return failed(error, _REASON_BY_KIND.get(signature.kind, Reason.ERROR), attempt)
        case Lost(error=error, ago=ago):
            signature = ErrorSignature(mro=(error.error_class,), kind="lost")
            if charged_now < claim.max_attempts and should_retry(policy, error=signature, attempt=charged_now):
                wait = delay(policy, failures=charged_now, error_type=None, retry_after=None, rng=rng)
                return retried(error, AttemptState.LOST, max(0.0, wait - ago))
            return failed(error, Reason.LOST, AttemptState.LOST)
        case Retried(delay=wait, message=message):
            error = ErrorInfo(error_class="headrace.RetryAfter", message=message)
            if charged_now < claim.max_attempts:
                return retried(error, AttemptState.FAILED, wait)
            return failed(error, Reason.ERROR, AttemptState.FAILED)
        case Snoozed(delay=wait):
            if execution.cancelling:
                return cancelled(Reason.USER, None, charged=False)
            return write(TaskState.PENDING, delay=wait, attempt=AttemptState.SNOOZED)
        case Suspended(delay=wait, step=step, task=task):
            if execution.cancelling:
                return cancelled(Reason.USER, None, charged=False)
            awaits = task if step is None else step
            state = TaskState.PENDING if awaits is None else TaskState.BLOCKED
            # What awaits something is due when that comes; its delay is the store's, which has counted from the first.
            delayed = 0.0 if awaits is not None else wait or 0.0
            return write(state, delay=delayed, attempt=AttemptState.SUSPENDED, awaits=awaits)
        case Cancelled(reason=reason, message=message):
            return cancelled(reason, message, charged=execution.ran_for is not None)
        case Released(delay=wait, suspect=suspect, attempt=attempt):
            if execution.cancelling:
                return cancelled(Reason.USER, None, charged=False)
            return write(TaskState.PENDING, delay=wait, suspect=suspect, attempt=attempt)
        case Expired(reason=reason):
            error = ErrorInfo(error_class="headrace.Expired", message="its max age passed before it could start")
            return failed(error, reason, AttemptState.FAILED, charged=False)


_REASON_BY_KIND: dict[str, str] = {
    "timeout": Reason.TIMEOUT,
    "soft_timeout": Reason.TIMEOUT,
    "oom": Reason.OOM,
    "lost": Reason.LOST,
    "killed": Reason.KILLED,
}
