"""The first page over the wire."""

from typing import Literal

from pydantic import Field

from headrace.server.models.base import Instant, Shown
from headrace.server.models.counts import Count, Failures


class Outcomes(Shown):
    completed: int
    failed: int
    cancelled: int
    rejected: int


class OutcomesAt(Outcomes):
    at: Instant = Field(description="The bucket begins here")


class OutcomesOfQueue(Outcomes):
    queue: str = Field(examples=["mail"])
    per_second: float = Field(description="That ended, over the range", examples=[1.67])


class OutcomesOfName(Outcomes):
    queue: str = Field(examples=["mail"])
    name: str = Field(examples=["tasks.send"])


class Finished(Shown):
    """What ended, as workers counted it by the minute."""

    complete: bool = Field(description="False: not all of the range has been read yet, or not all of one's own counted")
    series: list[OutcomesAt] = Field(description="Every bucket, oldest first")
    totals: Outcomes
    queues: list[OutcomesOfQueue] = Field(description="At most 50, the busiest first")
    names: list[OutcomesOfName] = Field(description="At most 50, the busiest first")


class Percentiles(Shown):
    """Seconds; null where nothing ended."""

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    max: float | None


class LatencyAt(Shown):
    at: Instant
    sampled: int
    waiting: Percentiles
    running: Percentiles


class Latency(Shown):
    """Of a sample: the last that completed and that failed in each bucket, weighted by how many ended in it."""

    sampled: int
    waiting: Percentiles = Field(description="From being due to the start of the last execution")
    running: Percentiles = Field(description="The last execution")
    series: list[LatencyAt] = Field(description="Every bucket, oldest first")


class DepthsAt(Shown):
    """How deep queues were; no entry where no server ran."""

    at: Instant = Field(description="The bucket begins here: its first minute of which depths are known")
    depths: dict[str, int] = Field(
        description="primary, retry, scheduled, waiting, claimed, running; those that were 0 are left out",
        examples=[{"primary": 12, "running": 3}],
    )


class QueueDepths(Shown):
    name: str = Field(examples=["mail"])
    paused: bool
    depths: dict[str, int] = Field(
        description="primary, retry, scheduled, waiting, claimed, running; 10,001 means more than 10,000",
        examples=[{"primary": 12, "retry": 3}],
    )
    retry_ratio: float = Field(description="Share of the starts that retries get while both wait", examples=[0.3])


class QueueRates(Shown):
    """What ended of one queue, as workers counted it by the minute."""

    queue: str = Field(examples=["mail"])
    range: Literal["5m", "1h", "24h", "7d"]
    since: Instant
    until: Instant = Field(description="Figures are kept for a while: when these were read")
    bucket: int = Field(description="Seconds")
    whose: Literal["all", "own"] = Field(description="own: what ended of the caller's own")
    complete: bool = Field(description="False: not all of the range has been read yet, or not all of it is counted")
    series: list[OutcomesAt] = Field(description="Every bucket, oldest first")
    totals: Outcomes
    per_second: float = Field(description="That ended, over the range", examples=[1.67])
    depths: list[DepthsAt] = Field(description="How deep it was, of everybody's tasks, oldest first")


class WorkerCounts(Shown):
    alive: int
    silent: int = Field(description="Their lease is over: others take their tasks")
    stopping: int
    hosts: int = Field(description="On which those that are alive run")


class OverviewShown(Shown):
    range: Literal["5m", "1h", "24h", "7d"]
    since: Instant
    until: Instant
    bucket: int = Field(description="Seconds")
    as_of: Instant = Field(description="Figures are kept for a while: when these were read")
    whose: Literal["all", "own"] = Field(
        description="own: what ended, latencies, failures and dead letters are the caller's own"
    )
    finished: Finished
    latency: Latency
    states: dict[str, Count] = Field(
        description="Tasks that have not ended, of everybody", examples=[{"pending": {"n": 12, "more": False}}]
    )
    queues: list[QueueDepths]
    depths_at: Instant = Field(description="When depths, states and workers were counted")
    depths: list[DepthsAt] = Field(description="How deep all queues were together, oldest first")
    workers: WorkerCounts
    dead_letters: Count
    failing: Failures = Field(description="What failed in the range, by error; at most 50 of them")
