"""Graphs and a table at a size that gives no figure: built, run, and watched by somebody who enqueues beside them."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.adapters import workflows as adapter
from bench.parts import workflows
from bench.parts.workflows import Worked, work
from bench.required import REQUIRED
from bench.services import Services
from bench.stage import Stage
from bench.subjects import HEADRACE, HEADRACE_SQLITE
from tests.support.postgres import PrivatePostgres

_TASKS = 100


def _check(worked: Worked) -> None:
    assert worked.tasks == _TASKS
    assert 0 < worked.build < 60
    assert 0 < worked.drain < 120
    assert worked.client > worked.growth >= 0
    assert worked.worker > 0
    assert 0 < worked.wait_build < 60
    assert 0 < worked.wait_drain < 60


@pytest.mark.parametrize("shape", adapter.SHAPES)
def test_a_shape_has_as_many_tasks_as_are_asked_for(shape: Callable[[int], Any]) -> None:
    tasks = shape(_TASKS).prepare().tasks
    assert len(tasks) == _TASKS
    edges = {each.__name__: n for each, n in zip(adapter.SHAPES, (196, 99, 180, 50, 0), strict=True)}
    assert sum(len(task.after) for task in tasks) == edges[shape.__name__]


def test_a_graph_on_sqlite_with_somebody_beside_it() -> None:
    stage = Stage(services=Services(postgres=None, redis=None))
    _check(work(stage, workflows._graphs(HEADRACE_SQLITE), 2, _TASKS))


def test_a_graph_on_postgres_without(private_postgres: PrivatePostgres) -> None:
    stage = Stage(services=Services(postgres=private_postgres, redis=None))
    worked = work(stage, workflows._graphs(HEADRACE), 0, _TASKS, probed=False)
    assert (worked.tasks, worked.wait_build) == (_TASKS, 0)


def test_twice_the_tasks_in_twice_the_time_is_linear() -> None:
    one = Worked(tasks=200, build=1, drain=9, client=1, growth=0, worker=1, wait_build=0, wait_drain=0)
    half = Worked(tasks=100, build=0.5, drain=4.5, client=1, growth=0, worker=1, wait_build=0, wait_drain=0)
    assert workflows._linear([(one, half)], 1).value == pytest.approx(2.0)
    assert workflows._linear([(one, half)], 2).value is None, "fewer pairs than were asked for"
    assert workflows._linear([], 1).value is None


def test_what_is_measured_is_what_is_required() -> None:
    wanted = {each.measure for each in REQUIRED if each.part == "workflows"}
    stores = ("postgres", "sqlite")
    made = {
        f"{store}_{what}" for store in stores for what in (*workflows._SHAPES, "client", "worker", "wait", "finish")
    }
    assert wanted == made | {"postgres_wait_build", "map"}
