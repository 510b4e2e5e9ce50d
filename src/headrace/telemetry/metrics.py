"""Prometheus metrics: counters and durations from the bus, depths and workers from the ledger."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from headrace.telemetry.events import (
    Bus,
    Event,
    JobEnded,
    JobsCreated,
    ReportRefused,
    Rescued,
    TaskClaimed,
    TaskFinished,
    TasksCreated,
)

_TASK = ("queue", "kind", "executor")
_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a scrape reads from the ledger."""

    depths: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])  # queue → lane → n
    workers: Mapping[str, int] = field(default_factory=dict[str, int])  # state → n
    heartbeat_ages: Mapping[str, float] = field(default_factory=dict[str, float])  # worker → seconds


class Metrics:
    """`Metrics(registry).attach(bus)`; `show` before a scrape, then `render`."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        r = self.registry
        self._jobs_created = Counter("jobs_created_total", "Jobs created", registry=r)
        self._jobs_completed = Counter("jobs_completed_total", "Jobs that completed", registry=r)
        self._jobs_failed = Counter("jobs_failed_total", "Jobs that failed", registry=r)
        self._job_duration = Histogram(
            "job_duration_seconds", "From the start of a job to its end", buckets=_SECONDS, registry=r
        )
        self._created = Counter("tasks_created_total", "Tasks enqueued", ("queue", "kind"), registry=r)
        self._completed = Counter("tasks_completed_total", "Tasks that completed", _TASK, registry=r)
        self._failed = Counter("tasks_failed_total", "Tasks that failed for good", _TASK, registry=r)
        self._duration = Histogram(
            "task_duration_seconds", "Seconds inside user code of finished tasks", _TASK, buckets=_SECONDS, registry=r
        )
        self._latency = Histogram(
            "task_latency_seconds", "From being eligible to being claimed", ("queue",), buckets=_SECONDS, registry=r
        )
        self._depth = Gauge("task_queue_depth", "Tasks that wait", ("queue", "lane"), registry=r)
        self._workers = Gauge("workers_active", "Workers by state", ("state",), registry=r)
        self._execution = Histogram(
            "worker_task_execution_time", "Seconds inside user code of every attempt", buckets=_SECONDS, registry=r
        )
        self._heartbeat = Gauge("worker_heartbeat_age", "Seconds since the last heartbeat", ("worker",), registry=r)
        self._lost = Counter("attempts_lost_total", "Attempts whose process died under them", registry=r)
        self._refused = Counter(
            "reports_refused_total", "Reports of claims that no longer held", ("reason",), registry=r
        )

    def attach(self, bus: Bus) -> "Metrics":
        bus.subscribe(self.observe)
        return self

    def observe(self, event: Event) -> None:
        match event:
            case TaskFinished():
                self._task_finished(event)
            case TaskClaimed():
                self._latency.labels(event.queue).observe(max(0.0, event.waited))
            case ReportRefused():
                self._refused.labels(event.act).inc()
            case Rescued():
                self._lost.inc(event.charged)
            case TasksCreated():
                self._created.labels(event.queue, event.kind).inc(event.count)
            case JobsCreated():
                self._jobs_created.inc(event.count)
            case JobEnded():
                (self._jobs_completed if event.state == "completed" else self._jobs_failed).inc()
                if event.took is not None:
                    self._job_duration.observe(event.took)
            case _:
                pass

    def _task_finished(self, event: TaskFinished) -> None:
        labels = (event.queue, event.kind, event.executor)
        if event.ran_for is not None:
            self._execution.observe(event.ran_for)
        if event.state == "completed":
            self._completed.labels(*labels).inc()
        elif event.state == "failed":
            self._failed.labels(*labels).inc()
        if event.state in ("completed", "failed") and event.ran_for is not None:
            self._duration.labels(*labels).observe(event.ran_for)

    def show(self, snapshot: Snapshot) -> None:
        """Replace the gauges by what the ledger says now; what is gone is no longer shown."""
        _replace(self._depth, (((q, lane), n) for q, lanes in snapshot.depths.items() for lane, n in lanes.items()))
        _replace(self._workers, (((state,), n) for state, n in snapshot.workers.items()))
        _replace(self._heartbeat, (((worker,), age) for worker, age in snapshot.heartbeat_ages.items()))

    def render(self) -> bytes:
        """The text format of Prometheus."""
        return generate_latest(self.registry)


def _replace(gauge: Gauge, values: Iterable[tuple[tuple[str, ...], float]]) -> None:
    gauge.clear()
    for labels, value in values:
        gauge.labels(*labels).set(value)
