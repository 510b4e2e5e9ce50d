"""A tally and the figures of the ledger, by the names that Prometheus sees."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace.telemetry.figures import Figures
from headrace.telemetry.tally import BOUNDS, Row, Tally, seconds_of

_TASK = ("queue", "kind", "executor")
_BOUNDS = (*(f"{bound:g}" for bound in BOUNDS), "+Inf")
_LANES = ("primary", "retry", "scheduled", "waiting")


class HeadraceCollector(Collector):
    """For any registry: `REGISTRY.register(collector)`. Tally and figures are asked for at every scrape."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, tally: Callable[[], Tally], figures: Callable[[], Figures | None] = lambda: None) -> None:
        self._tally = tally
        self._figures = figures

    def describe(self) -> Iterable[Metric]:
        """The names alone, so that a registry can see a clash without asking for the numbers."""
        return list(_of_tally({}, {}))

    def collect(self) -> Iterator[Metric]:
        tally = self._tally()
        yield from _of_tally(dict(tally.rows), tally.breakers())
        figures = self._figures()
        if figures is not None:
            yield from _of_ledger(figures)

    def render(self) -> bytes:
        """The text format, of these metrics alone."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)


def _of_tally(rows: dict[tuple[str, ...], Row], breakers: Mapping[str, int]) -> Iterator[Metric]:
    by_metric: dict[str, list[tuple[tuple[str, ...], Row]]] = {}
    for (metric, *labels), row in sorted(rows.items()):
        by_metric.setdefault(metric, []).append((tuple(labels), row))

    def of(metric: str) -> list[tuple[tuple[str, ...], Row]]:
        return by_metric.get(metric, [])

    def total(metric: str, *labels: str) -> float:
        return sum(row[0] for found, row in of(metric) if found == labels)

    yield CounterMetricFamily("jobs_created", "Jobs created", value=total("job_created"))
    for state, help in (
        ("completed", "Jobs that completed"),
        ("failed", "Jobs that failed"),
        ("cancelled", "Jobs that were cancelled"),
    ):
        yield CounterMetricFamily(f"jobs_{state}", help, value=total("job", state))
    yield _histogram(
        "job_duration_seconds",
        "From the first claim of a job to its end",
        (),
        [((), row) for _, row in of("job")] or [((), [])],
    )
    yield _counter("tasks_created", "Tasks enqueued", _TASK, of("task_created"))
    tasks = [(labels[:3], labels[3], row) for labels, row in of("task")]
    ended = [(labels, row) for labels, state, row in tasks if state in ("completed", "failed")]
    for name, state, help in (
        ("completed", "completed", "Tasks that completed"),
        ("succeeded", "completed", "Tasks that completed; another name of tasks_completed_total"),
        ("cancelled", "cancelled", "Tasks that were cancelled in a worker's hands"),
    ):
        yield _counter(f"tasks_{name}", help, _TASK, [(labels, row) for labels, s, row in tasks if s == state])
    yield _counter("tasks_failed", "Tasks that failed for good", (*_TASK, "error_type"), of("failure"))
    yield _histogram("task_duration_seconds", "Seconds inside user code of the attempt that ended a task", _TASK, ended)
    yield _histogram("task_latency_seconds", "From being eligible to being started", _TASK, of("wait"))
    every = [(labels, row) for labels, _, row in tasks]
    for name, help in (
        ("task_run_seconds", "Seconds inside user code of every attempt, retried ones too"),
        ("worker_task_execution_time", "The same as task_run_seconds"),
    ):
        yield _histogram(name, help, _TASK, every)
    yield _counter("attempts_lost", "Attempts whose process died under them", _TASK, of("lost"))
    yield _counter("reports_refused", "Reports of claims that no longer held", ("reason",), of("refused"))
    states = GaugeMetricFamily(
        "breaker_state", "The worst of a service over all processes: 0 closed, 1 half open, 2 open", labels=("service",)
    )
    for service, level in sorted(breakers.items()):
        states.add_metric((service,), level)
    yield states


def _of_ledger(figures: Figures) -> Iterator[Metric]:
    depths_by_name = [
        GaugeMetricFamily(name, "Tasks that wait, up to a cap", labels=("queue", "lane"))
        for name in ("task_queue_depth", "queue_depth")
    ]
    held = GaugeMetricFamily("in_flight", "Tasks in the hands of workers, up to a cap", labels=("queue",))
    for queue, depths in sorted(figures.depths.items()):
        for depth in depths_by_name:
            for lane in _LANES:
                depth.add_metric((queue, lane), depths.get(lane, 0))
        held.add_metric((queue,), depths.get("claimed", 0) + depths.get("running", 0))
    yield from depths_by_name
    yield held
    ratios = GaugeMetricFamily("retry_ratio", "Share of the starts that retries get while both wait", labels=("queue",))
    for queue, ratio in sorted(figures.retry_ratios.items()):
        ratios.add_metric((queue,), ratio)
    yield ratios
    yield GaugeMetricFamily("dlq_depth", "Dead letters, up to a cap", value=figures.dead_letters)
    yield GaugeMetricFamily("workers_active", "Workers that beat and are not stopping", value=figures.workers)
    ages = GaugeMetricFamily("worker_heartbeat_age", "Seconds since the last heartbeat", labels=("worker",))
    for worker, age in sorted(figures.heartbeat_ages.items()):
        ages.add_metric((worker,), age)
    yield ages
    yield GaugeMetricFamily(
        "ledger_figures_age_seconds", "How old depths and workers are in this answer", value=figures.age
    )


def _counter(
    name: str, help: str, labels: Sequence[str], rows: Iterable[tuple[tuple[str, ...], Sequence[float]]]
) -> Metric:
    family = CounterMetricFamily(name, help, labels=labels)
    for values, row in rows:
        family.add_metric(values, row[0])
    return family


def _histogram(
    name: str, help: str, labels: Sequence[str], rows: Iterable[tuple[tuple[str, ...], Sequence[float]]]
) -> Metric:
    family = HistogramMetricFamily(name, help, labels=labels)
    joined: dict[tuple[str, ...], list[Sequence[float]]] = {}
    for values, row in rows:
        joined.setdefault(values, []).append(row)
    for values, group in joined.items():
        seconds, buckets = seconds_of(row for row in group if row)
        family.add_metric(values, list(zip(_BOUNDS, buckets, strict=True)), seconds)
    return family
