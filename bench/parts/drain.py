"""Finished tasks per second, and what one costs in CPU time."""

from collections.abc import Sequence

from bench import subjects
from bench.comparing import Bench, ratio
from bench.draining import Drain, drain
from bench.parts import Measured
from bench.results import Measure, Series
from bench.subjects import Subject

_PILOTS = (
    subjects.COROUTINES, subjects.CHILDREN, subjects.THREADS, subjects.SQLITE_FULL, subjects.PGQUEUERS,
    subjects.PROCRASTINATES, subjects.DRAMATIQS, subjects.CELERIES, subjects.PREFORKS, subjects.HUEYS_FULL,
    subjects.HUEYS_OFF,
)  # fmt: skip
_COMPARISONS = 8


def measure(bench: Bench) -> Measured:
    bench.begin("drain", bench.size.pilots * sum(map(len, _PILOTS)) + bench.pairs * (2 * _COMPARISONS + 1))

    def run(subject: Subject) -> Drain:
        return drain(bench.stage, subject, bench.size.tasks(subject.tasks))

    def best(candidates: Sequence[Subject]) -> Subject:
        return bench.best(candidates, run, lambda drained: drained.rate)

    def compare(ours: Subject, theirs: Subject) -> list[tuple[Drain, Drain]]:
        return bench.pair(ours, theirs, run)

    def rates(ours: Subject, theirs: Subject, pairs: Sequence[tuple[Drain, Drain]]) -> Measure:
        figures = [(one.rate, other.rate) for one, other in pairs]
        return ratio(ours, theirs, figures, unit="tasks/s", wanted=bench.pairs)

    coroutines, pgqueuer, dramatiq = map(best, (subjects.COROUTINES, subjects.PGQUEUERS, subjects.DRAMATIQS))
    pairs = compare(coroutines, pgqueuer)
    measures = {
        "postgres_pgqueuer": rates(coroutines, pgqueuer, pairs),
        "postgres_cpu": ratio(
            coroutines,
            pgqueuer,
            [(one.cpu * 1e6, other.cpu * 1e6) for one, other in pairs],
            unit="µs of CPU per task",
            wanted=bench.pairs,
        ),
    }
    # The children of headrace stand against Celery's, its threads against the threads of Dramatiq.
    sqlite = best(subjects.SQLITE_FULL)
    for name, ours, theirs in (
        ("postgres_dramatiq", coroutines, dramatiq),
        ("postgres_celery", coroutines, best(subjects.CELERIES)),
        ("postgres_procrastinate", coroutines, best(subjects.PROCRASTINATES)),
        ("sqlite_huey_full", sqlite, best(subjects.HUEYS_FULL)),
        ("sqlite_huey_off", sqlite, best(subjects.HUEYS_OFF)),
        ("children_celery", best(subjects.CHILDREN), best(subjects.PREFORKS)),
        ("threads_dramatiq", best(subjects.THREADS), dramatiq),
    ):
        measures[name] = rates(ours, theirs, compare(ours, theirs))
    beside = [
        Series.of(f"headrace on SQLite, synchronous NORMAL ({subject.configuration})", "tasks/s", figures)
        for subject in subjects.SQLITE_NORMAL
        if (figures := [each.rate for each in bench.alone(subject, run)])
    ]
    return Measured(measures=measures, beside=beside)
