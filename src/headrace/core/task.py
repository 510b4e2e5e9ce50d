"""The values that cross the seam between clients, stores and workers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from headrace.core.lanes import Lane
from headrace.core.limits import Gate, Rate
from headrace.core.states import AttemptState, JobState, TaskState
from headrace.core.values import value

Kind = Literal["function", "command", "session"]
Pool = Literal["coroutine", "child", "thread", "command", "runner"]
OnConflict = Literal["return", "reject", "replace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A name that at most one task may hold: `unique` until the task ends, `idem` for its retention."""

    scope: Literal["unique", "idem"]
    key: str
    ttl: float | None = None  # seconds the key outlives the task (idem: from the enqueue on); None: freed at the end
    on_conflict: OnConflict = "return"


class EdgeKind(StrEnum):
    """When a task that waits for another may run."""

    ON_SUCCESS = "on_success"  # once it has completed
    ON_DONE = "on_done"  # once it has ended, in whatever way
    ON_FAILURE = "on_failure"  # once it has failed (or was rejected), and not otherwise


@value
class After:
    """An edge from a new task to one that it waits for."""

    task: int  # its place among the tasks of the same call where `local`, else its id
    kind: EdgeKind = EdgeKind.ON_SUCCESS
    input: int | None = None  # which of the task's inputs (options["inputs"]) gets its result; None passes nothing on
    local: bool = False


@value
class NewTask:
    """What an enqueue writes. Durations are seconds; the store turns them into instants by its own clock."""

    name: str
    arguments: str = "{}"  # canonical JSON, encoded by `codec`
    kind: Kind = "function"
    queue: str = "default"
    pool: Pool = "coroutine"
    priority: int = 0
    delay: float = 0.0
    run_at: datetime | None = None  # wins over `delay`
    max_attempts: int = 4
    max_age: float | None = None
    codec: str = "json/1"
    version: int = 1
    options: str = "{}"  # canonical JSON that the worker reads: retry, limits of time, result_ttl, tags, metadata
    gates: tuple[Gate, ...] = ()
    keys: tuple[Key, ...] = ()
    job: int | None = None
    critical: bool = True
    dead_letter: bool = False  # its policy keeps dead letters: it is one when it fails, in whatever way
    approval: bool = False  # waits as pending_approval
    max_wait: float | None = None  # debounce: a replaced task is never later than its first creation + max_wait
    after: tuple[After, ...] = ()  # blocked until these allow it; of its own job, or of none where it has none
    owner: str | None = None  # the user in whose name it runs

    @property
    def plain(self) -> bool:
        """No keys, no job, no edges: may share a transaction with other callers' tasks."""
        return not self.keys and self.job is None and not self.after


class Enqueued(NamedTuple):
    """The answer to one NewTask: its id, and whether a new task was made."""

    id: int
    created: bool


class ClaimedTask(NamedTuple):
    """A task in a worker's hands. (id, claim_no) is the fence of every later write."""

    id: int
    claim_no: int
    name: str
    kind: Kind
    queue: str
    pool: Pool
    lane: int
    priority: int
    arguments: str
    codec: str
    version: int
    options: str
    attempt: int  # charged executions so far
    losses: int
    max_attempts: int
    run_no: int
    job: int | None
    gated: bool  # must pass `admit` before it may start
    expired: bool  # its max age has passed by the store's clock
    state: str  # claimed at a claim; whatever it is now for `held`
    order_at: datetime | int  # opaque, only for sorting claims of one store
    waited: float  # seconds between being eligible and being claimed, by the store's clock


class Ref(NamedTuple):
    """The fence: a task and the number of the claim."""

    id: int
    claim_no: int


@value
class Want:
    """How many tasks of one (queue, pool, lane) a claim may take."""

    queue: str
    pool: Pool
    lane: Lane
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """An error as data: it crosses processes and databases."""

    error_class: str  # dotted path
    message: str
    traceback: str | None = None
    exit_code: int | None = None
    error_type: str | None = None  # row of the delay table, where one applied


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """A task as it is now, live or done."""

    id: int
    name: str
    kind: Kind
    queue: str
    pool: Pool
    lane: Lane
    priority: int
    state: TaskState
    reason: str | None
    dead_letter: bool  # failed, and its policy keeps dead letters
    arguments: str
    codec: str
    version: int
    options: str
    attempt: int
    max_attempts: int
    losses: int
    claim_no: int
    run_no: int
    worker: str | None
    job: int | None
    critical: bool
    waiting_on: str | None
    created_at: datetime
    enqueued_at: datetime
    eligible_at: datetime
    expires_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    cancelling_at: datetime | None
    progress: str | None
    result: str | None
    result_ref: str | None
    result_expires_at: datetime | None
    error_class: str | None
    error_message: str | None
    owner: str | None = None

    @property
    def log_ref(self) -> str:
        """Where the log lines of all its executions are: `app.tasks.logs(record.log_ref)`."""
        return f"logs/{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One execution (or one refused report) of a task."""

    task: int
    claim_no: int
    run_no: int
    attempt: int | None  # its number among the charged ones; None when it was not charged
    state: AttemptState
    charged: bool
    worker: str | None
    executor: str | None
    handle: str | None
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    error_class: str | None
    error_message: str | None
    traceback: str | None
    exit_code: int | None
    recorded_by: str | None
    late_state: str | None
    late_at: datetime | None

    @property
    def log_ref(self) -> str:
        """Where the log lines of this execution are: `app.tasks.logs(attempt.log_ref)`."""
        return log_ref(self.task, self.claim_no)


def log_ref(task: int, claim_no: int) -> str:
    return f"logs/{task}/{claim_no}"


def read_log_ref(text: str) -> tuple[int, int | None]:
    """The task, and the claim where one execution is meant. Raises ValueError."""
    match text.split("/"):
        case ["logs", task]:
            return int(task), None
        case ["logs", task, claim_no]:
            return int(task), int(claim_no)
        case _:
            raise ValueError(f"{text!r} refers to no log; a log_ref is logs/<task> or logs/<task>/<claim>")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    id: str
    kind: str
    hostname: str
    pid: int
    state: Literal["active", "idle", "stopping", "stopped"]
    beat: int
    lease: float
    queues: tuple[str, ...]
    version: str
    started_at: datetime
    last_heartbeat: datetime
    stopped_at: datetime | None
    tasks_completed: int
    tasks_failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    name: str
    description: str | None = None
    # In the order of their edges: what one waits for comes before it. Read in batches, more than once when a commit is
    # repeated, so that it may be larger than memory.
    tasks: Collection[NewTask] = ()
    timeout: float | None = 86_400.0
    on_success: NewTask | None = None
    on_failure: NewTask | None = None  # runs once per run of the job, whatever way it failed or was cancelled
    metadata: str = "{}"
    owner: str | None = None  # its tasks and hooks are theirs, too


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    id: int
    name: str
    description: str | None
    state: JobState
    reason: str | None
    run_no: int
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    deadline_at: datetime | None
    total: int
    completed: int
    failed: int
    cancelled: int
    running: int
    metadata: str
    owner: str | None = None

    @property
    def open(self) -> int:
        return self.total - self.completed - self.failed - self.cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A task and one that it waits for, or waited for."""

    task: int
    upstream: int
    kind: EdgeKind
    input: int | None
    place: int  # among the edges of its task


class Outlined(NamedTuple):
    """What a graph is drawn of: a task of a job, without its payloads."""

    id: int
    name: str
    label: str | None  # what its composition calls it
    state: TaskState
    reason: str | None
    critical: bool
    waiting_on: str | None
    started_at: float | None  # seconds since 1970
    finished_at: float | None
    error: str | None  # class and the beginning of the message, of one that failed


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHooks:
    """The names of the tasks that run when a job ends, and whether the one of its present run was enqueued."""

    on_success: str | None = None
    on_failure: str | None = None
    enqueued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """The result of a task, for one that waited for it. `state` other than completed has none."""

    input: int
    place: int
    task: int
    name: str
    state: TaskState
    codec: str
    result: str | None
    result_ref: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What a wait for an event came to; `payload` is canonical JSON, None when its time was over first."""

    payload: str | None

    @property
    def timed_out(self) -> bool:
        return self.payload is None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """What a list or a bulk act is about. Keyset paging: `before` is the (sort instant, id) of the last row seen."""

    states: tuple[TaskState, ...] = ()
    queues: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    job: int | None = None
    worker: str | None = None
    dead_letter: bool | None = None
    owner: str | None = None
    limit: int = 100
    before: tuple[datetime, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRecord:
    name: str
    paused: bool
    # primary, retry, scheduled, waiting, claimed, running
    depths: Mapping[str, int] = field(default_factory=dict[str, int])
    # What was set for it at run time; what code asks for its tasks is not here.
    limit: int | None = None
    rate: Rate | None = None


JSONValue = Any
