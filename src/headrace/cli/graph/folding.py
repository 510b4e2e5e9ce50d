"""Many tasks as few units: those of one name and depth are one, whatever their number. Pure, and fed page by page."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

from headrace.core.states import TaskState
from headrace.core.task import EdgeKind, Outlined

LISTED = 5  # failed ones that a unit names
_FAILED = frozenset({TaskState.FAILED, TaskState.REJECTED, TaskState.LOST})

type Upstream = Sequence[tuple[int, EdgeKind]]


@dataclass(slots=True, kw_only=True)
class Unit:
    """One task, or many that are shown as one."""

    layer: int
    depth: int = 1  # layers that it covers
    n: int = 0
    names: Counter[str] = field(default_factory=Counter[str])
    states: Counter[TaskState] = field(default_factory=Counter[TaskState])
    optional: int = 0  # not critical
    first: Outlined | None = None
    failed: list[Outlined] = field(default_factory=list[Outlined])
    busy: float = 0.0  # seconds, of those that have ended
    longest: float = 0.0
    timed: int = 0

    def add(self, row: Outlined) -> None:
        self.n += 1
        self.names[row.name] += 1
        self.states[row.state] += 1
        self.optional += not row.critical
        if self.first is None:
            self.first = row
        if row.state in _FAILED and len(self.failed) < LISTED:
            self.failed.append(row)
        if row.started_at is not None and row.finished_at is not None:
            took = max(0.0, row.finished_at - row.started_at)
            self.busy += took
            self.longest = max(self.longest, took)
            self.timed += 1

    def take(self, other: Self) -> None:
        last = max(self.layer + self.depth, other.layer + other.depth)
        self.layer = min(self.layer, other.layer)
        self.depth = last - self.layer
        self.n += other.n
        self.names += other.names
        self.states += other.states
        self.optional += other.optional
        self.first = self.first or other.first
        self.failed = (self.failed + other.failed)[:LISTED]
        self.busy += other.busy
        self.longest = max(self.longest, other.longest)
        self.timed += other.timed

    @property
    def failures(self) -> int:
        return sum(self.states[state] for state in _FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Units in an order in which what others wait for comes first; edges by their places in it."""

    units: Sequence[Unit]
    edges: dict[tuple[int, int], frozenset[EdgeKind]]
    tasks: int

    @property
    def layers(self) -> int:
        return max((unit.layer + unit.depth for unit in self.units), default=0)


class Folding:
    """Takes tasks in the order of their ids. What waits for a later id is put aside until that one is there.

    `whole` gives every task a unit of its own. Kept for each task is the number of its unit, and nothing else.
    """

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._units: list[Unit] = []
        self._by_kind: dict[tuple[int, str], int] = {}
        self._unit_of: dict[int, int] = {}
        self._edges: dict[tuple[int, int], frozenset[EdgeKind]] = {}
        self._aside: dict[int, list[tuple[Outlined, Upstream]]] = {}  # by an upstream that is not there yet

    def add(self, row: Outlined, upstream: Upstream = ()) -> None:
        ready = [(row, upstream)]
        while ready:
            row, upstream = ready.pop()
            missing = next((id for id, _ in upstream if id not in self._unit_of), None)
            if missing is not None:
                self._aside.setdefault(missing, []).append((row, upstream))
                continue
            self._place(row, upstream)
            ready += self._aside.pop(row.id, [])

    def folded(self) -> Folded:
        while self._aside:
            # Their upstream is gone from history, or was added while this was read: they go without it.
            waiting = {row.id for rows in self._aside.values() for row, _ in rows}
            missing = next((id for id in self._aside if id not in waiting), next(iter(self._aside)))
            for row, upstream in self._aside.pop(missing):
                self.add(row, [up for up in upstream if up[0] != missing])
        order = sorted(range(len(self._units)), key=lambda number: (self._units[number].layer, number))
        place = {number: position for position, number in enumerate(order)}
        return Folded(
            units=[self._units[number] for number in order],
            edges={(place[a], place[b]): kinds for (a, b), kinds in self._edges.items()},
            tasks=len(self._unit_of),
        )

    def _place(self, row: Outlined, upstream: Upstream) -> None:
        units, unit_of = self._units, self._unit_of
        layer = 1 + max((units[unit_of[id]].layer for id, _ in upstream), default=-1)
        number = self._number(row, layer)
        units[number].add(row)
        unit_of[row.id] = number
        for id, kind in upstream:
            edge = (unit_of[id], number)
            known = self._edges.get(edge)
            if known is None or kind not in known:
                self._edges[edge] = (known or frozenset()) | {kind}

    def _number(self, row: Outlined, layer: int) -> int:
        if not self._whole:
            found = self._by_kind.get((layer, row.name))
            if found is not None:
                return found
            self._by_kind[layer, row.name] = len(self._units)
        self._units.append(Unit(layer=layer))
        return len(self._units) - 1


def condensed(graph: Folded, *, widest: int, most: int) -> Folded:
    """No layer of more than `widest` units, and about `most` of them in all: the middle of a deep graph is one unit."""
    layers: dict[int, list[int]] = {}
    for number, unit in enumerate(graph.units):
        layers.setdefault(unit.layer, []).append(number)
    wide = [numbers for numbers in layers.values() if len(numbers) > widest]
    graph = _merged(graph, wide)
    sizes = Counter(unit.layer for unit in graph.units)
    cut = _middle([sizes[layer] for layer in sorted(sizes)], most)
    return graph if cut is None else _merged(graph, [_within(graph, sorted(sizes), cut)])


def _within(graph: Folded, layers: Sequence[int], cut: tuple[int, int]) -> list[int]:
    wanted = set(layers[cut[0] : cut[1]])
    return [number for number, unit in enumerate(graph.units) if unit.layer in wanted]


def _middle(sizes: Sequence[int], most: int) -> tuple[int, int] | None:
    """Which layers to cut out: [from, to), as many as must be; None when all fit, or when it would hide nothing."""
    if sum(sizes) <= most:
        return None
    begin, end, shown = 0, len(sizes), 1
    while begin < end and shown + sizes[begin] <= most:
        shown += sizes[begin]
        begin += 1
        if begin < end and shown + sizes[end - 1] <= most:
            end -= 1
            shown += sizes[end]
    return (begin, end) if sum(sizes[begin:end]) > 1 else None


def _merged(graph: Folded, groups: Iterable[Sequence[int]]) -> Folded:
    """Each group as one unit. A group is a whole layer or a run of layers, so no circle comes about."""
    into: dict[int, int] = {}
    units = list(graph.units)
    for group in groups:
        first, *others = group
        for number in others:
            units[first].take(units[number])
            into[number] = first
    kept = [number for number in range(len(units)) if number not in into]
    kept.sort(key=lambda number: (units[number].layer, number))
    place = {number: position for position, number in enumerate(kept)}
    renumbered = {number: place[into.get(number, number)] for number in range(len(units))}
    edges: dict[tuple[int, int], frozenset[EdgeKind]] = {}
    for (a, b), kinds in graph.edges.items():
        edge = (renumbered[a], renumbered[b])
        if edge[0] != edge[1]:
            edges[edge] = edges.get(edge, frozenset()) | kinds
    return Folded(units=[units[number] for number in kept], edges=edges, tasks=graph.tasks)
