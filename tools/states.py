"""Write the page and the picture of the state machine from headrace.core.states. `--check` only compares."""

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from headrace.core import states

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "explanation" / "states.md"
PICTURE = DOCS / "pictures" / "states.svg"

HEADER = """# The state machine

Generated from `headrace.core.states` by `python tools/states.py`; a test compares this page with the code.

A task's life within one run. A state that leads to the end mark is terminal: nothing leaves it but a manual retry,
which opens the next run. Failure belongs to the attempt; a task is failed only when no attempt will follow.
«Scheduled» is `pending` with an eligible time in the future.

![From the state at the left to the state above: a dot where the transition is allowed](../pictures/states.svg)

"""

CELL, LEFT, TOP = 34, 150, 130
COLOURS = {"waiting": "#4c78a8", "held by a worker": "#e07b39", "terminal": "#7a7a7a"}


def picture() -> str:
    """A dot for each transition: from the state at the left to the one above."""
    order = list(states.TaskState)
    size = CELL * len(order)
    width, height = LEFT + size + 20, TOP + size + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        '<g font-family="sans-serif" font-size="13">',
        "<title>Which state may follow which</title>",
        '<rect width="100%" height="100%" rx="6" fill="#ffffff"/>',
    ]
    for index, state in enumerate(order):
        colour, middle = COLOURS[what(state)], CELL * index + CELL / 2
        parts += [
            f'<text x="{LEFT - 10}" y="{TOP + middle + 4:g}" text-anchor="end" fill="{colour}">{state}</text>',
            f'<text transform="translate({LEFT + middle + 4:g} {TOP - 10}) rotate(-60)" fill="{colour}">{state}</text>',
            f'<line x1="{LEFT}" x2="{LEFT + size}" y1="{TOP + middle:g}" y2="{TOP + middle:g}" stroke="#e6e6e6"/>',
            f'<line y1="{TOP}" y2="{TOP + size}" x1="{LEFT + middle:g}" x2="{LEFT + middle:g}" stroke="#e6e6e6"/>',
        ]
    for row, before in enumerate(order):
        for column, after in enumerate(order):
            if after in states.TRANSITIONS[before]:
                x, y = LEFT + CELL * column + CELL / 2, TOP + CELL * row + CELL / 2
                parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="7" fill="{COLOURS[what(before)]}"/>')
    for index, (kind, colour) in enumerate(COLOURS.items()):
        x, y = LEFT + index * 140, TOP + size + 30
        parts += [f'<circle cx="{x}" cy="{y - 4}" r="6" fill="{colour}"/>', f'<text x="{x + 12}" y="{y}">{kind}</text>']
    return "\n".join([*parts, "</g>", "</svg>", ""])


def diagram[State: StrEnum](table: Mapping[State, frozenset[State]]) -> str:
    lines = ["```mermaid", "stateDiagram-v2"]
    for before, after in table.items():
        lines += [f"    {before} --> {state}" for state in sorted(after)] or [f"    {before} --> [*]"]
    return "\n".join([*lines, "```"])


def what(state: states.TaskState) -> str:
    if state.terminal:
        return "terminal"
    return "held by a worker" if state.held else "waiting"


def successors(state: states.TaskState) -> str:
    if state in states.RERUN:
        return "a new run, by hand"
    return ", ".join(f"`{after}`" for after in sorted(states.TRANSITIONS[state])) or "–"


def page() -> str:
    rows = [f"| `{state.value}` | {what(state)} | {successors(state)} |" for state in states.TaskState]
    reasons = ", ".join(f"`{reason.value}`" for reason in states.Reason)
    attempts = ", ".join(f"`{state.value}`" for state in states.AttemptState)
    return (
        HEADER
        + diagram(states.TRANSITIONS)
        + "\n\n| state | | may become |\n|---|---|---|\n"
        + "\n".join(rows)
        + f"\n\nBeside the state stands a reason where one is needed: {reasons}.\n\n"
        + f"An attempt ends as one of: {attempts}.\n\n## Jobs\n\n"
        + diagram(states.JOB_TRANSITIONS)
        + "\n"
    )


def main() -> int:
    made = {PAGE: page(), PICTURE: picture()}
    if "--check" in sys.argv:
        return 0 if all(path.exists() and path.read_text() == text for path, text in made.items()) else 1
    for path, text in made.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
