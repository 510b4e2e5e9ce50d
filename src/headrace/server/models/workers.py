"""Workers over the wire."""

from typing import Any, Literal

from pydantic import Field

from headrace.core.task import WorkerRecord
from headrace.server.models.base import Instant, Shown
from headrace.server.models.counts import Count
from headrace.server.models.tasks import TaskSummary


class WorkerShown(Shown):
    id: str
    kind: str
    hostname: str
    pid: int
    state: Literal["active", "idle", "stopping", "stopped"]
    lease: float = Field(description="Seconds without a heartbeat after which others rescue its tasks")
    queues: list[str]
    version: str
    started_at: Instant
    last_heartbeat: Instant
    stopped_at: Instant | None
    tasks_completed: int
    tasks_failed: int
    alive: bool = Field(description="It has not stopped, and its lease is not over")
    heartbeat_age: float = Field(description="Seconds since its last heartbeat, by the clock of the ledger")
    holds: Count = Field(description="Tasks that it has claimed or runs")

    @staticmethod
    def told(worker: WorkerRecord) -> dict[str, Any]:
        """What its row says."""
        return {name: getattr(worker, name) for name in WorkerShown.model_fields if hasattr(worker, name)}


class WorkerDetail(WorkerShown):
    holding: list[TaskSummary] = Field(description="The newest of what it holds; at most 100")
