"""Where the lines of a graph run, from top to bottom: a lane for each node that something above it leads to. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
_SHAPES = {
    0: " ", UP | DOWN: "│", LEFT | RIGHT: "─", UP: "│", DOWN: "│",
    UP | RIGHT: "╰", UP | LEFT: "╯", DOWN | RIGHT: "╭", DOWN | LEFT: "╮",
    UP | DOWN | RIGHT: "├", UP | DOWN | LEFT: "┤", UP | LEFT | RIGHT: "┴", DOWN | LEFT | RIGHT: "┬",
    UP | DOWN | LEFT | RIGHT: "┼",
}  # fmt: skip
NODE = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line: its cells, two columns a lane, with a NODE where `node` stands; or only lines. `below` has the lines
    that go on under it, for whoever has more to say about the node."""

    cells: str
    node: int | None = None
    below: str = ""


def lay_out(nodes: int, edges: Iterable[tuple[int, int]]) -> list[Row]:
    """Nodes are drawn in their order; an edge leads from an earlier to a later one."""
    below: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in sorted(set(edges)):
        if a >= b:
            raise ValueError(f"an edge from {a} to {b} leads upwards")
        below[a].append(b)
    rows: list[Row] = []
    lanes: list[int | None] = []  # whom each of them leads to
    for node in range(nodes):
        column = lanes.index(node) if node in lanes else _free(lanes)
        lanes[column] = node
        row, lanes[column] = _passing(lanes, column), None
        after = _passing(lanes, column).replace(NODE, "│" if below[node] else " ").rstrip()
        rows.append(Row(cells=row, node=node, below=after))
        if below[node]:
            before = [lane is not None for lane in lanes]
            columns = [_lane_to(target, lanes, column) for target in below[node]]
            rows.append(Row(cells=_connecting(lanes, before, column, columns)))
        while lanes and lanes[-1] is None:
            lanes.pop()
    return rows


def _free(lanes: list[int | None], wanted: int | None = None) -> int:
    """A lane that leads nowhere: the wanted one, else the first."""
    if wanted is not None and lanes[wanted] is None:
        return wanted
    if None in lanes:
        return lanes.index(None)
    lanes.append(None)
    return len(lanes) - 1


def _lane_to(target: int, lanes: list[int | None], column: int) -> int:
    """Those that lead to the same node share a lane: however many they are, it is one line that arrives."""
    if target in lanes:
        return lanes.index(target)
    found = _free(lanes, column)
    lanes[found] = target
    return found


def _passing(lanes: Sequence[int | None], node: int) -> str:
    return " ".join(
        NODE if column == node else _SHAPES[0 if lane is None else UP | DOWN] for column, lane in enumerate(lanes)
    )


def _connecting(lanes: Sequence[int | None], before: Sequence[bool], node: int, columns: Sequence[int]) -> str:
    """From the node's own lane to those of its edges. What it crosses without joining is not interrupted."""
    first, last = min(node, *columns), max(node, *columns)
    cells: list[str] = []
    for column in range(len(lanes)):
        goes_on = column < len(before) and before[column]
        joined = column in columns
        bits = (UP if goes_on or column == node else 0) | (DOWN if goes_on or joined else 0)
        inside = first <= column <= last and (joined or column == node or not goes_on)
        if inside:
            bits |= (LEFT if column > first else 0) | (RIGHT if column < last else 0)
        cells.append(_SHAPES[bits])
        if column < len(lanes) - 1:
            cells.append("─" if first <= column < last else " ")
    return "".join(cells).rstrip()
