"""What must not grow: the cost of a claim with the backlog and with history, of a drain with dead rows, of a worker."""

import contextlib
import time
from collections.abc import Generator
from dataclasses import replace

import psycopg

from bench import claims
from bench.comparing import Bench
from bench.draining import watch
from bench.parts import Measured
from bench.processes import Crew, resident_bytes
from bench.results import Measure, Series
from bench.stage import Failed, Run, Stage
from bench.statistics import median
from bench.subjects import HEADRACE, HEADRACE_SQLITE, Subject

_LAST = 5  # cycles that count
_MOST_CYCLES = 200
_MEBIBYTE = 2**20


def measure(bench: Bench) -> Measured:
    bench.begin("growth", 6)
    measures = _buffers(bench)
    measures["held_transaction"] = _held(bench)
    for name, subject in (("memory_postgres", HEADRACE), ("memory_sqlite", HEADRACE_SQLITE)):
        measures[name] = _memory(bench, subject.using("1 process"))
    return Measured(measures=measures)


# Buffers per claim.


def _buffers(bench: Bench) -> dict[str, Measure]:
    server = bench.stage.services.postgres
    if server is None:
        return {}
    claims.count_statements(server)
    try:
        empty = bench.attempt("buffers per claim, empty store", lambda: _touched(bench.stage))
        pending = bench.attempt(
            f"buffers per claim, {bench.size.pending:,} pending",
            lambda: _touched(bench.stage, pending=bench.size.pending),
        )
        finished = bench.attempt(
            f"buffers per claim, {bench.size.finished:,} finished",
            lambda: _touched(bench.stage, finished=bench.size.finished),
        )
    finally:
        claims.stop_counting(server)

    def against_empty(found: float | None, words: str) -> Measure:
        series = [(words, found), ("nothing but what is claimed", empty)]
        return Measure(
            value=found / empty if found and empty else None,
            series=tuple(Series.of(label, "pages per claim of 100", [value]) for label, value in series if value),
        )

    return {
        "buffers_pending": against_empty(pending, f"{bench.size.pending:,} pending"),
        "buffers_finished": against_empty(finished, f"{bench.size.finished:,} finished"),
    }


def _touched(stage: Stage, *, pending: int = 0, finished: int = 0) -> float:
    """Empty is a store with nothing but what is claimed: a claim of nothing has no cost to compare."""
    with stage.fresh(HEADRACE) as run:
        if finished:
            first = min(finished, 2_000)
            run.call("load", first)
            with run.crew() as crew:
                watch(run, crew, first)
            claims.multiply_history(run.url, finished)
        run.call("load", max(pending, claims.TASKS), timeout=1200)
        run.settle_store()
        return claims.buffers_per_claim(run.url)


# A drain while an old transaction keeps every dead row.


def _held(bench: Bench) -> Measure:
    found = bench.attempt("drain while an old transaction is held", lambda: _around_a_transaction(bench))
    if found is None:
        return Measure(value=None)
    held, clean = found
    now, then = median(held), median(clean)
    assert now is not None
    assert then is not None
    return Measure(
        value=now / then,
        series=(
            Series.of(f"headrace, a transaction held for {bench.size.held:g} s", "tasks/s", held),
            Series.of("headrace, none held", "tasks/s", clean),
        ),
        remark=(
            f"cycles of {bench.size.cycle:,} tasks by one worker that stays; the last {_LAST} against as many before it"
            ", or after its end and a vacuum, whichever were faster"
        ),
    )


def _around_a_transaction(bench: Bench) -> tuple[list[float], list[float]]:
    """Rates at the end of a held transaction, and without it: before, or afterwards with as much history, vacuumed."""
    with bench.stage.fresh(HEADRACE.using("2 processes", processes=2)) as run, run.crew() as crew:

        def cycle() -> float:
            return _cycle(run, crew, bench.size.cycle)

        cycle()  # everyone's start, which counts for neither
        before = [cycle() for _ in range(_LAST)]
        held: list[float] = []
        with _old_transaction(run.url):
            begun = time.monotonic()
            while len(held) < _LAST or (time.monotonic() - begun < bench.size.held and len(held) < _MOST_CYCLES):
                held.append(cycle())
        run.settle_store()
        after = [cycle() for _ in range(_LAST)]
    return held[-_LAST:], max(before, after, key=lambda rates: median(rates) or 0.0)


def _cycle(run: Run, crew: Crew, tasks: int) -> float:
    """Fill while the queue is paused, then let the workers drain."""
    before = run.started()
    # All that was there has ended. Asked for those of this cycle alone: a count of the whole table would read each row
    # that an old transaction keeps, and be a part of what it measures.
    newest = run.ask("SELECT coalesce(max(id), 0) FROM headrace.history")
    subject = replace(run.subject, unfinished=f"SELECT count(*) FROM headrace.tasks WHERE id > {newest}")
    run.call("refill", tasks)
    return watch(replace(run, subject=subject), crew, tasks, before=before).rate


@contextlib.contextmanager
def _old_transaction(url: str) -> Generator[None]:
    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT txid_current(), count(*) FROM headrace.queues")
        yield
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
            raise Failed("the old transaction ended before the measure did")
        connection.rollback()


# Memory.


def _memory(bench: Bench, subject: Subject) -> Measure:
    few, many = bench.size.memory

    def run() -> tuple[float, float]:
        with bench.stage.fresh(subject) as run, run.crew() as crew:
            after_few = _after(run, crew, few)
            return after_few, _after(run, crew, many)

    found = bench.attempt(f"memory of a worker on {subject.store}", run)
    if found is None:
        return Measure(value=None)
    labels = (f"after {few:,} tasks", f"after {many:,} tasks")
    return Measure(
        value=found[1] / found[0],
        series=tuple(
            Series.of(label, "MiB", [size / _MEBIBYTE])
            for label, size in zip(reversed(labels), reversed(found), strict=True)
        ),
        remark="of the supervisor and its processes, not shared with others",
    )


def _after(run: Run, crew: Crew, total: int) -> float:
    """Memory when so many tasks have run in all, and nothing waits."""
    while (done := run.started()) < total:
        target = min(total, done + 50_000)
        run.call("load", target - done)
        run.wait_until(lambda target=target: run.started() >= target, f"{total} executions", crew)
        run.wait_until(lambda: run.unfinished() == 0, "nothing unfinished", crew)
    time.sleep(1.0)  # what a worker frees after its last task is not measured as held
    return float(resident_bytes(crew.pids))
