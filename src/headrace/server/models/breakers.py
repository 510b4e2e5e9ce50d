"""Breakers over the wire."""

from typing import Literal

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


class BreakerChange(Shown):
    at: Instant
    act: Literal["opened", "reset", "closed"]
    by: str = Field(description="The person, or the worker")
    source: Literal["audit", "ledger"] = Field(description="audit: by hand, over the API; ledger: its last change")
    outcome: str | None = Field(description="`done`, or what went wrong; null: begun, and nobody said how it ended")


class BreakerHistory(Shown):
    items: list[BreakerChange] = Field(description="The newest first; at most 101")
    complete: bool = Field(description="False: changes that it made by itself before the last one are not kept")
