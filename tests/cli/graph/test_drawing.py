"""The lines of a drawing."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.graph.drawing import LOOKS, duration, label
from headrace.cli.graph.folding import Folding, condensed
from headrace.core.states import TaskState
from headrace.core.task import EdgeKind
from tests.cli.graph.graphs import Pairs, drawn, fold, graphs, row

S = TaskState


def test_a_small_graph_is_drawn_task_by_task():
    graph = fold(
        [
            (row(1, "fetch"), []),
            (row(2, "left", S.RUNNING, finished_at=None), [1]),
            (row(3, "right", S.FAILED, reason="error", error="ValueError: no"), [1]),
            (row(4, "join", S.BLOCKED, started_at=None, finished_at=None, critical=False), [2, 3]),
        ],
        whole=True,
    )
    assert drawn(graph) == [
        "✔  fetch 1  completed  1.0 s",
        "├─╮",
        "● │  left 2  running  5.0 s",
        "│ │",
        "│ ✘  right 3  failed/error  1.0 s  ValueError: no",
        "├─╯",
        "◌  join 4  blocked  not critical",
    ]


def test_a_wide_group_is_folded_and_its_failures_are_listed():
    extract = [row(n, "extract", S.COMPLETED if n <= 812 else S.PENDING, finished_at=0.5) for n in range(10, 1010)]
    extract[:7] = [row(n, "extract", S.FAILED, reason="timeout", error="Timeout: 5 s") for n in range(10, 17)]
    pairs = [(row(1, "fetch"), []), *((each, [1]) for each in extract)]
    pairs.append((row(2000, "load", S.BLOCKED, started_at=None), [each.id for each in extract]))
    lines = drawn(condensed(fold(pairs, whole=False), widest=12, most=20))
    assert lines[2] == "✘  extract ×1,000: 796 completed, 7 failed, 197 pending  0.5 s each, longest 1.0 s"
    assert lines[3:9] == [
        *(f"│     ✘ extract {n}  failed/timeout  Timeout: 5 s" for n in range(10, 15)),
        "│     … 2 more failed",
    ]
    assert lines[9:] == ["│", "◌  load 2000  blocked"]


def test_the_middle_of_a_deep_chain_is_counted():
    chain = [
        (row(id, "step", S.COMPLETED if id < 500 else S.BLOCKED), [id - 1] if id > 1 else []) for id in range(1, 10_001)
    ]
    lines = drawn(condensed(fold(chain, whole=False), widest=12, most=20))
    assert len(lines) == 39
    (middle,) = [line for line in lines if "steps" in line]
    assert middle.startswith("◌  9,981 steps: step ×9,981: 489 completed, 9,492 blocked")


def test_what_waits_otherwise_says_so():
    folding = Folding(whole=True)
    folding.add(row(1, "try"))
    folding.add(row(2, "mend", S.BLOCKED, started_at=None), [(1, EdgeKind.ON_FAILURE)])
    folding.add(row(3, "clean", S.BLOCKED, started_at=None, waiting_on="event:paid/7"), [(1, EdgeKind.ON_DONE)])
    lines = drawn(folding.folded())
    assert "mend 2  blocked  if it fails" in lines[2]
    assert lines[-1] == "  ◌  clean 3  blocked  waits for event:paid/7  whatever becomes of it"


def test_without_edges_it_is_a_list():
    assert drawn(fold([(row(1, "a"), []), (row(2, "b"), [])], whole=True)) == [
        "✔ a 1  completed  1.0 s",
        "✔ b 2  completed  1.0 s",
    ]


def test_a_thicket_is_a_list_by_depth():
    pairs = [(row(n, f"up{n}"), []) for n in range(1, 9)]
    pairs += [(row(10 + n, f"down{n}"), list(range(1, 9))) for n in range(1, 9)]
    lines = drawn(fold(pairs, whole=True), most_lanes=4)
    assert (lines[0], lines[9]) == ("step 1", "step 2")
    assert lines[10] == "  ✔ down1 11  completed  1.0 s  after up1, up2, up3 and 5 more"


def test_every_state_has_a_look():
    assert set(LOOKS) == set(TaskState)


@given(graphs(most=40), st.booleans(), st.integers(1, 20))
def test_every_task_is_on_one_line_or_counted_there(pairs: Pairs, whole: bool, lanes: int):
    graph = fold(pairs, whole=whole)
    lines = drawn(graph, most_lanes=lanes)
    # Two groups may look alike: then there are two such lines.
    looks = Counter("".join(text for text, _ in label(unit, 5.0)) for unit in graph.units)
    for words, n in looks.items():
        assert sum(f" {words}  " in f"{line}  " for line in lines) == n


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0 ms"), (0.0123, "12 ms"), (0.0999, "0.1 s"), (1.25, "1.2 s"), (9.96, "10 s"), (59.4, "59 s"),
        (59.96, "1 m"), (61, "1 m 1 s"), (3599.6, "1 h"), (7260, "2 h 1 m"), (200_000, "2.3 d"),
    ],
)  # fmt: skip
def test_durations(seconds: float, words: str):
    assert duration(seconds) == words
