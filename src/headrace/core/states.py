"""The one state machine of a task, an attempt and a job.

The tables below are the single source: stores refuse what they do not allow, the history checker proves
that nothing else happened, and the diagram in the documentation is generated from them.
"""

from enum import StrEnum


class TaskState(StrEnum):
    PENDING_APPROVAL = "pending_approval"
    BLOCKED = "blocked"
    PENDING = "pending"
    CLAIMED = "claimed"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    LOST = "lost"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"

    @property
    def terminal(self) -> bool:
        return self in TERMINAL

    @property
    def held(self) -> bool:
        """A worker holds the task: its writes are fenced by the claim."""
        return self in HELD


class Reason(StrEnum):
    """Why a task is in its state, where the state alone does not say."""

    ERROR = "error"
    TIMEOUT = "timeout"
    OOM = "oom"
    LOST = "lost"
    EXPIRED = "expired"
    UNKNOWN_TASK = "unknown_task"
    BAD_PAYLOAD = "bad_payload"
    USER = "user"
    KILLED = "killed"
    STOPPED = "stopped"
    SKIPPED = "skipped"
    UPSTREAM_FAILED = "upstream_failed"
    JOB_CANCELLED = "job_cancelled"
    JOB_FAILED = "job_failed"
    JOB_TIMEOUT = "job_timeout"
    REPLACED = "replaced"


class AttemptState(StrEnum):
    """How one execution ended; `running` only for attempts whose start was written."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"
    SNOOZED = "snoozed"
    SUSPENDED = "suspended"
    RELEASED = "released"
    REFUSED = "refused"  # a late report of a claim that no longer held, with no row of its own


class JobState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        return self in JOB_TERMINAL


TERMINAL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED, TaskState.REJECTED})
LIVE = frozenset(TaskState) - TERMINAL
HELD = frozenset({TaskState.CLAIMED, TaskState.RUNNING, TaskState.PAUSED, TaskState.CANCELLING})
JOB_TERMINAL = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})

_S = TaskState

# Within one run. A terminal state has no successor here: a manual retry opens the next run (see RERUN).
TRANSITIONS: dict[TaskState, frozenset[TaskState]] = {
    # Back to blocked: somebody runs again what it waited for.
    _S.PENDING_APPROVAL: frozenset({_S.PENDING, _S.BLOCKED, _S.REJECTED, _S.CANCELLED}),
    _S.BLOCKED: frozenset({_S.PENDING, _S.PENDING_APPROVAL, _S.CANCELLED, _S.FAILED}),
    _S.PENDING: frozenset({_S.CLAIMED, _S.BLOCKED, _S.CANCELLED, _S.FAILED}),
    _S.CLAIMED: frozenset(
        {_S.RUNNING, _S.CANCELLING, _S.PENDING, _S.BLOCKED, _S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.LOST}
    ),
    _S.RUNNING: frozenset(
        {_S.PAUSED, _S.CANCELLING, _S.PENDING, _S.BLOCKED, _S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.LOST}
    ),
    _S.PAUSED: frozenset({_S.RUNNING, _S.CANCELLING, _S.PENDING, _S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.LOST}),
    _S.CANCELLING: frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.LOST}),
    _S.LOST: frozenset({_S.RUNNING, _S.CANCELLING, _S.COMPLETED, _S.FAILED, _S.CANCELLED}),
    _S.COMPLETED: frozenset(),
    _S.FAILED: frozenset(),
    _S.CANCELLED: frozenset(),
    _S.REJECTED: frozenset(),
}

# What a person may run again; the row returns to the live table with run_no + 1.
RERUN = frozenset({TaskState.FAILED, TaskState.CANCELLED, TaskState.COMPLETED})

JOB_TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.PENDING: frozenset({JobState.RUNNING, JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED}),
    JobState.RUNNING: frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED}),
    JobState.COMPLETED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
}


def allowed(before: TaskState, after: TaskState) -> bool:
    return after in TRANSITIONS[before]
