"""What an execution came to. The worker makes one of these; `settlement.settle` decides what the ledger writes.

`Snooze`, `Cancel` and `RetryAfter` are values that a task may return; the rest is internal.
"""

from dataclasses import dataclass
from datetime import timedelta

from headrace.core.durations import Duration, as_timedelta
from headrace.core.retry import ErrorSignature
from headrace.core.states import AttemptState
from headrace.core.task import ErrorInfo
from headrace.core.values import value


@dataclass(frozen=True, slots=True)
class Snooze:
    """Return from a task: run it again after `delay`, without charging an attempt."""

    delay: Duration

    @property
    def duration(self) -> timedelta:
        return as_timedelta(self.delay, name="Snooze.delay")


@dataclass(frozen=True, slots=True)
class Cancel:
    """Return from a task: it is cancelled, for the reason given."""

    reason: str = "cancelled by the task itself"


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Return from a task: charged like an error, and tried again after `delay` while attempts remain."""

    delay: Duration
    reason: str = "the task asked to be retried"

    @property
    def duration(self) -> timedelta:
        return as_timedelta(self.delay, name="RetryAfter.delay")


@value
class Completed:
    result: str | None = None  # canonical JSON; None where the result went to a blob
    result_ref: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    error: ErrorInfo
    signature: ErrorSignature


@value
class Snoozed:
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """The task stopped because it was told to, or returned `Cancel`."""

    reason: str
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """The task returned `RetryAfter`."""

    delay: float
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended:
    """A durable step gave the slot back: resume after `delay`, when the event of the wait named `step` arrives (or its
    time is over, `delay` after the wait began), or when `task` has ended. Never charged.
    """

    delay: float | None = None
    step: str | None = None
    task: int | None = None


class Suspend(BaseException):
    """Raised into the task's code by a durable call. Not an Exception, so that `except Exception` lets it through."""

    def __init__(self, step: str, suspended: Suspended) -> None:
        super().__init__(step)
        self.step = step
        self.suspended = suspended


@value
class Released:
    """Given back without having run (or through no fault of its own). Never charged."""

    delay: float = 0.0
    suspect: bool = False  # its worker died and nobody can say whether it had started: losses + 1
    attempt: AttemptState | None = None  # RELEASED where it had started, so that the history shows it


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """It was inside user code when its process died. Charged.

    `ago`: seconds since its last sign of life, from which the wait before the next attempt counts. Most of that wait
    is over when a death is noticed only by its silence.
    """

    error: ErrorInfo
    ago: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """Its max age passed before it could start."""

    reason: str = "expired"


type Outcome = Completed | Failed | Snoozed | Cancelled | Retried | Suspended | Released | Lost | Expired
