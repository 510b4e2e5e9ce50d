"""What the end of a task means for those that wait for it."""

from itertools import product

import pytest

from headrace.core.advance import FAILURES, Verdict, advance, breaks_job, is_handled, reason_for, verdict
from headrace.core.states import TERMINAL, Reason, TaskState
from headrace.core.task import EdgeKind

S, D, F = EdgeKind.ON_SUCCESS, EdgeKind.ON_DONE, EdgeKind.ON_FAILURE
COMPLETED, FAILED, CANCELLED, REJECTED = (
    TaskState.COMPLETED,
    TaskState.FAILED,
    TaskState.CANCELLED,
    TaskState.REJECTED,
)


@pytest.mark.parametrize(("kind", "state"), list(product((S, D, F), sorted(TERMINAL))))
def test_the_verdict_of_an_edge(kind: EdgeKind, state: TaskState) -> None:
    """Success asks for a completed upstream, failure for one that failed or was rejected, done for any end."""
    holds = {S: state is COMPLETED, D: True, F: state in (FAILED, REJECTED)}[kind]
    assert verdict(kind, state) is (Verdict.SATISFIED if holds else Verdict.IMPOSSIBLE)


def test_why_one_can_never_run() -> None:
    assert reason_for(S) is Reason.UPSTREAM_FAILED
    assert reason_for(F) is Reason.SKIPPED


def test_a_task_is_free_when_all_that_it_waits_for_has_ended() -> None:
    edges = [(3, 1, S), (3, 2, D), (4, 3, S)]
    assert advance(edges, {1: COMPLETED}) == (set(), {})
    assert advance(edges, {1: COMPLETED, 2: FAILED}) == ({3}, {})
    assert advance(edges, {1: COMPLETED, 2: FAILED, 3: COMPLETED}) == ({4}, {})


def test_what_cannot_run_takes_those_below_along_but_for_who_waits_for_any_end() -> None:
    edges = [(2, 1, S), (3, 2, S), (4, 3, D), (5, 2, F), (6, 1, F)]
    free, cancelled = advance(edges, {1: FAILED})
    assert cancelled == {2: Reason.UPSTREAM_FAILED, 3: Reason.UPSTREAM_FAILED, 5: Reason.SKIPPED}
    assert free == {4, 6}
    assert advance(edges, {1: COMPLETED}) == ({2}, {6: Reason.SKIPPED})


def test_a_failure_says_more_than_a_handler_that_nobody_needs() -> None:
    assert advance([(3, 1, F), (3, 2, S)], {1: COMPLETED, 2: FAILED}) == (set(), {3: Reason.UPSTREAM_FAILED})


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_what_ends_a_job_at_once(state: TaskState) -> None:
    """A critical failure does, unless somebody waits for it, or for the end whatever it is."""
    assert breaks_job(state, critical=True, kinds=()) is (state in FAILURES)
    assert breaks_job(state, critical=True, kinds=(S, S)) is (state in FAILURES)
    assert not breaks_job(state, critical=False, kinds=())
    assert not breaks_job(state, critical=True, kinds=(S, F))
    assert not breaks_job(state, critical=True, kinds=(D,))


def test_a_failure_is_handled_by_a_handler_that_completed() -> None:
    assert is_handled([(S, CANCELLED), (F, COMPLETED)])
    assert not is_handled([(F, FAILED), (F, CANCELLED), (D, COMPLETED), (S, COMPLETED)])
    assert not is_handled([])
