"""What is shown while it happens. A sequence is durable and has no gaps: whoever has seen up to `n` asks behind it."""

from datetime import datetime
from typing import NamedTuple

from headrace.core.states import JobState, TaskState
from headrace.core.values import value

VALUES = "value"  # the stream of `current.stream`: data of its task, and no lines of its job
LATE_JOIN = 500  # lines and events that somebody who comes late is shown


@value
class JobEvent:
    """The job as it was after a change of its state or its counts. `seq` counts from 0 in each job, without gaps: it
    comes from the update that locks the job's counts."""

    job: int
    seq: int
    at: datetime
    state: JobState
    total: int
    completed: int
    failed: int
    cancelled: int


@value
class JobLine:
    """A log line of one of a job's tasks. `seq` counts from 0 in each job, without gaps, over all its tasks."""

    job: int
    seq: int
    task: int
    claim_no: int
    at: datetime
    stream: str
    line: str


class JobHead(NamedTuple):
    """How far a job's sequences are: the numbers that come next."""

    event: int
    line: int


class TaskHead(NamedTuple):
    """What of a task can have changed since somebody looked."""

    state: TaskState
    claim_no: int
    line: int  # lines of its present claim so far: the number that comes next
    progress: str | None
