"""Graphs: time in step with their size, memory that is not, nobody kept waiting; and a map over a table."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench import record
from bench.comparing import Bench, ratio
from bench.parts import Measured
from bench.processes import Crew, resident_bytes
from bench.results import Measure, Series
from bench.stage import Failed, Run, Stage
from bench.statistics import median
from bench.subjects import HEADRACE, HEADRACE_SQLITE, Subject

# By the numbers that the adapter knows them by; at full size.
_SHAPES = {"fan": (0, 100_000), "chain": (1, 10_000), "grid": (2, 90_000)}
_PAIRS, _FLAT = 3, 4
_FINISHED = 50_000  # tasks of the runs that compare a finish with dependents and one without
_ROWS = 10_000_000
_CEILING = 1200.0
_LOOK = 0.2  # seconds between two looks at a worker's memory
_MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """One graph, from nothing to done."""

    tasks: int
    build: float  # seconds
    drain: float
    client: float  # MiB at the peak
    growth: float  # MiB that building it added
    worker: float
    wait_build: float  # seconds, of the slowest enqueue beside it
    wait_drain: float

    @property
    def seconds(self) -> float:
        return self.build + self.drain


def measure(bench: Bench) -> Measured:
    bench.begin("workflows", 2 * bench.pairs * (2 * len(_SHAPES) + 4) + 2 * bench.pairs)
    measures: dict[str, Measure] = {}
    beside: list[Series] = []
    for subject in (_graphs(HEADRACE), _graphs(HEADRACE_SQLITE)):
        whole: list[Worked] = []
        half: list[Worked] = []
        for shape in _SHAPES:
            pairs = _sizes(bench, subject, shape)
            measures[f"{subject.store}_{shape}"] = _linear(pairs, bench.pairs)
            whole += [one for one, _ in pairs]
            half += [other for _, other in pairs]
            beside += _rates(subject, shape, [one for one, _ in pairs])
        enough = len(whole) >= bench.pairs * len(_SHAPES)
        both = list(zip(whole, half, strict=True))
        clients, workers = [(w.client, h.client) for w, h in both], [(w.worker, h.worker) for w, h in both]
        measures[f"{subject.store}_client"] = _flat("client", clients, enough)
        measures[f"{subject.store}_worker"] = _flat("worker", workers, enough)
        measures[f"{subject.store}_wait"] = _slowest("while they ran", [each.wait_drain for each in whole], enough)
        written = _slowest("while they were written", [each.wait_build for each in whole], enough)
        if subject.store == "sqlite":
            # One writer at a time, and a graph is one transaction: nothing can be required of this.
            beside += [replace(each, label=f"SQLite: {each.label}") for each in written.series]
        else:
            measures[f"{subject.store}_wait_build"] = written
        measures[f"{subject.store}_finish"] = _finishing(bench, subject)
    measures["map"] = _map(bench)
    return Measured(measures=measures, beside=beside)


def _graphs(subject: Subject) -> Subject:
    """Only tasks of jobs count: those of the probe stay where they are."""
    schema = "headrace." if subject.store == "postgres" else "headrace_"
    return replace(
        subject.using(f"{subject.store}, 1 process"),
        adapter="workflows",
        unfinished=f"SELECT count(*) FROM {schema}tasks WHERE job IS NOT NULL",
        finished=f"SELECT count(*) FROM {schema}history WHERE job IS NOT NULL AND state = 'completed'",
    )


# One graph.


def work(stage: Stage, subject: Subject, shape: int, tasks: int, *, probed: bool = True) -> Worked:
    """Build it, then let a worker that is started for it run it; somebody else enqueues a task every 50 ms."""
    with stage.fresh(subject) as run:
        with run.beside("probe", wanted=probed) as probe:
            built = run.call("build", shape, tasks, timeout=_CEILING)
            wait_build = probe()
        made = run.unfinished()
        run.settle_store()
        with run.beside("probe", wanted=probed) as probe, run.crew() as crew:
            seconds, peak = _drain(run, crew, made)
            wait_drain = probe()
        done = run.finished()
        if done != made:
            raise Failed(f"{subject.label}: {done} of {made} tasks are completed in the store")
    return Worked(
        tasks=made, build=built["seconds"], drain=seconds, client=built["peak"], growth=built["growth"], worker=peak,
        wait_build=wait_build["slowest"], wait_drain=wait_drain["slowest"],
    )  # fmt: skip


def _drain(run: Run, crew: Crew, tasks: int) -> tuple[float, float]:
    """Seconds from the first start to the last end, and the most memory that the worker held, in MiB."""
    peak, looked = 0.0, 0.0

    def all_started() -> bool:
        nonlocal peak, looked
        if time.monotonic() - looked > _LOOK:
            looked = time.monotonic()
            peak = max(peak, resident_bytes(crew.pids) / _MEBIBYTE)
        return run.started() >= tasks

    run.wait_until(lambda: run.started() > 0, "the first execution", crew, 60.0)
    run.wait_until(all_started, f"{tasks} executions", crew, _CEILING)
    run.wait_until(lambda: run.unfinished() == 0, "nothing unfinished in the store", crew, _CEILING)
    ended = time.time()
    peak = max(peak, resident_bytes(crew.pids) / _MEBIBYTE)
    return ended - min(started for _, started in record.read(run.record)), peak


def _sizes(bench: Bench, subject: Subject, shape: str) -> list[tuple[Worked, Worked]]:
    number, full = _SHAPES[shape]
    tasks = bench.size.tasks(full)
    whole = subject.using(f"{subject.store}, {shape} of {tasks:,}", size=tasks)
    half = subject.using(f"{subject.store}, {shape} of {tasks // 2:,}", size=tasks // 2)
    return bench.pair(whole, half, lambda each: work(bench.stage, each, number, each.options["size"]))


def _linear(pairs: Sequence[tuple[Worked, Worked]], wanted: int) -> Measure:
    """Twice the tasks against half of them. A grid has a whole side: what is compared is twice its exact ratio."""
    figures = [(one.seconds / one.tasks * 2, other.seconds / other.tasks) for one, other in pairs]
    series: tuple[Series, ...] = ()
    if pairs:
        one, other = pairs[0]
        series = (
            Series.of(f"headrace ({one.tasks:,} tasks)", "s", [each.seconds for each, _ in pairs]),
            Series.of(f"{other.tasks:,} tasks", "s", [each.seconds for _, each in pairs]),
        )
    value = median([a / b for a, b in figures]) if len(pairs) >= wanted else None
    return Measure(value=value, series=series)


def _rates(subject: Subject, shape: str, runs: Sequence[Worked]) -> list[Series]:
    if not runs:
        return []
    words = f"{shape} of {runs[0].tasks:,} on {subject.store}"
    return [
        Series.of(f"{words}, written", "tasks/s", [each.tasks / each.build for each in runs]),
        Series.of(f"{words}, run", "tasks/s", [each.tasks / each.drain for each in runs]),
        Series.of(f"{words}, memory that writing it added to the client", "MiB", [each.growth for each in runs]),
    ]


def _flat(who: str, pairs: Sequence[tuple[float, float]], enough: bool) -> Measure:
    """The most that a run of the whole size took, against half of it; of all shapes together."""
    if not pairs:
        return Measure(value=None)
    return Measure(
        value=median([one / other for one, other in pairs]) if enough else None,
        series=(
            Series.of(f"{who}, whole size", "MiB", [one for one, _ in pairs]),
            Series.of("half of it", "MiB", [other for _, other in pairs]),
        ),
    )


def _slowest(when: str, waits: Sequence[float], enough: bool) -> Measure:
    if not waits:
        return Measure(value=None)
    return Measure(
        value=max(waits) * 1000 if enough else None,
        series=(Series.of(f"slowest enqueue of another client {when}", "ms", [wait * 1000 for wait in waits]),),
    )


# A finish with dependents against one without.


def _finishing(bench: Bench, subject: Subject) -> Measure:
    tasks = bench.size.tasks(_FINISHED)
    flat = subject.using("no edges", shape=_FLAT)
    found: list[Measure] = []

    def run(each: Subject) -> float:
        return work(bench.stage, each, each.options["shape"], tasks, probed=False).drain

    for shape, words in ((0, "all wait for one, and one for all"), (_PAIRS, "pairs")):
        graph = subject.using(words, shape=shape)
        pairs = [(one * 1e6 / tasks, other * 1e6 / tasks) for one, other in bench.pair(graph, flat, run)]
        found.append(ratio(graph, flat, pairs, unit="µs per task", wanted=bench.pairs))
    known = [each for each in found if each.value is not None]
    return max(known, key=lambda each: each.value or 0.0) if len(known) == len(found) else Measure(value=None)


# A map over a table.


def _map(bench: Bench) -> Measure:
    size = len(os.sched_getaffinity(0))
    rows = max(100_000, int(_ROWS * bench.size.share))
    tables = replace(HEADRACE_SQLITE, adapter="tables", finished=None)
    ours = tables.using(f"map, {size} children", children=size)
    pool = tables.using(f"multiprocessing, {size} processes", pool=True)

    def run(subject: Subject) -> float:
        with bench.stage.fresh(subject) as run:
            run.call("make", rows, timeout=_CEILING)
            if subject.options.get("pool"):
                answer = run.call("pooled", size, timeout=_CEILING)
            else:
                with run.crew() as crew:
                    run.wait_until(lambda: _is_up(run), "a worker", crew, 60.0)
                    answer = run.call("mapped", timeout=_CEILING)
            if answer["rows"] != rows or not 0.5 < answer["sum"] / rows < 1.0:
                raise Failed(f"{subject.label}: a wrong answer: {answer}")
            return rows / answer["seconds"]

    pairs = bench.pair(ours, pool, run)
    found = ratio(ours, replace(pool, name="PyArrow"), pairs, unit="rows/s", wanted=bench.pairs)
    return replace(found, remark=f"{rows:,} rows, chunks of 100,000, read from Parquet and written to it on both sides")


def _is_up(run: Run) -> bool:
    return run.ask("SELECT count(*) FROM headrace_workers WHERE state IN ('active', 'idle')") > 0
