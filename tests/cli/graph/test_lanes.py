"""Where the lines of a graph run: what is drawn leads from every task to those that wait for it, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.graph.lanes import NODE, Row, lay_out

_DOWN = set("│├┤┬╮╭┼")
_ACROSS = set("─├┤┬┴╮╭╯╰┼")


def cells(rows: list[Row]) -> list[str]:
    return [row.cells for row in rows]


def read_back(rows: list[Row]) -> set[tuple[int, int]]:
    """The edges that an eye finds: along the line below a node, down every lane that it joins, to the next node."""
    found: set[tuple[int, int]] = set()
    for place, row in enumerate(rows):
        below = rows[place + 1].cells if place + 1 < len(rows) else ""
        if row.node is None or (place + 1 < len(rows) and rows[place + 1].node is not None):
            continue
        start = row.cells.index(NODE)
        for column in _joined(below, start):
            found.add((row.node, _arrives(rows[place + 1 :], column)))
    return found


def _joined(line: str, start: int) -> set[int]:
    found = {start} if line[start : start + 1] in _DOWN else set[int]()
    for step in (-1, 1):
        column = start
        while 0 <= column + step < len(line) and (line[column + step] in _ACROSS or _crossed(line, column + step)):
            if column % 2 == 0 and column == start and line[start] == "│":
                break
            column += step
            if column % 2 == 0 and line[column] in _DOWN and line[column] != "│":
                found.add(column)
            if line[column] in ("╮╯┤" if step > 0 else "╭╰├"):
                break
    return found


def _crossed(line: str, column: int) -> bool:
    return line[column] == "│" and line[column - 1 : column] == "─" and line[column + 1 : column + 2] == "─"


def _arrives(rows: list[Row], column: int) -> int:
    for row in rows:
        if row.node is not None and row.cells[column : column + 1] == NODE:
            return row.node
        assert row.cells[column : column + 1] in _DOWN, f"the lane ends in the air: {row.cells!r}"
    raise AssertionError("the lane never arrives")


@st.composite
def edges(draw: st.DrawFn) -> tuple[int, set[tuple[int, int]]]:
    n = draw(st.integers(1, 14))
    pairs = [(a, b) for b in range(n) for a in range(b)]
    return n, set(draw(st.lists(st.sampled_from(pairs), max_size=30)) if pairs else [])


@given(edges())
def test_what_is_drawn_is_the_graph(graph: tuple[int, set[tuple[int, int]]]):
    n, wanted = graph
    rows = lay_out(n, wanted)
    assert [row.node for row in rows if row.node is not None] == list(range(n))
    assert all(row.cells.count(NODE) == (row.node is not None) for row in rows)
    assert read_back(rows) == wanted


@given(edges())
def test_no_more_lanes_than_open_ends(graph: tuple[int, set[tuple[int, int]]]):
    n, wanted = graph
    widest = max(len({b for a, b in wanted if a <= node < b}) for node in range(n))
    assert all((len(row.cells) + 1) // 2 <= widest + 1 for row in lay_out(n, wanted))


def test_a_diamond():
    assert cells(lay_out(4, [(0, 1), (0, 2), (1, 3), (2, 3)])) == ["*", "├─╮", "* │", "│ │", "│ *", "├─╯", "*"]


def test_a_line_that_is_crossed_goes_on():
    assert "├─│─╯" in cells(lay_out(5, [(0, 3), (0, 4), (1, 3)]))


def test_what_waits_for_nothing_has_nothing_above_it():
    rows = lay_out(3, [(0, 2)])
    assert cells(rows) == ["*", "│", "│ *", "*"]
    assert [row.below for row in rows if row.node is not None] == ["│", "│", ""]


def test_an_edge_upwards_is_refused():
    with pytest.raises(ValueError, match="from 1 to 0 leads upwards"):
        lay_out(2, [(1, 0)])
