"""A job as a picture: its tasks and what waits for what."""

from dataclasses import dataclass
from datetime import datetime

from headrace.core.payload import loads
from headrace.core.states import TaskState
from headrace.core.task import Edge, EdgeKind, JobRecord, TaskRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A task of the job. `name` is its label where it has one, `task` the name of what runs."""

    id: int
    name: str
    task: str
    state: TaskState
    reason: str | None
    critical: bool
    attempts: int  # charged executions
    queue: str
    waiting_on: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None  # "ValueError: no such user"
    progress: str | None

    @property
    def took(self) -> float | None:
        """Seconds of its last execution; None unless that has ended."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """`task` waits for `upstream`."""

    task: int
    upstream: int
    kind: EdgeKind
    passes: bool  # its result


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGraph:
    """Nodes by id, which is an order in which each comes after those it waits for. `complete` is False where the job
    has more tasks than were asked for; edges lead to nodes of the picture."""

    job: JobRecord
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    complete: bool


def node_of(record: TaskRecord) -> GraphNode:
    label = loads(record.options).get("label") if '"label"' in record.options else None
    error = None
    if record.error_class or record.error_message:
        error = f"{(record.error_class or 'error').rpartition('.')[2]}: {record.error_message or 'no message'}"
    return GraphNode(
        id=record.id,
        name=label or record.name,
        task=record.name,
        state=record.state,
        reason=record.reason,
        critical=record.critical,
        attempts=record.attempt,
        queue=record.queue,
        waiting_on=record.waiting_on,
        created_at=record.created_at,
        started_at=record.started_at,
        finished_at=record.finished_at,
        error=error,
        progress=record.progress,
    )


def edge_of(edge: Edge) -> GraphEdge:
    return GraphEdge(task=edge.task, upstream=edge.upstream, kind=edge.kind, passes=edge.input is not None)
