"""Write docs/explanation/states.md from the transition tables in headrace.core.states. `--check` only compares."""

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from headrace.core import states

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "states.md"

HEADER = """# The state machine

Generated from `headrace.core.states` by `python tools/states.py`; a test compares this page with the code.

A task's life within one run. A state that leads to the end mark is terminal: nothing leaves it but a manual retry,
which opens the next run. Failure belongs to the attempt; a task is failed only when no attempt will follow.
«Scheduled» is `pending` with an eligible time in the future.

"""


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
    if "--check" in sys.argv:
        return 0 if PAGE.read_text() == page() else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
