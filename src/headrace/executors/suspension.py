"""How a task leaves its own code when it gives its slot back, and what one is told that does not let that through."""

from typing import cast

from headrace.core.errors import DurableError
from headrace.core.outcome import Suspended
from headrace.core.task import ClaimedTask


class Suspend(BaseException):
    """Raised into the task's code by a durable call. Not an Exception, so that `except Exception` lets it through."""

    def __init__(self, step: str, suspended: Suspended) -> None:
        super().__init__(step)
        self.step = step
        self.suspended = suspended


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
