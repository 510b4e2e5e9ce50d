"""Breakers over the wire."""

from pydantic import Field

from headrace.core.breaker import BreakerStatus
from headrace.server.models.base import Given, Instant, Seconds, Shown


class BreakerShown(Shown):
    service: str = Field(examples=["mail"])
    status: BreakerStatus
    revision: int
    forced: bool = Field(description="Opened by hand: stays open until it is reset")
    calls: int
    failures: int
    changed_by: str = Field(description="The worker, or the person, that changed it last")
    changed_at: Instant
    until: Instant | None = Field(description="When an open one may be probed")


class OpenRequest(Given):
    timeout: Seconds | None = Field(default=None, gt=0, description="Seconds; null: until it is reset", examples=[600])
