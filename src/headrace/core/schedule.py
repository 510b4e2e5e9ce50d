"""Schedules as values: what a store keeps of one, what a scheduler decides about it, and what became of its fires.

The store knows nothing of calendars: a cadence is text to it, and the instants it moves to come in with the decision.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from headrace.core.task import NewTask

type CatchUp = Literal["coalesce", "skip", "all"]
"""Ticks that passed while no scheduler ran: one fire for all of them; none that is older than the grace; each."""

type Overlap = Literal["skip", "queue", "replace", "allow"]
"""A fire while an earlier one is unfinished: is left out; waits, one at most; takes its place; runs beside it."""

type Verdict = Literal["enqueue", "skip", "replace"]
"""What becomes of a fire: enqueued; left out; enqueued in the transaction that cancels those unfinished."""


class RunStatus(StrEnum):
    """What became of one fire: the state of its task in the words of a schedule."""

    PENDING = "pending"  # enqueued, in nobody's hands now
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"  # an earlier one was unfinished, or the task's own key was held
    EXPIRED = "expired"  # its task ended longer ago than history is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """What is to be stored under a name. Durations are seconds."""

    name: str
    cadence: str  # scheduling.cadence_to_json
    task: NewTask  # what each fire enqueues; its `delay` counts from the tick, it has no `run_at` and no `job`
    catch_up: CatchUp = "coalesce"
    grace: float = 60.0
    overlap: Overlap = "skip"
    jitter: float = 0.0
    paused: bool = False  # as it is made; a later declaration neither pauses nor resumes
    declared_by: str | None = None  # the app whose code declares it; None: made at run time
    expected: int | None = None  # the revision that a put must find, 0: no such schedule; None: whatever is there


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRecord:
    """A schedule as it is now. All ticks up to the cursor are decided."""

    id: int
    name: str
    cadence: str
    task: NewTask
    catch_up: CatchUp
    grace: float
    overlap: Overlap
    jitter: float
    paused: bool
    declared_by: str | None
    revision: int  # rises with every change, pause and resume: a decision about an older one is void
    cursor: datetime
    next_at: datetime | None  # when a scheduler looks at it next; None: no tick will ever come
    problem: str | None  # why no scheduler can read it; it does not fire until it is written anew
    created_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    tick: datetime
    delay: float = 0.0  # jitter, in seconds after the tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A decision about one schedule, as it was read: void when revision or cursor are others by now."""

    schedule: int
    revision: int
    cursor: datetime  # as it was read
    new_cursor: datetime
    next_at: datetime | None
    fires: tuple[Fire, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """One fire that a call of `fire` decided."""

    schedule: int
    tick: datetime
    verdict: Verdict
    task: int | None  # the task it became; None when it was left out


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRun:
    schedule: int
    tick: datetime  # of a manual run: the instant at which it was asked for
    manual: bool
    task: int | None
    status: RunStatus
    fired_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSchedules:
    now: datetime  # by the store's clock
    due: tuple[ScheduleRecord, ...]
    next_in: float | None  # seconds until the next one is due, 0 when more are due now; None when none ever will be


def overlap(policy: Overlap, *, waiting: int, running: int) -> Verdict:
    """What becomes of a fire while `waiting` earlier fires have not started and `running` are in a worker's hands.

    With `queue` one fire waits for the one that runs, so tasks of such a schedule need an order key of their own: else
    an idle worker would start the second beside the first.
    """
    match policy:
        case "allow":
            return "enqueue"
        case "skip":
            return "skip" if waiting or running else "enqueue"
        case "queue":
            # Of two in a worker's hands one has been claimed and is about to be parked behind the other.
            return "skip" if waiting or running > 1 else "enqueue"
        case "replace":
            return "replace" if waiting or running else "enqueue"
