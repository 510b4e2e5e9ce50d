"""The seam: what a ledger can do, as small protocols by concern. Each docstring says what is atomic.

Rules that hold for every verb:

* A worker's write is fenced: it names the task, the claim number and the worker, and applies only while that very claim
  holds the task. What the fence refuses is recorded on the attempt as a late report and returned, never raised.
* Instants are computed by the store's clock. Callers send durations.
* A verb that returned is durable. One that raised `StoreUnavailable` may or may not have happened; repeat it.
"""

from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from headrace.core.errors import StoreError
from headrace.core.grouping import Bone, Joint
from headrace.core.limits import Rate
from headrace.core.schedule import DueSchedules, Fired, Firing, NewSchedule, ScheduleRecord, ScheduleRun
from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, JobState, TaskState
from headrace.core.task import (
    AttemptRecord,
    ClaimedTask,
    Edge,
    Enqueued,
    Input,
    JobHooks,
    JobRecord,
    Key,
    NewJob,
    NewTask,
    Outlined,
    QueueRecord,
    Received,
    Ref,
    TaskFilter,
    TaskRecord,
    Want,
    WorkerRecord,
)
from headrace.store.accounts import Accounts
from headrace.store.circuits import Circuits
from headrace.store.expecting import Expected
from headrace.store.figures import Figures
from headrace.store.live import Live
from headrace.store.relations import Relations
from headrace.store.removing import Removal
from headrace.store.skimming import Skimming
from headrace.store.subscriptions import Subscriptions

# Where an inspection counts, it stops here: this figure means "more than 10,000".
RETRIES = ","  # in front of a queue's name, which has no comma: see Wakeups.listen
COUNTED_AT_MOST = 10_001
# How long the audit log is kept, whatever happens to the tasks it tells of.
AUDIT_KEPT = 365 * 86_400.0
# Dependents of one task that its finish frees itself; more of them are left to `release`.
RELEASED_AT_ONCE = 1000


class Statement(NamedTuple):
    """One SQL statement with positional parameters in the style of the driver it is for."""

    sql: str
    parameters: tuple[Any, ...] = ()


# A sans-IO conversation with a database: yields statements, is sent their rows, returns its answer. The same program
# runs on the store's own connection and inside a user's transaction, on sync and async drivers.
type Program[T] = Generator[Statement, Sequence[Sequence[Any]], T]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishReport:
    accepted: frozenset[Ref]
    repeated: frozenset[Ref] = frozenset()  # already written by an earlier try of the same report: a success
    refused: frozenset[Ref] = frozenset()  # the claim no longer held; recorded as a late report
    releasing: bool = False  # more dependents were freed than one transaction takes: call `release`
    claimed: tuple[ClaimedTask, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """A job that a verb of this very store ended, and the task that its hook became."""

    job: int
    state: JobState
    took: float | None  # seconds from its first claim; None when nothing of it was ever claimed
    hook: NewTask | None = None


type JobEndListener = Callable[[JobEnd], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    admitted: frozenset[Ref]
    parked: frozenset[Ref] = frozenset()  # left the ready index, uncharged; readied again by whoever frees the slot


class Started(StrEnum):
    STARTED = "started"
    CANCELLING = "cancelling"  # someone cancelled it first: do not run it, settle it as cancelled
    REFUSED = "refused"  # the claim no longer holds


class CancelAnswer(StrEnum):
    CANCELLED = "cancelled"  # it had not been claimed: done
    CANCELLING = "cancelling"  # its worker is told to stop it
    TOO_LATE = "too_late"  # it had already ended
    UNKNOWN = "unknown"
    CHANGED_MEANWHILE = "changed_meanwhile"  # it is not as it was expected any more: nothing was done


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken invariant that the history checker found."""

    rule: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    tasks: int = 0
    results: int = 0
    workers: int = 0
    keys: int = 0
    jobs: int = 0
    runs: int = 0  # of schedules
    events: int = 0
    tokens: int = 0
    audit: int = 0
    job_events: int = 0  # of jobs that go once they have none: more may wait though nothing else went
    blobs: tuple[str, ...] = ()  # references to results that nobody has any more: whoever keeps blobs removes them


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    task: int
    claim_no: int
    seq: int
    at: datetime
    stream: str
    line: str


class Span(NamedTuple):
    """One execution of a task, as far as a picture needs it."""

    claim_no: int
    state: AttemptState
    charged: bool
    worker: str | None
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    id: int
    name: str
    key: str
    payload: str
    created_at: datetime


class EventSkim(NamedTuple):
    rows: list[EventRecord]
    place: tuple[datetime, int] | None  # everything before it was looked at; None: nothing is behind


@dataclass(frozen=True, slots=True, kw_only=True)
class NameCount:
    """How many live tasks go by a name, and the oldest of them."""

    name: str
    kind: str
    n: int
    oldest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFacts:
    """What a database says of itself."""

    product: str
    version: tuple[int, ...]
    durable: bool  # what was acknowledged survives a loss of power
    durability: str  # the settings that say so
    size: int  # bytes
    connections: int | None = None  # in use on the whole server, where it has connections
    most_connections: int | None = None


class TaskVerbs(Protocol):
    """The hot path."""

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued]:
        """Write all tasks in one transaction, with their keys and job counters, and wake workers of their queues.

        Answers in order. Raises DuplicateTask (on_conflict="reject"), UniqueBusy, NotFound (job), WrongState (job
        over): then nothing was written.
        Safe against a connection lost at COMMIT: ids are taken before, a repeat changes nothing.
        """
        ...

    def enqueue_program(self, tasks: Sequence[NewTask]) -> Program[list[Enqueued]]:
        """The same as statements for a connection of the user's own transaction. Takes no lock on a job row."""
        ...

    async def claim(self, worker: str, wants: Sequence[Want]) -> list[ClaimedTask]:
        """Take up to `n` ready tasks of each want, best first (priority, then order of eligibility). One statement.

        Promotes tasks that became due. Skips paused queues. No two claims return the same (id, claim_no); a task is
        in one worker's hands at a time. Starts the job of a task that is the first of its job to be claimed.
        """
        ...

    async def admit(self, worker: str, claims: Sequence[ClaimedTask]) -> Admission:
        """Pass gated tasks through limits, rates and order keys; park those that find no room. One transaction."""
        ...

    async def start(self, worker: str, refs: Sequence[Ref], *, executor: str | None = None) -> dict[Ref, Started]:
        """Write `running` and an attempt row for claims whose code is being entered. Fenced; one transaction."""
        ...

    async def record_handle(self, worker: str, ref: Ref, handle: str) -> bool:
        """Keep an executor's durable handle on the attempt that `start` wrote. Fenced."""
        ...

    async def finish(
        self, worker: str, settlements: Sequence[Settlement], *, wants: Sequence[Want] = ()
    ) -> FinishReport:
        """Apply settlements, all in one transaction: live row to history or back to pending, attempt, counters, keys,
        slots, job (with its hooks) and, when `wants` is given, the next claim.

        A settlement whose data the database refuses does not take the others down: it is recorded as failed.
        A requeue whose eligible time lies beyond the task's age ends it as failed/expired. A requeue of a task that is
        `cancelling` ends it as cancelled. Success while cancelling is completed.
        """
        ...

    async def cancel(
        self, ids: Sequence[int], *, reason: str = "user", expected: Expected | None = None
    ) -> dict[int, CancelAnswer]:
        """End tasks that nobody holds; mark held ones `cancelling` and signal their workers. One transaction.

        What is not as `expected` is left alone, and answered so.
        """
        ...

    async def cancelling(self, worker: str) -> list[Ref]:
        """The claims of this worker that someone asked to cancel."""
        ...

    async def retry(self, ids: Sequence[int], *, expected: Expected | None = None) -> list[int]:
        """Open a new run (run_no + 1, fresh budget, retry lane, age from now) of tasks that ended; the ids it changed.

        Two at once: one run. A job that had ended opens again with run_no + 1. Those that were cancelled as
        `upstream_failed` or `skipped` because of one of them are blocked again, with whatever they wait for; they are
        among the answers. What is named and not as `expected` stays as it is.
        """
        ...

    async def progress(self, worker: str, values: Sequence[tuple[Ref, str]]) -> None:
        """Keep the last progress value of running tasks. Fenced."""
        ...


class Upkeep(Protocol):
    """What services do on the side; every call is bounded and safe to run in many processes at once."""

    async def promote(self, *, limit: int = 500) -> float | None:
        """Make due tasks ready; seconds until the next one is due (0 when more are due now), None when none waits."""
        ...

    async def expire(self, *, limit: int = 500) -> int:
        """Fail pending tasks whose max age has passed, and jobs past their deadline (their tasks are cancelled)."""
        ...

    async def unpark(self, *, limit: int = 500) -> int:
        """Ready parked tasks whose gate has room but whom nobody woke (a crash between two writes)."""
        ...

    async def end_cancelling(self, *, grace: float, limit: int = 500) -> int:
        """Cancel tasks that stay `cancelling` longer than `grace`; raises claim_no, so a late report is refused."""
        ...

    async def prune(self, *, keep: float, limit: int = 5000) -> Pruned:
        """Remove history older than `keep` seconds, expired results, keys past their expiry, old stopped workers; and
        runs of schedules that are as old, unless their task is unfinished; tokens that have been good for nothing that
        long; and what the audit log has of more than AUDIT_KEPT seconds ago."""
        ...

    async def purge(self, ids: Sequence[int]) -> list[int]:
        """Remove dead letters with everything that belongs to them, in one transaction; the ids that are gone.

        What is no dead letter stays, and so does one whose job is not over, since the job's fate asks for it, and one
        that a live task waits for or called.
        """
        ...

    async def prunable(self, *, keep: float) -> Pruned:
        """How much `prune` would remove, called until nothing is left. It counts all of that: not for services."""
        ...

    async def retry_depth(self, queue: str, *, cap: int = 5001) -> int:
        """How many tasks of the queue are ready in the retry lane, counted up to `cap`."""
        ...

    async def dead_letter_depth(self, *, cap: int = COUNTED_AT_MOST) -> int:
        """How many dead letters there are, counted up to `cap` in the index that holds nothing else."""
        ...

    async def count_outcomes(self, counts: Iterable[tuple[str, str, str, str, int]]) -> None:
        """Add (worker, queue, name, outcome, n) to this minute's counts."""
        ...

    async def release(self, *, limit: int = 1000) -> int:
        """Go on with dependents of ended tasks that were too many for the transaction that ended them (more than
        RELEASED_AT_ONCE of one task), up to `limit`; how many it looked at, 0 when nothing is left."""
        ...

    async def deliver(self, *, limit: int = 500) -> int:
        """Resume tasks whose event came while they were about to wait for it, or whose wait is over by the clock."""
        ...

    async def lead(self, role: str, worker: str, *, lease: float) -> bool:
        """Take or renew the leadership of a role; False while another holds it."""
        ...


class Liveness(Protocol):
    """Workers, leases and what the dead leave behind."""

    async def register(self, worker: WorkerRecord) -> None: ...

    async def heartbeat(self, workers: Sequence[str], *, states: dict[str, str] | None = None) -> set[str]:
        """Raise the beat of each worker that is not stopped; the ids still alive. The others lost their lease."""
        ...

    async def deregister(self, worker: str) -> int:
        """Mark the worker stopped and give back uncharged what it still holds (how many); the row stays."""
        ...

    async def workers(self, *, states: Sequence[str] = ()) -> list[WorkerRecord]: ...

    async def take_over(self, worker: str, *, beat: int) -> bool:
        """Mark a worker stopped if its beat is still the one observed. Exactly one of many callers gets True."""
        ...

    async def stopped_holders(self, *, limit: int = 100) -> list[str]:
        """Stopped (or unknown) workers that still hold tasks: a rescue that was interrupted."""
        ...

    async def held(self, worker: str, *, limit: int = 500) -> list[ClaimedTask]:
        """What a worker holds, with its present state."""
        ...


class Jobs(Protocol):
    def watch_job_ends(self, listener: JobEndListener) -> None:
        """Call it with every job that a verb of this store ends from now on, after the commit, on any thread.

        Once for each run of a job, whichever of many stores ended it. Not when the connection was lost at the commit
        and the verb repeated: this is for counting, not for deciding.
        """
        ...

    async def create_job(self, job: NewJob) -> tuple[int, Sequence[Enqueued]]:
        """The job and its tasks with their edges in one transaction, written batch by batch: the memory it takes grows
        with the number of tasks by their ids alone. GraphError when an edge leads to a later place, or to a task that
        is not of this job.
        """
        ...

    async def get_job(self, job: int) -> JobRecord | None: ...

    async def get_jobs(self, jobs: Sequence[int]) -> list[JobRecord]:
        """Those of them that exist, newest first."""
        ...

    async def list_jobs(
        self,
        *,
        states: Sequence[JobState] = (),
        owner: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[JobRecord]:
        """Newest first; of one owner where it is said."""
        ...

    async def cancel_job(self, job: int) -> JobRecord:
        """Cancel what nobody holds, tell the rest to stop, mark the job. NotFound; WrongState when it is over."""
        ...

    async def retry_failed(self, job: int) -> list[int]:
        """Open a new run of the job: its failed tasks, and those that were cancelled because of them or with the job,
        pending again, or blocked where what they wait for is not done.

        WrongState unless it failed or was cancelled, and while one of its tasks is still being stopped.
        """
        ...


class Graphs(Protocol):
    """Tasks that wait for others. The edges of a task are written with it (NewTask.after) and never change, but for
    the one that a `Suspended(task=…)` adds.

    Whatever ends a task settles in the same transaction what waits for it, as `core.advance` says: barriers fall, what
    is free becomes pending (or pending_approval), what can never run is cancelled, and so on down the graph.
    """

    async def clear(self, task: int) -> list[int]:
        """Open a new run of a task that ended and of everything below it, whatever became of that, without the
        checkpoints of their earlier runs; all of them in one transaction, their ids. The task itself is pending or
        blocked, the rest is blocked. The job opens again. NotFound; WrongState while one of them is in a worker's
        hands, or the task has not ended.
        """
        ...

    async def inputs(self, task: int) -> list[Input]:
        """The results that the edges of a task pass on to it, by input and place."""
        ...

    async def edges(self, tasks: Sequence[int]) -> list[Edge]:
        """What these tasks wait for, or waited for; by task and place."""
        ...

    async def decide(self, task: int, *, approved: bool, by: str, note: str | None = None) -> TaskRecord:
        """Approve or reject a task that is pending_approval. Approved it is pending, and its checkpoint `approval` says
        who and when: {"by": …, "note": …, "at": ISO instant}. Rejected it has ended, with reason `by` in its message.
        NotFound; WrongState when it does not wait for that (any more): of two at once, one decides.
        """
        ...


class Outlines(Protocol):
    """A whole job, for whoever looks at it."""

    async def outline(self, job: int, *, after: int = 0, limit: int = 10_000) -> list[Outlined]:
        """Its tasks in the order of their ids, those behind the id `after`: a page. A task that ends between two pages
        is on one of them."""
        ...

    async def tally(self, job: int) -> list[tuple[str, TaskState, int]]:
        """How many tasks it has of each name and state. Counts all of them: not for services."""
        ...

    async def bones(self, job: int, *, limit: int) -> Sequence[Bone]:
        """All its tasks, or so many of them, in whatever order: what `core.grouping` makes few groups of. A task that
        ends meanwhile is there once."""
        ...

    async def joints(self, job: int, *, limit: int) -> Sequence[Joint]:
        """All edges of its tasks, or so many of them, in whatever order."""
        ...

    async def labels(self, tasks: Sequence[int]) -> dict[int, str]:
        """What their compositions call them; those that have none are left out."""
        ...

    async def spans(self, tasks: Sequence[int]) -> dict[int, list[Span]]:
        """When each of these was executed, by the order of its claims; those that never were are left out."""
        ...

    async def hooks_of_job(self, job: int) -> JobHooks:
        """Of one that does not exist: none."""
        ...


class Schedules(Protocol):
    """What fires when. A schedule is known by its name; its id is the store's."""

    async def put_schedules(self, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
        """Make schedules or change those of the same names, in one transaction; answers in order.

        One that says what is already there changes nothing: neither cursor nor revision. A changed cadence starts from
        now; any other change keeps the cursor. What was found unreadable is taken up again. Who declared one, and
        whether it is paused, stays as it is. WrongState, and nothing is changed, when one has another revision than
        the one that is `expected`.
        """
        ...

    async def declare_schedules(self, declared_by: str, schedules: Sequence[NewSchedule]) -> list[ScheduleRecord]:
        """The schedules that the code of one app declares, in one transaction, safe from many processes at once.

        Each is put when its declaration is not the one that was last declared for that name: what an operator changed
        since then stands until the code changes. Those that the same app declared before and no longer does are
        removed. WrongState when a name belongs to another app, or was made at run time.
        """
        ...

    async def schedules(self) -> list[ScheduleRecord]:
        """All of them, by name."""
        ...

    async def get_schedule(self, name: str) -> ScheduleRecord | None: ...

    async def pause_schedule(self, name: str) -> ScheduleRecord:
        """No tick fires from now on. NotFound."""
        ...

    async def resume_schedule(self, name: str, *, expected: tuple[int, int] | None = None) -> ScheduleRecord:
        """Ticks after now fire again; those of the pause never do. NotFound. With `expected`, its id and revision as
        somebody read them: WrongState, and nothing changes, where it is another by now."""
        ...

    async def remove_schedule(self, name: str) -> bool:
        """It and the list of its runs; tasks that it has enqueued stay. False when there is none. One that code
        declares comes back with the next declaration: pause it instead."""
        ...

    async def due_schedules(self, *, limit: int = 100, without: Collection[tuple[int, int]] = ()) -> DueSchedules:
        """Those to look at now, longest due first: one look into an index, however many there are. Not those of
        `without`, by id and revision: whoever asks cannot read them, and another scheduler may. One whose task this
        version cannot read is among the answers, with its problem.
        """
        ...

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        """Carry decisions out. Each is one conditional change, all or nothing: the cursor moves from where it was read,
        the fires are enqueued (or left out, by the schedule's overlap policy and what is unfinished of its runs, both
        seen under the schedule's lock) and their runs are written, at most one for a tick.

        A firing that is void, or that fails, takes no other down; void ones leave no trace. The tasks of its fires go
        by the schedule's own template; its delay and the fire's count from the tick. A fire is left out, too, where a
        key of the task's own is held. A task that the store does not take sets its schedule aside; one that this
        version cannot read leaves it due, for others. Not answered: a tick that has a run already, and what was done
        when the connection was lost at the commit (a repeat finds it void).
        """
        ...

    async def set_schedule_aside(self, schedule: int, revision: int, problem: str) -> bool:
        """Nobody can fire it, and it is not due again until it is written anew; False when it has changed meanwhile."""
        ...

    async def run_schedule(self, name: str, *, expected: tuple[int, int] | None = None) -> ScheduleRun:
        """Enqueue its task now, whatever its policy, paused or not. A run like the others, but for `manual`. NotFound;
        WrongState when the task's own key is held. `expected` as for `resume_schedule`."""
        ...

    async def schedule_runs(self, name: str, *, limit: int = 20, before: datetime | None = None) -> list[ScheduleRun]:
        """Newest first, with what became of each. NotFound."""
        ...

    async def last_runs(self, schedules: Sequence[int], *, each: int) -> dict[int, list[ScheduleRun]]:
        """The last of each of these schedules, by their ids, newest first."""
        ...


class Queues(Protocol):
    async def pause(self, queue: str) -> None: ...

    async def resume(self, queue: str) -> None: ...

    async def limit_queue(self, queue: str, limit: int | None) -> None:
        """At most so many of its tasks run at once, over all workers, whatever their code asks for beside that; None
        lifts it. Holds for what is claimed from now on, and counts those that run already; those that waited for room
        are looked at again."""
        ...

    async def rate_queue(self, queue: str, rate: Rate | None) -> None:
        """At most so many starts of its tasks, over all workers; None lifts it. Like `limit_queue`."""
        ...

    async def queue_names(self) -> list[str]:
        """Queues that have ready tasks, were paused or have settings, sorted. One look into an index for each of them,
        however many tasks wait."""
        ...

    async def queues(self) -> list[QueueRecord]:
        """The same queues, and those of other live tasks, with their depths, counted up to a cap.

        Ready tasks are counted up to COUNTED_AT_MOST a queue and lane. Of what is scheduled, waits for something else
        or is held, the first COUNTED_AT_MOST each of the whole ledger are looked at.
        """
        ...


class Inspection(Protocol):
    """Reads. None of them returns a total, and none grows with history."""

    async def get(self, ids: Sequence[int]) -> dict[int, TaskRecord]: ...

    async def key_holders(self, keys: Sequence[Key]) -> dict[tuple[str, str], int]:
        """The tasks that hold these keys now, by scope and key; free and expired ones are left out. A hint: whoever
        must know enqueues with on_conflict="reject"."""
        ...

    async def attempts(self, task: int, *, limit: int | None = None, before: int | None = None) -> list[AttemptRecord]:
        """Its executions, by claim: all of them, or the last `limit`, of those `before` a claim."""
        ...

    async def counts(self) -> dict[str, int]:
        """Live tasks by state, each counted up to COUNTED_AT_MOST, plus the outcomes of the last 24 hours as their
        workers counted them."""
        ...

    async def ended_counts(self, *, cap: int = COUNTED_AT_MOST) -> dict[TaskState, int]:
        """How many tasks of history ended in each state, each counted up to `cap` in the index by state."""
        ...

    async def waiting_retries(self, *, cap: int = COUNTED_AT_MOST) -> int:
        """How many tasks wait for the time of their retry, among the first `cap` that wait for a time at all. What was
        put back since it failed, by an open breaker, say, is none of them."""
        ...

    async def append_logs(self, lines: Sequence[tuple[Ref, int, str, str]]) -> None:
        """(ref, seq, stream, line); a line written twice is kept once.

        Not fenced: what an attempt said is true also when its claim is not the task's any more. Such late lines are
        in `logs`, in the place of their claim; whoever follows the task and is at a later claim is not shown them."""
        ...

    async def logs(
        self,
        task: int,
        *,
        claim_no: int | None = None,
        after: int = -1,
        seen: tuple[int, int] | None = None,
        limit: int = 1000,
    ) -> list[LogLine]:
        """Lines of one claim or of all, by claim and number: those with a number above `after`, and behind `seen`, the
        (claim_no, seq) of the last line of the page before."""
        ...

    async def live_names(self, *, limit: int = COUNTED_AT_MOST) -> list[NameCount]:
        """The names of live tasks with how many there are of each, over the `limit` oldest."""
        ...

    async def gate_holders(self, key: str, *, limit: int = 10) -> list[int]:
        """Whom those wait for whose `waiting_on` is this key: the tasks in its slots, and the first in its order."""
        ...

    async def now(self) -> datetime:
        """The store's clock."""
        ...

    # Last: below this line `list` in an annotation would mean the method.
    async def list(self, criteria: TaskFilter) -> list[TaskRecord]: ...


class Checkpoints(Protocol):
    """Durable steps: a value stored once under a name, fenced by the claim of the task that stores it."""

    async def save_checkpoint(self, worker: str, ref: Ref, name: str, value: str) -> str | None:
        """The value that stands (the first one stored wins); None when the claim no longer holds."""
        ...

    async def spawn(self, worker: str, ref: Ref, name: str, task: NewTask) -> int | None:
        """Enqueue a task and store its id as the checkpoint `name`, in one transaction and once: the id that stands;
        None when the claim no longer holds. DurableError when its key is held by the very task that calls."""
        ...

    async def checkpoints(self, task: int) -> dict[str, str]: ...

    async def checkpoint(self, task: int, name: str) -> str | None:
        """One of them."""
        ...


class Events(Protocol):
    """What tasks wait for that is no task: something that happened, by name and key."""

    async def send(self, event: str, key: str, payload: str) -> int:
        """Keep an event (its id), resume the tasks that wait for it and enqueue those that subscribe to it, in one
        transaction."""
        ...

    def send_program(self, event: str, key: str, payload: str) -> Program[int]:
        """The same for a user's own transaction, without touching a task's row: `deliver` resumes them soon after the
        commit."""
        ...

    async def receive(
        self, worker: str, ref: Ref, step: str, *, event: str, key: str, timeout: float | None
    ) -> Received | None:
        """The event that the wait named `step` takes: the oldest of that name and key that was sent since the task's
        present run was enqueued and that no other wait of the task has taken. It is stored as that step's checkpoint,
        and so is a timeout, so that a later attempt gets the same answer. None: there is none yet, and the wait is
        noted, its time counted from the first call. LeaseLost when the claim no longer holds. One transaction.
        """
        ...

    async def events(
        self,
        *,
        event: str | None = None,
        key: str | None = None,
        before: tuple[datetime, int] | None = None,
        limit: int = 100,
    ) -> list[EventRecord]:
        """What was sent and is still kept, the last first; of one key of one name, where both are said. `before` is the
        (created_at, id) of the last one seen."""
        ...

    async def skim_events(
        self, event: str, *, before: tuple[datetime, int] | None = None, window: int = 1000
    ) -> EventSkim:
        """Of the next `window` events before that place, the last first, those of one name: no index has all keys of a
        name in the order of their time, so a look is bounded, says how far it came, and can be gone on with."""
        ...


class Administration(Protocol):
    """The schema can be asked for and changed on a store that is not open: it may have none yet."""

    async def upgrade(self, *, revision: str = "head") -> None: ...

    async def downgrade(self, revision: str) -> None: ...

    async def schema_revision(self) -> str | None: ...

    async def facts(self) -> StoreFacts:
        """Version, durability and size of the database, of an open store."""
        ...

    async def check(self) -> list[Violation]:
        """Read the ledger and prove its invariants; see store.checker."""
        ...


class Wakeups(Protocol):
    """Hints that there may be work: they may come twice or never, and correctness does not depend on them."""

    def listen(self, worker: str, queues: Sequence[str]) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        """Yields the name of a queue with new work, or "cancel" when something of this worker is being cancelled.
        RETRIES and a name: of that queue retries have become ready, and nothing else.
        """
        ...

    async def wake(self, queues: Iterable[str]) -> None: ...


class Store(
    TaskVerbs,
    Upkeep,
    Removal,
    Liveness,
    Jobs,
    Graphs,
    Outlines,
    Schedules,
    Queues,
    Inspection,
    Skimming,
    Relations,
    Figures,
    Checkpoints,
    Events,
    Subscriptions,
    Administration,
    Wakeups,
    Accounts,
    Live,
    Circuits,
    Protocol,
):
    """Everything. `open` connects and checks the schema (an SQLite file without one gets it); nothing else connects."""

    url: str
    dialect: str  # "sqlite" | "postgresql"

    async def open(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where tasks are that a ledger may have handed on to another."""

    here: Mapping[int, TaskRecord]
    on_their_way: Mapping[int, TaskRecord]  # taken out of this ledger; the other may have them already
    jobs_on_their_way: Mapping[int, JobRecord]
    moved_to: str | None  # the URL of the other


@runtime_checkable
class Movable(Protocol):
    """A ledger that can be moved to another database."""

    async def trace(self, ids: Sequence[int]) -> Trace:
        """In one snapshot: what is in none of the places has arrived at the other ledger, or never was."""
        ...


@runtime_checkable
class Warming(Protocol):
    """A store whose first statements are dearer than the next."""

    async def warm(self, worker: str) -> None:
        """Before the first task comes: do what they would else wait for."""
        ...


class StoreClosed(StoreError):
    """The store is not open, or not any more; nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    name: str = "headrace"  # PostgreSQL schema, SQLite table prefix
    lease: float = 30.0
    pool_size: int = 10
    migrate: bool = True  # make the schema of an empty SQLite file; PostgreSQL needs `headrace db upgrade`
    synchronous: str = "FULL"  # SQLite only
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
