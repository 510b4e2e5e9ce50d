"""Pickup: from the enqueue call to the first line of the function, one task at a time on an idle system."""

from dataclasses import dataclass

from bench import record
from bench.comparing import Bench, ratio
from bench.parts import Measured
from bench.results import Measure, Series
from bench.stage import Run, Stage
from bench.statistics import median, percentile
from bench.subjects import HEADRACE, HEADRACE_SQLITE, PICKUP_PEERS, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Pickup:
    """Milliseconds."""

    p50: float
    p99: float


def measure(bench: Bench) -> Measured:
    bench.begin("latency", bench.pairs * (2 * len(PICKUP_PEERS) + 2))
    ours = HEADRACE.using("1 process")

    def run(subject: Subject) -> Pickup:
        return pickup(bench.stage, subject, bench.size.samples)

    found: list[Measure] = []
    own: list[Pickup] = []
    beside: list[Series] = []
    for peer in PICKUP_PEERS:
        pairs = bench.pair(ours, peer, run)
        own += [one for one, _ in pairs]
        figures = [(one.p50, other.p50) for one, other in pairs]
        found.append(ratio(ours, peer, figures, unit="ms p50", wanted=bench.pairs))
        if pairs:
            beside.append(Series.of(f"pickup p50, {peer.label}", "ms", [other.p50 for _, other in pairs]))
            beside.append(Series.of(f"pickup p99, {peer.label}", "ms", [other.p99 for _, other in pairs]))
    measures = {"postgres_pickup": _hardest(found)}
    tails = [each.p99 / each.p50 for each in own]
    measures["postgres_tail"] = Measure(
        value=median(tails),
        series=(
            Series.of(ours.label, "ms p50", [each.p50 for each in own]),
            Series.of(ours.label, "ms p99", [each.p99 for each in own]),
        )
        if own
        else (),
    )
    across = HEADRACE_SQLITE.using("SQLite FULL, client and worker apart")
    inside = HEADRACE_SQLITE.using("SQLite FULL, enqueued inside `headrace up`", command="up")
    measures["sqlite_across"] = _alone(across, bench.alone(across, run))
    measures["sqlite_inside"] = _alone(
        inside, bench.alone(inside, lambda subject: pickup_inside(bench.stage, subject, bench.size.samples))
    )
    return Measured(measures=measures, beside=beside)


def pickup(stage: Stage, subject: Subject, samples: int) -> Pickup:
    with stage.fresh(subject) as run, run.crew():
        warm = run.call("pickup", samples)["warm"]
        return _read(run, warm)


def pickup_inside(stage: Stage, subject: Subject, samples: int) -> Pickup:
    """A task of the worker enqueues the others: what a server in the same command would see."""
    warm = 5
    with stage.fresh(subject) as run, run.crew() as crew:
        run.call("start_pickups", warm + samples)
        run.wait_until(lambda: run.started() >= warm + samples, f"{samples} pickups", crew)
        return _read(run, warm)


def _read(run: Run, warm: int) -> Pickup:
    waits = [(started - sent) * 1000 for sent, started in record.read(run.record, after=warm)]
    return Pickup(p50=percentile(waits, 0.5), p99=percentile(waits, 0.99))


def _hardest(found: list[Measure]) -> Measure:
    """Against the fastest peer: the one with the highest ratio, when all of them were measured."""
    known = [each for each in found if each.value is not None]
    return max(known, key=lambda each: each.value or 0.0) if known else Measure(value=None)


def _alone(subject: Subject, runs: list[Pickup]) -> Measure:
    if not runs:
        return Measure(value=None)
    return Measure(
        value=median([each.p50 for each in runs]),
        series=(
            Series.of(subject.label, "ms p50", [each.p50 for each in runs]),
            Series.of(subject.label, "ms p99", [each.p99 for each in runs]),
        ),
    )
