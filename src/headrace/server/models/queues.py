"""Queues over the wire."""

from pydantic import Field

from headrace.server.models.base import Given, Seconds, Shown

_MOST = 2**31 - 1


class QueueShown(Shown):
    name: str = Field(examples=["default"])
    paused: bool
    depths: dict[str, int] = Field(
        description="primary, retry, scheduled, waiting, claimed, running; each counted up to 10,001",
        examples=[{"primary": 12, "retry": 3}],
    )
    retry_ratio: float = Field(description="Share of the starts that retries get while both wait", examples=[0.3])
    limit: int | None = Field(description="Tasks at once, over all workers, as set at run time")
    rate: "RateShown | None" = Field(description="Starts in a time, as set at run time")


class RateShown(Shown):
    n: int
    per: float = Field(description="Seconds")
    burst: int | None


class QueueLimit(Given):
    n: int | None = Field(ge=1, le=_MOST, description="At most so many at once; null: no limit", examples=[5])


class QueueRate(Given):
    n: int | None = Field(ge=1, le=_MOST, description="At most so many starts; null: no limit", examples=[100])
    per: Seconds = Field(default=1.0, gt=0, description="In so many seconds")
    burst: int | None = Field(default=None, ge=1, le=_MOST, description="Of them at once, after a quiet time")
