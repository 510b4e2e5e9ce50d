"""Who is charged when a worker process has died, decided from what its slots say."""

import pytest

from headrace.core.outcome import Failed, Lost, Released
from headrace.core.task import Ref
from headrace.executors.slots import (
    CHILD,
    GROUP,
    LOOP,
    NEVER,
    THREAD,
    VERDICT_MEMORY,
    VERDICT_NONE,
    VERDICT_TIMEOUT,
    Occupied,
)
from headrace.testing.executor_conformance import claimed
from headrace.worker.aftermath import Death, outcome_after


def slot(task: int, kind: int, *, verdict: int = VERDICT_NONE, inside: bool = False) -> Occupied:
    return Occupied(
        index=task, pid=100 + task, worker=0, ref=Ref(task, 1), entered=1.0, soft=NEVER, hard=2.0, interrupted=False,
        verdict=verdict, kind=kind, inside=inside, memory=(2_000_000, 1_000_000),
    )  # fmt: skip


def death(*slots: Occupied) -> Death:
    return Death(worker="w", exit_code=-9, at=3.0, occupied={each.ref: each for each in slots})


@pytest.mark.parametrize(
    ("kind", "verdict"), [(CHILD, VERDICT_MEMORY), (CHILD, VERDICT_TIMEOUT), (GROUP, VERDICT_TIMEOUT)]
)
def test_a_verdict_on_a_child_does_not_acquit_the_one_that_crashed_its_worker_process(kind: int, verdict: int) -> None:
    died = death(slot(1, kind, verdict=verdict), slot(2, LOOP, inside=True), slot(3, LOOP))
    outcomes = [outcome_after(died, claimed(task, "noop")) for task in (1, 2, 3)]
    assert [type(outcome) for outcome in outcomes] == [Failed, Lost, Released]


@pytest.mark.parametrize("kind", [LOOP, THREAD])
def test_those_beside_one_for_which_the_worker_process_was_killed_are_innocent(kind: int) -> None:
    died = death(slot(1, kind, verdict=VERDICT_TIMEOUT, inside=True), slot(2, LOOP), slot(3, CHILD))
    outcomes = [outcome_after(died, claimed(task, "noop")) for task in (1, 2, 3)]
    assert [type(outcome) for outcome in outcomes] == [Failed, Released, Released]
