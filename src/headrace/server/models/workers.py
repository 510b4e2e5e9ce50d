"""Workers over the wire."""

from typing import Literal

from pydantic import Field

from headrace.server.models.base import Instant, Shown


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
