"""Tasks over the wire."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from headrace.core.states import AttemptState, TaskState
from headrace.core.task import EdgeKind
from headrace.server.models.base import Given, Id, Instant, Json, Name, Note, Page, Seconds, Shown, When
from headrace.server.models.counts import Count, SearchedShown

MOST_TASKS = 1000  # of one batch
UNTIL = "Nothing that was created, ended or was run again later than this: as the dry run said it"

_Word = Annotated[str, StringConstraints(max_length=100_000)]
_Key = Annotated[str, StringConstraints(min_length=1, max_length=300)]


class Command(Given):
    """A program on a worker. No shell reads it."""

    argv: list[_Word] = Field(min_length=1, max_length=1000, examples=[["python", "train.py"]])
    env: dict[str, _Word] | None = Field(default=None, max_length=1000, description="Added to the worker's own")
    cwd: str | None = Field(default=None, max_length=4096)
    stdin: str | None = None


class Submission(Given):
    """A call of a registered task, or a command. Options that are left out are those of the task."""

    name: Name | None = Field(default=None, description="The task's name or alias", examples=["tasks.welcome"])
    command: Command | None = Field(default=None, description="In place of a name")
    args: list[Json] = Field(default_factory=list, max_length=1000)
    kwargs: dict[str, Json] = Field(default_factory=dict, max_length=1000, examples=[{"user_id": 7}])
    queue: Name | None = Field(default=None, examples=["mail"])
    priority: int | None = Field(default=None, ge=-(2**31), lt=2**31, description="Higher first")
    delay: Seconds | None = Field(default=None, description="Seconds from now")
    run_at: When | None = Field(default=None, description="An instant, in place of a delay")
    unique: _Key | bool | None = Field(
        default=None, description="A key that one unfinished task may hold; true: its name and arguments"
    )
    on_conflict: Literal["return", "reject", "replace"] | None = Field(
        default=None, description="What becomes of it while the key is held. To replace is for operators"
    )
    idempotency_key: _Key | None = Field(default=None, description="As the header Idempotency-Key; of this caller")
    order_key: _Key | None = Field(default=None, description="One at a time, in order, of this key")
    timeout: Seconds | None = Field(default=None, gt=0)
    soft_timeout: Seconds | None = Field(default=None, gt=0)
    max_age: Seconds | None = None
    result_ttl: Seconds | None = None
    job: Id | None = Field(default=None, description="A job that is not over")
    tags: list[Name] | None = Field(default=None, max_length=100)
    metadata: dict[str, Json] | None = Field(default=None, max_length=1000)

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.name is None) == (self.command is None):
            raise ValueError("give either the name of a task, or a command")
        if self.command is not None and (self.args or self.kwargs):
            raise ValueError("a command has argv, not args and kwargs")
        if self.delay is not None and self.run_at is not None:
            raise ValueError("give either delay or run_at")
        return self


class Batch(Given):
    """All of them are written in one transaction, or none."""

    tasks: list[Submission] = Field(min_length=1, max_length=MOST_TASKS)


class Submitted(Shown):
    id: Id
    name: str = Field(examples=["tasks.welcome"])
    queue: str = Field(examples=["default"])
    state: TaskState
    created: bool = Field(description="False: a task with this key was there already, and this is that one")


class BatchSubmitted(Shown):
    items: list[Submitted]


class TaskError(Shown):
    error_class: str | None = Field(examples=["builtins.ValueError"])
    message: str | None = Field(examples=["no such user"])


class TaskSummary(Shown):
    id: Id
    name: str = Field(examples=["tasks.welcome"])
    label: str | None = Field(description="How its composition calls it")
    kind: Literal["function", "command", "session"]
    queue: str
    lane: Literal["primary", "retry"]
    priority: int
    state: TaskState
    reason: str | None = Field(description="Why it is in its state, where the state alone does not say")
    dead_letter: bool
    attempt: int = Field(description="Executions that were charged so far")
    max_attempts: int
    run_no: int = Field(description="Rises with each retry by hand")
    worker: str | None
    job: int | None
    owner: str | None = Field(description="In whose name it runs")
    waiting_on: str | None
    created_at: Instant
    enqueued_at: Instant
    eligible_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    progress: Json = Field(description="The last that it said: value, total, message")
    error: TaskError | None
    tags: list[str]


class AttemptShown(Shown):
    claim_no: int
    run_no: int
    attempt: int | None = Field(description="Its number among the charged ones; null when it was not charged")
    state: AttemptState
    charged: bool
    worker: str | None
    executor: str | None
    claimed_at: Instant | None
    started_at: Instant | None
    finished_at: Instant | None
    error: TaskError | None
    traceback: str | None
    exit_code: int | None
    late_state: str | None = Field(description="What was reported after the claim was lost, and refused")
    late_at: Instant | None
    log_ref: str = Field(description="Its lines: logs?claim=…", examples=["logs/17/3"])


class Approval(Shown):
    status: Literal["pending", "approved", "rejected"]
    role: str | None = Field(
        description="Who decides has at least this role; null: that of an operator. One that the server does not know, "
        "as a workflow may ask for, is for admins to answer for",
        examples=["operator"],
    )
    by: str | None
    at: Instant | None
    note: str | None


class Timings(Shown):
    """Seconds, where they are known."""

    waited: float | None = Field(description="From being enqueued to the start of the last execution")
    ran: float | None = Field(description="The last execution")


class RelativeShown(Shown):
    """A task at the other end of an edge."""

    id: Id
    name: str
    label: str | None
    state: TaskState
    kind: EdgeKind = Field(description="When the upper one lets the lower one run")
    passes: bool = Field(description="The result of the upper one goes to the lower one")


class Relatives(Shown):
    items: list[RelativeShown] = Field(description="At most 100")
    more: bool


class TaskDetail(TaskSummary):
    arguments: Json = Field(description="By parameter. Secrets are taken out")
    metadata: dict[str, Json]
    losses: int
    critical: bool
    claimed_at: Instant | None
    expires_at: Instant | None
    cancelling_at: Instant | None
    result_expires_at: Instant | None
    has_result: bool
    timings: Timings
    approval: Approval | None = Field(description="Null when nobody had to approve it")
    attempts: list[AttemptShown] = Field(description="The last 200, by claim; /attempts has the others")
    more_attempts: bool
    parents: Relatives = Field(description="What it waits for, or waited for")
    children: Relatives = Field(description="What waits for it, or waited for it")
    job_name: str | None
    schedule: str | None = Field(description="The schedule that enqueued it")
    trace_id: str | None = Field(description="Of OpenTelemetry, where whoever enqueued it was traced")
    trace_url: str | None = Field(description="Where that trace is looked at, by the setting `trace_url`")
    reenqueued_from: int | None = Field(description="The task that it is a copy of")


class TaskResult(Shown):
    id: Id
    state: TaskState
    value: Json = Field(description="What it returned; null until it has completed. Secrets are taken out")
    error: TaskError | None
    expires_at: Instant | None


class LogLineShown(Shown):
    claim_no: int
    seq: int
    at: Instant
    stream: str
    line: str


class CancelAnswered(Shown):
    id: Id
    answer: Literal["cancelled", "cancelling"] = Field(description="cancelling: its worker is told to stop it")


class Retried(Shown):
    ids: list[int] = Field(description="What runs again: it, and what had been cancelled because of it")


class CancelRequest(Given):
    reason: Literal["user", "killed", "stopped"] = "user"


class ActShown(Shown):
    kind: Literal["resume_queue", "retry_task", "approve_task", "look_at_task", "reset_breaker"]
    subject: str = Field(description="The queue, the task or the service", examples=["mail"])


class ReasonShown(Shown):
    what: str = Field(examples=["its queue mail is paused"])
    mend: str | None = Field(description="On the command line", examples=["headrace queues resume mail"])
    act: ActShown | None = Field(description="The same, or a place to look at, for a button")


class ExplanationShown(Shown):
    """Why a task is where it is."""

    id: Id
    name: str
    state: str = Field(description="With its reason, where it has one", examples=["failed/timeout"])
    reasons: list[ReasonShown] = Field(description="All of them hold")


class ClearRequest(Given):
    dry_run: bool = Field(default=False, description="Only say what would run again")


class ClearedShown(Shown):
    id: Id
    name: str
    label: str | None
    state: TaskState


class Cleared(Shown):
    dry_run: bool
    count: Count
    ids: list[int] = Field(description="What runs again, or would; of a dry run the first 1,000")
    items: list[ClearedShown] = Field(description="The same, as they were before; of a dry run alone")


class Reenqueue(Given):
    """A copy of a task with what is given changed. Arguments: all of them anew by `args` and `kwargs`, those of `keep`
    from the task as they are stored; or none of the three, and all are as they were."""

    args: list[Json] | None = Field(default=None, max_length=1000)
    kwargs: dict[str, Json] | None = Field(default=None, max_length=1000, examples=[{"user_id": 8}])
    keep: list[Name] | None = Field(
        default=None, max_length=1000, description="Arguments that are taken as they were", examples=[["password"]]
    )
    command: Command | None = Field(default=None, description="Of a command, in place of arguments")
    queue: Name | None = None
    priority: int | None = Field(default=None, ge=-(2**31), lt=2**31)
    delay: Seconds | None = Field(default=None, description="Seconds from now")
    run_at: When | None = Field(default=None, description="An instant, in place of a delay")
    timeout: Seconds | None = Field(default=None, gt=0)
    soft_timeout: Seconds | None = Field(default=None, gt=0)
    max_age: Seconds | None = None
    result_ttl: Seconds | None = None
    tags: list[Name] | None = Field(default=None, max_length=100)
    metadata: dict[str, Json] | None = Field(default=None, max_length=1000)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.delay is not None and self.run_at is not None:
            raise ValueError("give either delay or run_at")
        if self.command is not None and any(given is not None for given in (self.args, self.kwargs, self.keep)):
            raise ValueError("a command has argv, not args and kwargs")
        return self


class Decision(Given):
    note: Note | None = Field(default=None, examples=["budget is fine"])


class Criteria(Given):
    """What a bulk act is about, as a list is filtered. An empty one is refused: say `all`."""

    status: list[Name] = Field(default_factory=list, max_length=20, examples=[["failed"]])
    queue: list[Name] = Field(default_factory=list, max_length=100)
    name: list[Name] = Field(default_factory=list, max_length=100, description="With * at the end: what begins so")
    error: list[Name] = Field(default_factory=list, max_length=20, examples=[["TimeoutError"]])
    tag: list[Name] = Field(default_factory=list, max_length=20)
    text: Name | None = None
    id: list[Id] = Field(default_factory=list, max_length=1000)
    job: Id | None = None
    worker: Name | None = None
    dead_letter: bool | None = None
    owner: Name | None = None
    all: bool = Field(default=False, description="Whatever there is")
    until: When | None = Field(default=None, description=UNTIL)
    limit: int | None = Field(default=None, ge=1, le=1_000_000)
    dry_run: bool = Field(default=False, description="Only count them")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        named = (self.status, self.queue, self.name, self.error, self.tag, self.id)
        narrowed = any(named) or any(
            each is not None for each in (self.text, self.job, self.worker, self.owner, self.dead_letter)
        )
        if not narrowed and not self.all:
            raise ValueError("this would be every task there is: narrow it down, or say all: true")
        return self


class BulkAnswer(Shown):
    """How many tasks had which answer; of a dry run, how many there are."""

    dry_run: bool
    count: Count = Field(description="Those that were acted on, or would be; a dry run counts up to 10,000")
    answers: dict[str, int] = Field(examples=[{"retried": 17, "refused": 0}])
    until: Instant | None = Field(description="Of a dry run: give it to the act, which then takes nothing newer")


class TaskPage(Page[TaskSummary]):
    searched: SearchedShown = Field(
        description="Filters that no index serves look at tasks one by one, for a short time: how far they came"
    )


LogPage = Page[LogLineShown]
