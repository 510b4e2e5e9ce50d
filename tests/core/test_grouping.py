"""Large graphs as few groups."""

import random
import time
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headrace.core.grouping import Bone, Joint, Structure, grouped


def bones(*names: str) -> list[Bone]:
    """With ids from 1 on."""
    return [(id, name, "pending", None, None) for id, name in enumerate(names, 1)]


def shown(made: Structure) -> list[tuple[str | None, int, list[int]]]:
    return [(group.name, group.level, group.members) for group in made.groups]


def test_a_fan_out_and_in() -> None:
    made = grouped(
        bones("load", "work", "work", "work", "collect"),
        [(2, 1, 0), (3, 1, 0), (4, 1, 0), (5, 2, 0), (5, 3, 0), (5, 4, 0)],
        most=100,
    )
    assert shown(made) == [("load", 0, [1]), ("work", 1, [2, 3, 4]), ("collect", 2, [5])]
    assert made.edges == {(1, 0, 0): 3, (2, 1, 0): 3}
    assert not made.is_merged
    assert made.place_of == {1: 0, 2: 1, 3: 1, 4: 1, 5: 2}


def test_chains_side_by_side_are_one_chain() -> None:
    made = grouped(bones("a", "b", "a", "b", "a", "b"), [(2, 1, 0), (4, 3, 0), (6, 5, 0)], most=100)
    assert shown(made) == [("a", 0, [1, 3, 5]), ("b", 1, [2, 4, 6])]


def test_what_waits_otherwise_is_apart() -> None:
    made = grouped(
        bones("a", "b", "x", "x", "x", "x"), [(3, 1, 0), (4, 2, 0), (5, 1, 2), (6, 1, 0), (6, 2, 0)], most=100
    )
    assert shown(made) == [("a", 0, [1]), ("b", 0, [2]), ("x", 1, [3]), ("x", 1, [4]), ("x", 1, [5]), ("x", 1, [6])]


def test_one_that_was_added_later_than_what_waits_for_it() -> None:
    made = grouped(bones("after", "before"), [(1, 2, 0)], most=100)
    assert shown(made) == [("before", 0, [2]), ("after", 1, [1])]


def test_an_edge_to_another_job_is_left_out() -> None:
    made = grouped(bones("a"), [(1, 99, 0)], most=100)
    assert (shown(made), made.edges) == ([("a", 0, [1])], {})


def test_an_edge_of_a_task_that_came_after_they_were_read_is_left_out() -> None:
    """Tasks and edges are read one after the other, and a job may grow in between."""
    made = grouped(bones("after", "before"), [(1, 2, 0), (3, 2, 0), (3, 1, 0)], most=100)
    assert shown(made) == [("before", 0, [2]), ("after", 1, [1])]
    assert made.edges == {(1, 0, 0): 1}
    assert shown(grouped(bones("a"), [(2, 1, 0)], most=100)) == [("a", 0, [1])]


def test_members_are_in_the_order_of_their_ids_also_where_edges_are_walked() -> None:
    made = grouped(bones("work", "work", "load", "load"), [(1, 4, 0), (2, 3, 0)], most=100)
    assert shown(made) == [("load", 0, [3, 4]), ("work", 1, [1, 2])]


def test_too_many_groups_are_put_together_by_level() -> None:
    n = 5000
    made = grouped(bones(*["step"] * n), [(id, id - 1, 0) for id in range(2, n + 1)], most=100)
    assert made.is_merged
    assert 50 <= len(made.groups) <= 100
    assert sum(len(group.members) for group in made.groups) == n
    assert all(made.groups[lower].level < made.groups[upper].level for upper, lower, _ in made.edges)
    # Of many names on one level nothing but the level is left.
    wide = grouped(bones(*(f"name{k}" for k in range(n))), [], most=100)
    assert [(group.name, len(group.members)) for group in wide.groups] == [(None, n)]


@given(st.integers(1, 60), st.integers(0, 10_000), st.integers(1, 30))
def test_every_task_is_in_one_group_and_no_edge_goes_in_a_circle(n: int, seed: int, most: int) -> None:
    rng = random.Random(seed)
    names = [rng.choice("abc") for _ in range(n)]
    joints: list[Joint] = sorted(
        {(id, rng.randrange(1, id), rng.randrange(3)) for id in range(2, n + 1) for _ in range(rng.randrange(3))}
    )
    made = grouped(bones(*names), joints, most=most)
    assert len(made.groups) <= most or made.is_merged
    assert len(made.groups) <= max(most, 1)
    members = Counter(member for group in made.groups for member in group.members)
    assert members == Counter(range(1, n + 1))
    assert all(made.place_of[member] == place for place, group in enumerate(made.groups) for member in group.members)
    for upper, lower, _ in made.edges:
        assert made.groups[lower].level < made.groups[upper].level
    if not made.is_merged:
        assert made.edges.total() == len(joints)
        for task, upstream, _ in joints:
            assert made.place_of[upstream] < made.place_of[task]


def test_a_hundred_thousand_take_well_below_a_second() -> None:
    n = 50_000
    names = ["load", *["work"] * n, *["clean"] * n, "collect"]
    joints = [
        *((id, 1, 0) for id in range(2, n + 2)),
        *((id, id - n, 0) for id in range(n + 2, 2 * n + 2)),
        *((2 * n + 2, id, 0) for id in range(n + 2, 2 * n + 2)),
    ]
    rows = bones(*names)
    took: list[float] = []
    for _ in range(3):
        began = time.process_time()
        made = grouped(rows, joints, most=2000)
        took.append(time.process_time() - began)
    assert [len(group.members) for group in made.groups] == [1, n, n, 1]
    assert min(took) < 1.0
