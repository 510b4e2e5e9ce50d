"""Many tasks as few units: nothing is lost, nothing is counted twice, and what waits stands below."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.graph.folding import LISTED, Folded, condensed
from headrace.core.states import TaskState
from tests.cli.graph.graphs import Pairs, fold, graphs, row


def depths(pairs: Pairs) -> dict[int, int]:
    found: dict[int, int] = {}
    for each, upstream in pairs:
        found[each.id] = 1 + max((found[id] for id in upstream), default=-1)
    return found


def states(graph: Folded) -> Counter[TaskState]:
    return sum((unit.states for unit in graph.units), Counter[TaskState]())


@given(graphs())
def test_tasks_of_one_name_and_depth_are_one_unit(pairs: Pairs):
    graph, depth = fold(pairs, whole=False), depths(pairs)
    wanted = Counter((depth[each.id], each.name) for each, _ in pairs)
    assert {(unit.layer, *unit.names): unit.n for unit in graph.units} == wanted
    assert states(graph) == Counter(each.state for each, _ in pairs)
    assert all(a < b for a, b in graph.edges)
    name = {each.id: (depth[each.id], each.name) for each, _ in pairs}
    kinds = [(unit.layer, *unit.names) for unit in graph.units]
    assert {(kinds[a], kinds[b]) for a, b in graph.edges} == {
        (name[id], name[each.id]) for each, upstream in pairs for id in upstream
    }


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(pairs: Pairs, rng: random.Random):
    shuffled = [*pairs]
    rng.shuffle(shuffled)
    one, other = fold(pairs, whole=True), fold(shuffled, whole=True)

    def facts(graph: Folded) -> tuple[dict[int, int], set[tuple[int, int]]]:
        ids = [unit.first.id if unit.first else 0 for unit in graph.units]
        return {id: unit.layer for id, unit in zip(ids, graph.units, strict=True)}, {
            (ids[a], ids[b]) for a, b in graph.edges
        }

    assert facts(one) == facts(other) == (depths(pairs), {(id, each.id) for each, ups in pairs for id in ups})


@given(graphs(), st.integers(1, 5), st.integers(3, 12))
def test_what_is_condensed_is_small_and_whole(pairs: Pairs, widest: int, most: int):
    graph = condensed(fold(pairs, whole=True), widest=widest, most=most)
    assert sum(unit.n for unit in graph.units) == len(pairs)
    assert states(graph) == Counter(each.state for each, _ in pairs)
    assert max(Counter(unit.layer for unit in graph.units).values()) <= widest
    assert len(graph.units) <= max(most, widest + 1)
    assert all(a < b for a, b in graph.edges)


def test_the_middle_of_a_chain_is_one_unit():
    chain = [(row(id), [id - 1] if id > 1 else []) for id in range(1, 1001)]
    graph = condensed(fold(chain, whole=False), widest=12, most=20)
    assert [(unit.layer, unit.depth, unit.n) for unit in graph.units if unit.n > 1] == [(10, 981, 981)]
    assert (len(graph.units), graph.layers) == (20, 1000)
    assert set(graph.edges) == {(n, n + 1) for n in range(19)}


def test_an_upstream_that_is_gone_is_left_out():
    graph = fold([(row(1), [2]), (row(2), [3]), (row(3), [99])], whole=True)
    assert [unit.first.id for unit in graph.units if unit.first] == [3, 2, 1]
    assert set(graph.edges) == {(0, 1), (1, 2)}


def test_a_circle_cannot_hang_it():
    assert fold([(row(1), [2]), (row(2), [1])], whole=True).tasks == 2


def test_a_unit_names_the_first_failures_and_knows_how_long_they_took():
    pairs = [(row(n, state=TaskState.FAILED, finished_at=float(n)), []) for n in range(1, 10)]
    (unit,) = fold(pairs, whole=False).units
    assert ([each.id for each in unit.failed], unit.failures) == (list(range(1, LISTED + 1)), 9)
    assert (unit.timed, unit.longest) == (9, 9.0)
    assert unit.busy == pytest.approx(45.0)
