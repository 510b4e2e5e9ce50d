"""Interleaving: who runs when, what a failed run costs, and which configuration is taken."""

from dataclasses import replace

import pytest
from rich.console import Console

from bench.comparing import Bench, progress_bar, ratio
from bench.services import Services
from bench.sizes import FULL, SMOKE
from bench.stage import Failed, Stage
from bench.subjects import HEADRACE, PGQUEUER, Subject


@pytest.fixture
def bench() -> Bench:
    console = Console(quiet=True)
    stage = Stage(services=Services(postgres=None, redis=None))
    made = Bench(stage=stage, size=FULL, pairs=5, console=console, progress=progress_bar(console))
    made.begin("test", 10)
    return made


def test_ours_and_theirs_run_in_turn(bench: Bench) -> None:
    order: list[str] = []

    def run(subject: Subject) -> float:
        order.append(subject.name)
        return float(len(order))

    pairs = bench.pair(HEADRACE, PGQUEUER, run)
    assert order == ["headrace", "PgQueuer"] * 5
    assert pairs == [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)]


def test_a_failed_run_is_tried_again_and_written_down(bench: Bench) -> None:
    failing = iter([True, *[False] * 50])

    def run(subject: Subject) -> float:
        if subject is PGQUEUER and next(failing):
            raise Failed("it did not start")
        return 1.0

    assert len(bench.pair(HEADRACE, PGQUEUER, run)) == 5
    assert [failure.endswith("it did not start") for failure in bench.failures] == [True]


def test_a_peer_that_always_fails_gives_no_value(bench: Bench) -> None:
    def run(subject: Subject) -> float:
        if subject is PGQUEUER:
            raise Failed("not installed")
        return 1.0

    pairs = bench.pair(HEADRACE, PGQUEUER, run)
    assert pairs == []
    assert len(bench.failures) == 7
    assert ratio(HEADRACE, PGQUEUER, pairs, unit="tasks/s", wanted=5).value is None


def test_fewer_pairs_than_asked_for_give_no_value() -> None:
    pairs = [(2.0, 1.0)] * 4
    found = ratio(HEADRACE, PGQUEUER, pairs, unit="tasks/s", wanted=5)
    assert found.value is None
    assert found.series[0].runs == 4
    assert ratio(HEADRACE, PGQUEUER, [*pairs, (2.0, 1.0)], unit="tasks/s", wanted=5).value == 2.0


def test_the_best_configuration_is_the_fastest_by_median(bench: Bench) -> None:
    slow, fast, broken = (HEADRACE.using(words) for words in ("slow", "fast", "broken"))

    def run(subject: Subject) -> float:
        if subject is broken:
            raise Failed("no")
        return 10.0 if subject is fast else 5.0

    assert bench.best([slow, fast, broken], run, lambda figure: figure) is fast
    assert bench.best([broken, broken], run, lambda figure: figure) is broken


def test_a_smoke_run_asks_nobody_and_takes_the_first(bench: Bench) -> None:
    bench.size = replace(SMOKE)

    def run(subject: Subject) -> float:
        raise AssertionError(f"{subject.label} was asked")

    first, second = HEADRACE.using("1"), HEADRACE.using("2")
    assert bench.best([first, second], run, lambda figure: figure) is first
