"""Jobs over the wire."""

from typing import Literal, Self

from pydantic import Field, model_validator

from headrace.core.states import AttemptState, JobState, TaskState
from headrace.core.task import EdgeKind
from headrace.server.models.base import Given, Id, Instant, Json, Name, Note, Page, Seconds, Shown
from headrace.server.models.tasks import Command

MOST_NODES = 1000  # of one request


class NewNode(Given):
    """A task of a job. In `args` and `kwargs`, `{"$result": "key"}` stands for what the task of that key returns."""

    key: Name | None = Field(default=None, description="By which later ones name it", examples=["load"])
    name: Name | None = Field(default=None, description="The task's name or alias", examples=["tasks.load"])
    command: Command | None = Field(default=None, description="In place of a name")
    args: list[Json] = Field(default_factory=list, max_length=1000)
    kwargs: dict[str, Json] = Field(default_factory=dict, max_length=1000)
    after: list[Name] = Field(default_factory=list, max_length=MOST_NODES, description="Keys of earlier tasks")
    kind: Literal["on_success", "on_done", "on_failure"] = Field(
        default="on_success", description="When those of `after` let it run"
    )
    queue: Name | None = None
    priority: int | None = Field(default=None, ge=-(2**31), lt=2**31)
    critical: bool | None = Field(default=None, description="Whether its failure fails the job")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.name is None) == (self.command is None):
            raise ValueError("give either the name of a task, or a command")
        if self.command is not None and (self.args or self.kwargs):
            raise ValueError("a command has argv, not args and kwargs")
        return self


class NewJobRequest(Given):
    """A job and its tasks, in an order in which each comes after those it waits for. One transaction."""

    name: Name = Field(examples=["nightly"])
    description: Note | None = None
    tasks: list[NewNode] = Field(min_length=1, max_length=MOST_NODES)
    timeout: Seconds | None = Field(default=None, gt=0, description="Seconds until it fails; left out: the setting")
    metadata: dict[str, Json] = Field(default_factory=dict, max_length=1000)


class MoreTasks(Given):
    """Tasks for a job that is not over."""

    tasks: list[NewNode] = Field(min_length=1, max_length=MOST_NODES)
    after: list[Id] = Field(
        default_factory=list, max_length=MOST_NODES, description="Ids of tasks of this job that all of them wait for"
    )


class JobShown(Shown):
    id: Id
    name: str
    description: str | None
    state: JobState
    reason: str | None
    run_no: int
    owner: str | None
    created_at: Instant
    started_at: Instant | None
    completed_at: Instant | None
    deadline_at: Instant | None
    total: int
    completed: int
    failed: int
    cancelled: int
    running: int
    open: int = Field(description="Tasks that have not ended")
    metadata: Json


class HookShown(Shown):
    """A task that a job enqueues when it ends."""

    task: str = Field(description="The name of the task", examples=["tasks.notify"])
    status: Literal["waiting", "enqueued", "passed_over"] = Field(
        description="waiting: the job is not over; passed_over: this run of it ended in the other way"
    )


class HooksShown(Shown):
    on_success: HookShown | None = Field(description="When it completes")
    on_failure: HookShown | None = Field(description="When it fails, or is cancelled")


class JobDetail(JobShown):
    hooks: HooksShown = Field(description="What its end enqueues; of its present run")


class NodeShown(Shown):
    id: Id
    name: str
    task: str
    state: TaskState
    reason: str | None
    critical: bool
    attempts: int
    queue: str
    waiting_on: str | None
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    took: float | None = Field(description="Seconds of its last execution")
    error: str | None
    progress: Json


class EdgeShown(Shown):
    task: Id
    upstream: Id
    kind: EdgeKind
    passes: bool = Field(description="Its result")


class GraphShown(Shown):
    job: JobShown
    nodes: list[NodeShown]
    edges: list[EdgeShown]
    complete: bool = Field(description="False: the job has more tasks than were asked for")


class Took(Shown):
    """Seconds of the last executions that have ended."""

    n: int
    mean: float | None
    max: float | None


class GroupShown(Shown):
    """Tasks of the same name that wait for the same."""

    id: str = Field(description="By its first task: holds also when tasks are added to the job", examples=["g17"])
    task: str | None = Field(description="The name of what runs; null where several were put together")
    label: str | None = Field(description="Of one that is alone, what its composition calls it")
    level: int = Field(description="From 0: behind the longest way to it")
    count: int
    states: dict[str, int] = Field(examples=[{"completed": 90, "running": 10}])
    started_at: Instant | None = Field(description="Of the first of them")
    finished_at: Instant | None = Field(description="Of the last, where all have ended")
    took: Took
    first: Id = Field(description="The first of them by id")
    failed: int | None = Field(description="One of them that failed")
    error: str | None = Field(description="Of that one")


class GroupEdgeShown(Shown):
    group: str
    upstream: str = Field(description="What it waits for")
    kind: EdgeKind
    count: int = Field(description="Edges between their tasks")


class GroupsShown(Shown):
    job: JobShown
    groups: list[GroupShown] = Field(description="Each after those that it waits for; at most 2,000")
    edges: list[GroupEdgeShown]
    merged: bool = Field(description="There were more groups: neighbouring levels were put together")
    complete: bool = Field(description="False: the job has more tasks than are looked at, 250,000")
    as_of: Instant = Field(description="Figures are kept for a moment: when these were read")


class SpanShown(Shown):
    claim_no: int
    state: AttemptState
    charged: bool
    worker: str | None
    started_at: Instant | None
    finished_at: Instant | None


class GanttRow(Shown):
    id: Id
    name: str = Field(description="Its label where it has one")
    task: str
    group: str
    level: int
    state: TaskState
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    attempts: list[SpanShown] = Field(description="Every execution, by the order of its claims")


class GanttPage(Page[GanttRow]):
    since: Instant = Field(description="When the job began, or was made")
    until: Instant = Field(description="When it ended, or now")


class JobEventShown(Shown):
    seq: int = Field(description="From 0, without gaps")
    at: Instant
    state: JobState
    total: int
    completed: int
    failed: int
    cancelled: int


class JobLineShown(Shown):
    seq: int = Field(description="From 0, without gaps, over all its tasks")
    task: Id
    claim_no: int
    at: Instant
    stream: str
    line: str


class Ids(Shown):
    ids: list[int]


class JobPage(Page[JobShown]):
    complete: bool = Field(
        description="False: the time for one look by name was over before the page was full; `next` goes on from there"
    )


NodePage = Page[NodeShown]
JobEventPage = Page[JobEventShown]
JobLinePage = Page[JobLineShown]
