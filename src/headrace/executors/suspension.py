"""How a task leaves its own code when it gives its slot back, and what one is told that does not let that through."""

from typing import cast

from headrace.core.errors import DurableError
from headrace.core.outcome import Suspend, Suspended
from headrace.core.task import ClaimedTask

__all__ = ["Suspend", "suspended_by", "swallowed"]


def suspended_by(error: BaseException) -> Suspended | None:
    """What a task waits for that left with this. In a task group, one that failed beside it counts more."""
    if isinstance(error, Suspend):
        return error.suspended
    if not isinstance(error, BaseExceptionGroup):
        return None
    parts = [suspended_by(part) for part in cast("BaseExceptionGroup[BaseException]", error).exceptions]
    return parts[0] if all(part is not None for part in parts) else None


def swallowed(claim: ClaimedTask, suspend: Suspend) -> DurableError:
    """What it gets that goes on although it has given its slot back."""
    return DurableError(
        f"task {claim.id} ({claim.name}) caught what {suspend.step!r} raises to give its slot back, and went on: "
        "catch Exception, not BaseException, around durable calls"
    )
