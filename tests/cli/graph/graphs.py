"""Graphs for the tests of their drawing."""

import random
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from headrace.cli.graph.drawing import Frame, draw
from headrace.cli.graph.folding import Folded, Folding
from headrace.core.states import TaskState
from headrace.core.task import EdgeKind, Outlined

type Pairs = Sequence[tuple[Outlined, Sequence[int]]]


def row(id: int, name: str = "work", state: TaskState = TaskState.COMPLETED, **fields: Any) -> Outlined:
    values: dict[str, Any] = {
        "label": None, "reason": None, "critical": True, "waiting_on": None, "started_at": 0.0, "finished_at": 1.0,
        "error": None,
    }  # fmt: skip
    return Outlined(id=id, name=name, state=state, **values | fields)


def fold(pairs: Iterable[tuple[Outlined, Iterable[int]]], *, whole: bool) -> Folded:
    folding = Folding(whole=whole)
    for each, upstream in pairs:
        folding.add(each, [(id, EdgeKind.ON_SUCCESS) for id in upstream])
    return folding.folded()


def drawn(graph: Folded, **frame: Any) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in draw(graph, Frame(now=5.0, **frame))]


def graphs(most: int = 25) -> st.SearchStrategy[Pairs]:
    """Tasks 1…n; each waits for some of those before it. Of one drawn number: drawing each edge takes too long."""
    return st.builds(_graph, st.integers(1, most), st.integers(0, 2**32))


def _graph(n: int, seed: int) -> Pairs:
    rng = random.Random(seed)
    found: list[tuple[Outlined, list[int]]] = []
    for id in range(1, n + 1):
        upstream = rng.sample(range(1, id), min(id - 1, rng.randrange(4)))
        found.append((row(id, rng.choice("abc"), rng.choice(list(TaskState))), upstream))
    return found
