"""Who is charged when a worker process has died: decided from its slots, written by its supervisor."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.core.outcome import Cancelled, Failed, Lost, Outcome, Released
from headrace.core.retry import ErrorSignature
from headrace.core.settlement import Execution, Settlement, settle
from headrace.core.states import AttemptState, Reason, TaskState
from headrace.core.task import ClaimedTask, ErrorInfo, Ref
from headrace.executors.invocation import out_of_memory
from headrace.executors.slots import (
    LOOP,
    THREAD,
    VERDICT_CANCELLED,
    VERDICT_MEMORY,
    VERDICT_NONE,
    VERDICT_TIMEOUT,
    Occupied,
)
from headrace.worker.execution import Pipeline
from headrace.worker.rescuing import lost_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A process that ended. `spared`: its supervisor ended it for reasons that are not the tasks'."""

    worker: str
    exit_code: int | None
    at: float
    occupied: Mapping[Ref, Occupied]
    spared: bool = False

    @property
    def judged(self) -> bool:
        """The watcher killed the process for one attempt: the others inside it are innocent. A verdict on what runs in
        a child or as a command ended that alone, and says nothing of why the worker process died.
        """
        return any(slot.verdict != VERDICT_NONE and slot.kind in (LOOP, THREAD) for slot in self.occupied.values())

    def innocent(self, slot: Occupied) -> bool:
        """The process died while its loop executed the code of another attempt."""
        return not slot.inside and any(other.inside for other in self.occupied.values())


def outcome_after(death: Death, claim: ClaimedTask) -> Outcome:
    slot = death.occupied.get(Ref(claim.id, claim.claim_no))
    if slot is None:
        return Released()
    if slot.verdict == VERDICT_TIMEOUT:
        seconds = slot.hard - slot.entered
        return Failed(
            error=ErrorInfo(
                error_class="headrace.TimeLimitExceeded",
                message=f"it ran longer than its hard limit of {seconds:g} s and its process was killed; "
                "raise `timeout`, or do less in one task",
                exit_code=death.exit_code,
            ),
            signature=ErrorSignature(kind="timeout"),
        )
    if slot.verdict == VERDICT_MEMORY:
        return out_of_memory(*slot.memory)
    if slot.verdict == VERDICT_CANCELLED or claim.state == TaskState.CANCELLING:
        return Cancelled(reason=Reason.USER)
    if death.spared or death.judged or death.innocent(slot):
        return Released(attempt=AttemptState.RELEASED)
    return Lost(error=lost_error(death.worker, exit_code=death.exit_code))


def settle_after(death: Death, claim: ClaimedTask, *, pipeline: Pipeline, rng: random.Random) -> Settlement:
    slot = death.occupied.get(Ref(claim.id, claim.claim_no))
    execution = Execution(
        ran_for=None if slot is None else max(0.0, death.at - slot.entered),
        recorded_by="supervisor",
        cancelling=claim.state == TaskState.CANCELLING,
    )
    return settle(claim, outcome_after(death, claim), pipeline.policy(claim), rng=rng, execution=execution)
