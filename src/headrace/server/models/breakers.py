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
    changed_by: str | None = Field(
        description="The worker, or the person, that changed it last; null: that is for operators to know"
    )
    changed_at: Instant
    until: Instant | None = Field(description="When an open one may be probed")


class OpenRequest(Given):
    timeout: Seconds | None = Field(default=None, gt=0, description="Seconds; null: until it is reset", examples=[600])


class BreakerChange(Shown):
    at: Instant
    act: Literal["opened", "half_open", "closed", "reset"] = Field(
        description="half_open: its time was over, and it may be probed; reset: closed by hand, over the API"
    )
    by: str | None = Field(
        description="The person, or the worker, for operators to know; null: nobody, its time was over"
    )
    source: Literal["audit", "ledger"] = Field(
        description="audit: by hand, over the API; ledger: by itself, by the command line or by code"
    )
    outcome: str | None = Field(description="`done`, or what went wrong; null: begun, and nobody said how it ended")
    forced: bool = Field(description="Opened by hand, until it is reset")
    calls: int | None = Field(description="That whoever opened it had counted; null where nobody had")
    failures: int | None = Field(description="Of these calls")


class BreakerHistory(Shown):
    items: list[BreakerChange] = Field(description="The newest first; at most 300")
    complete: bool = Field(description="False: of its changes the last 100 are kept, and there were more")
