"""Enqueues per second, each durable when its call returns; no worker runs."""

from bench.comparing import Bench, ratio
from bench.parts import Measured
from bench.results import Measure, Series
from bench.stage import Stage
from bench.statistics import median
from bench.subjects import HEADRACE, HEADRACE_SQLITE, PGQUEUER, Subject

_TASKS = {"one": 4_000, "concurrent": 60_000, "bulk": 100_000}


def measure(bench: Bench) -> Measured:
    bench.begin("enqueue", bench.pairs * 10)

    def rate(subject: Subject, act: str) -> float:
        return enqueue(bench.stage, subject, act, bench.size.tasks(_TASKS[act]))

    def compare(ours: Subject, theirs: Subject, act: str) -> Measure:
        pairs = bench.pair(ours, theirs, lambda subject: rate(subject, act))
        return ratio(ours, theirs, pairs, unit="enqueues/s", wanted=bench.pairs)

    ours = HEADRACE.using("async face")
    sync = HEADRACE.using("sync face", face="sync")
    peer = PGQUEUER.using("asyncpg")
    crowd = HEADRACE.using("100 concurrent callers")
    measures = {
        "one_pgqueuer": compare(ours, peer, "one"),
        "sync_async": compare(sync, ours, "one"),
        "bulk_pgqueuer": compare(ours, peer, "bulk"),
    }
    # A hundred callers against one, in turn like everything else.
    pairs = bench.pair(crowd, ours, lambda subject: rate(subject, "concurrent" if subject is crowd else "one"))
    together = [one for one, _ in pairs]
    measures["concurrent"] = Measure(
        value=median(together) if len(pairs) >= bench.pairs else None,
        series=(Series.of(crowd.label, "enqueues/s", together),) if together else (),
    )
    measures["concurrent_one"] = ratio(crowd, ours, pairs, unit="enqueues/s", wanted=bench.pairs)
    beside: list[Series] = []
    file = HEADRACE_SQLITE.using("SQLite FULL")
    for act, words in (("one", "one at a time"), ("bulk", "bulk")):
        if figures := bench.alone(file, lambda subject, act=act: rate(subject, act)):
            beside.append(Series.of(f"headrace on SQLite FULL, {words}", "enqueues/s", figures))
    return Measured(measures=measures, beside=beside)


def enqueue(stage: Stage, subject: Subject, act: str, tasks: int) -> float:
    with stage.fresh(subject) as run:
        return run.call(act, tasks)["rate"]
