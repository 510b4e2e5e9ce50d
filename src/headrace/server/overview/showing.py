"""From figures to what a caller is shown."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

from headrace.client.failing import Failing, Failure
from headrace.client.searching import Looked
from headrace.core.task import QueueRecord
from headrace.server.figures import ratio_of
from headrace.server.models.counts import Count, Failures, FailureShown, SearchedShown
from headrace.server.models.overview import DepthsAt as DepthsShown
from headrace.server.models.overview import (
    Finished,
    Latency,
    LatencyAt,
    OutcomesAt,
    OutcomesOfName,
    OutcomesOfQueue,
    Percentiles,
    QueueDepths,
    QueueRates,
)
from headrace.server.models.overview import Outcomes as OutcomesShown
from headrace.server.overview.buckets import Bucket
from headrace.server.overview.looking import Counted
from headrace.server.overview.percentiles import percentiles
from headrace.server.overview.ranges import Range
from headrace.settings import Settings
from headrace.store.figures import DepthsAt

_BUSIEST = 50
OUTCOMES = ("completed", "failed", "cancelled", "rejected")
_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}


def finished(buckets: Sequence[Bucket], now: datetime, *, complete: bool) -> Finished:
    total: Counter[str] = Counter()
    queues: dict[str, Counter[str]] = {}
    names: dict[tuple[str, str], Counter[str]] = {}
    for bucket in buckets:
        total += bucket.outcomes
        for (queue, name, outcome), n in bucket.places.items():
            queues.setdefault(queue, Counter())[outcome] += n
            names.setdefault((queue, name), Counter())[outcome] += n
    seconds = max(1.0, (now - buckets[0].at).total_seconds())
    return Finished(
        complete=complete,
        series=[OutcomesAt(at=bucket.at, **_outcomes(bucket.outcomes)) for bucket in buckets],
        totals=OutcomesShown(**_outcomes(total)),
        queues=[
            OutcomesOfQueue(queue=queue, per_second=found.total() / seconds, **_outcomes(found))
            for queue, found in _busiest(queues)
        ],
        names=[OutcomesOfName(queue=queue, name=name, **_outcomes(found)) for (queue, name), found in _busiest(names)],
    )


def depth_series(found: Sequence[DepthsAt]) -> list[DepthsShown]:
    return [DepthsShown(at=each.at, depths=each.depths) for each in found]


def rates(
    queue: str, range: Range, counted: Counted, depths: Sequence[DepthsAt], *, whose: Literal["all", "own"]
) -> QueueRates:
    found = [(bucket.at, bucket.of_queue(queue)) for bucket in counted.buckets]
    total = sum((outcomes for _, outcomes in found), Counter[str]())
    since = counted.buckets[0].at
    return QueueRates(
        queue=queue,
        range=range.name,
        since=since,
        until=counted.at,
        bucket=range.bucket,
        whose=whose,
        complete=counted.complete and not any(bucket.cut for bucket in counted.buckets),
        series=[OutcomesAt(at=at, **_outcomes(outcomes)) for at, outcomes in found],
        totals=OutcomesShown(**_outcomes(total)),
        per_second=total.total() / max(1.0, (counted.at - since).total_seconds()),
        depths=depth_series(depths),
    )


def latency(buckets: Sequence[Bucket]) -> Latency:
    waiting, running = _spans(buckets)
    return Latency(
        sampled=sum(len(bucket.sample) for bucket in buckets),
        waiting=_percentiles(waiting),
        running=_percentiles(running),
        series=[_latency_at(bucket) for bucket in buckets],
    )


def failures(found: Failing) -> Failures:
    return Failures(items=[_failure(each, found.looked) for each in found.failures], searched=searched(found.looked))


def searched(looked: Looked) -> SearchedShown:
    return SearchedShown(tasks=looked.tasks, complete=looked.complete, back_to=looked.back_to)


def depths(settings: Settings, queue: QueueRecord) -> QueueDepths:
    return QueueDepths(
        name=queue.name,
        paused=queue.paused,
        depths=dict(queue.depths),
        retry_ratio=ratio_of(settings, queue.depths.get("retry", 0)),
    )


def _failure(found: Failure, looked: Looked) -> FailureShown:
    return FailureShown(
        key=found.key,
        error_class=found.error_class,
        message=found.message,
        count=Count(n=found.count, more=not looked.complete),
        names=list(found.names),
        queues=list(found.queues),
        newest_at=found.newest.at,
        oldest_at=found.oldest_at,
        example=found.newest.id,
    )


def _latency_at(bucket: Bucket) -> LatencyAt:
    waiting, running = _spans([bucket])
    return LatencyAt(
        at=bucket.at, sampled=len(bucket.sample), waiting=_percentiles(waiting), running=_percentiles(running)
    )


def _spans(buckets: Iterable[Bucket]) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    waiting: list[tuple[float, float]] = []
    running: list[tuple[float, float]] = []
    for bucket in buckets:
        for waited, ran, weight in bucket.sample:
            if waited is not None and ran is not None:
                waiting.append((waited, weight))
                running.append((ran, weight))
    return waiting, running


def _percentiles(sample: Iterable[tuple[float, float]]) -> Percentiles:
    found = percentiles(sample, tuple(_SHARES.values()))
    return Percentiles(**{name: found.get(share) for name, share in _SHARES.items()})


def _outcomes(found: Counter[str]) -> dict[str, int]:
    return {outcome: found[outcome] for outcome in OUTCOMES}


def _busiest[K](found: dict[K, Counter[str]]) -> list[tuple[K, Counter[str]]]:
    return sorted(found.items(), key=lambda each: each[1].total(), reverse=True)[:_BUSIEST]
