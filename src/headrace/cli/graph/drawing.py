"""A folded graph as lines of styled text, for any width of terminal. Pure: the clock comes in."""

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.cli.graph.folding import Folded, Unit
from headrace.cli.graph.lanes import NODE, Row, lay_out
from headrace.core.states import TaskState
from headrace.core.task import EdgeKind, Outlined

_S = TaskState
# How a state looks. A unit of many looks like the first of these that it has one of.
LOOKS: dict[TaskState, tuple[str, str]] = {
    _S.FAILED: ("✘", "red"), _S.REJECTED: ("✘", "red"), _S.LOST: ("?", "red"), _S.CANCELLING: ("◍", "yellow"),
    _S.RUNNING: ("●", "cyan"), _S.PAUSED: ("‖", "cyan"), _S.CLAIMED: ("◐", "cyan"),
    _S.PENDING_APPROVAL: ("?", "magenta"), _S.PENDING: ("○", "yellow"), _S.BLOCKED: ("◌", "dim"),
    _S.CANCELLED: ("⊘", "dim"), _S.COMPLETED: ("✔", "green"),
}  # fmt: skip
_KINDS = {EdgeKind.ON_DONE: "whatever becomes of it", EdgeKind.ON_FAILURE: "if it fails"}
_NAMED = 3  # names of a unit that has many

type Span = tuple[str, str]  # text, style
type Line = list[Span]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    now: float
    most_lanes: int = 12  # more of them are a thicket: then it is a list by depth


def draw(graph: Folded, frame: Frame) -> list[Line]:
    if not graph.edges:
        return [line for unit in graph.units for line in _with_failures(unit, "", "", frame)]
    rows = lay_out(len(graph.units), graph.edges)
    width = max(len(row.cells) for row in rows)
    if width > 2 * frame.most_lanes:
        return _listed(graph, frame)
    return [line for row in rows for line in _drawn(row, graph, frame)]


def _drawn(row: Row, graph: Folded, frame: Frame) -> Iterator[Line]:
    if row.node is None:
        yield [(row.cells, "dim")]
        return
    unit = graph.units[row.node]
    before, _, after = row.cells.partition(NODE)
    symbol, style = look(unit)
    kinds = {kind for (_, b), found in graph.edges.items() if b == row.node for kind in found}
    head, *failures = _with_failures(unit, _conditions(kinds), row.below, frame)
    yield [(before, "dim"), (symbol, f"bold {style}"), (after, "dim"), ("  ", ""), *head[2:]]
    yield from failures


def _with_failures(unit: Unit, note: str, lanes: str, frame: Frame) -> Iterator[Line]:
    """The unit's own line, with its symbol in front, and one for each failure that it names."""
    symbol, style = look(unit)
    yield [(symbol, f"bold {style}"), (" ", ""), *label(unit, frame.now), *([(f"  {note}", "dim")] if note else [])]
    if unit.n > 1:
        for row in unit.failed:
            yield [
                (lanes.ljust(2), "dim"),
                ("    ✘ ", "red"),
                (f"{row.label or row.name} {row.id}", ""),
                (_state(row), "red"),
                *_why(row),
            ]
        if unit.failures > len(unit.failed):
            yield [(lanes.ljust(2), "dim"), (f"    … {unit.failures - len(unit.failed):,} more failed", "red")]


def _conditions(kinds: set[EdgeKind]) -> str:
    return ", ".join(words for kind, words in _KINDS.items() if kind in kinds)


def _listed(graph: Folded, frame: Frame) -> list[Line]:
    """By depth, and whom each waits for."""
    lines: list[Line] = []
    upstream: dict[int, list[int]] = {}
    for a, b in sorted(graph.edges):
        upstream.setdefault(b, []).append(a)
    layer = -1
    for number, unit in enumerate(graph.units):
        if unit.layer != layer:
            layer = unit.layer
            lines.append([(f"step {layer + 1}", "bold")])
        sources = [_name(graph.units[source]) for source in upstream.get(number, [])]
        more = f" and {len(sources) - _NAMED:,} more" if len(sources) > _NAMED else ""
        note = f"after {', '.join(sources[:_NAMED])}{more}" if sources else ""
        lines += [[("  ", ""), *line] for line in _with_failures(unit, note, "", frame)]
    return lines


def look(unit: Unit) -> Span:
    return next((LOOKS[state] for state in LOOKS if unit.states[state]), (" ", ""))


def label(unit: Unit, now: float) -> Line:
    if unit.n == 1 and unit.first is not None:
        return _label_of_one(unit.first, now)
    steps = f"{unit.depth:,} steps: " if unit.depth > 1 else ""
    spans: Line = [(f"{steps}{_name(unit)}", "bold"), (f" ×{unit.n:,}: ", "")]
    for place, (state, n) in enumerate(sorted(unit.states.items(), key=lambda item: _order(item[0]))):
        spans += [(", ", "")] * bool(place) + [(f"{n:,} {_words(state)}", LOOKS[state][1])]
    if unit.timed:
        each = duration(unit.busy / unit.timed)
        spans.append((f"  {each} each" + (f", longest {duration(unit.longest)}" if unit.timed > 1 else ""), "dim"))
    if unit.optional:
        spans.append((f"  {'not' if unit.optional == unit.n else f'{unit.optional:,} not'} critical", "dim"))
    return spans


def _label_of_one(row: Outlined, now: float) -> Line:
    spans: Line = [(row.label or row.name, "bold"), (f" {row.id}", "dim"), (_state(row), LOOKS[row.state][1])]
    if row.started_at is not None:
        took = (row.finished_at or now) - row.started_at
        spans.append((f"  {duration(took)}", ""))
    if not row.critical:
        spans.append(("  not critical", "dim"))
    if row.waiting_on:
        spans.append((f"  waits for {row.waiting_on}", "dim"))
    return spans + _why(row)


def _state(row: Outlined) -> str:
    return f"  {_words(row.state)}/{row.reason}" if row.reason else f"  {_words(row.state)}"


def _why(row: Outlined) -> Line:
    return [(f"  {row.error}", "dim")] if row.error else []


def _words(state: TaskState) -> str:
    return "waiting for approval" if state is _S.PENDING_APPROVAL else state.value


def _name(unit: Unit) -> str:
    names = [name for name, _ in unit.names.most_common(_NAMED)]
    more = len(unit.names) - len(names)
    return ", ".join(names) + (f" and {more:,} more kinds" if more else "")


def _order(state: TaskState) -> int:
    """What is done first, then what failed, then what is to come."""
    first = (_S.COMPLETED, _S.FAILED, _S.REJECTED, _S.CANCELLED)
    return first.index(state) if state in first else len(first) + [*LOOKS].index(state)


def duration(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest} s" if rest else f"{minutes} m"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} m" if minutes else f"{hours} h"
    return f"{hours / 24:.1f} d"
