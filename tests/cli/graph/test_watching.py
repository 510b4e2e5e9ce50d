"""The screen of `headrace jobs watch`, on any size; the live one is in test_terminal.py."""

from datetime import UTC, datetime, timedelta

import pytest

from headrace.cli.graph.watching import Board, Look
from headrace.core.states import JobState, TaskState
from headrace.core.task import JobRecord

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def record(**fields: object) -> JobRecord:
    values: dict[str, object] = {
        "id": 7, "name": "nightly", "description": None, "state": JobState.RUNNING, "reason": None, "run_no": 1,
        "created_at": NOW, "started_at": NOW - timedelta(seconds=90), "completed_at": None, "deadline_at": None,
        "total": 100, "completed": 40, "failed": 10, "cancelled": 0, "running": 2, "metadata": "{}",
    }  # fmt: skip
    return JobRecord(**values | fields)  # type: ignore[arg-type]


def lines(board: Board, width: int = 100, height: int = 30) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in board.lines(width, height)]


def test_all_of_it_and_each_kind_of_task_has_a_bar():
    tally = [("a", TaskState.COMPLETED, 40), ("b", TaskState.PENDING, 50), ("b", TaskState.FAILED, 10)]
    first, whole, a, b = lines(Board(look=Look(at=NOW, record=record(), tally=tally)))
    assert first == "job 7  nightly  running  1 m 30 s"
    assert whole.endswith("50 of 100  50 %, 10 failed, 2 running")
    assert a.startswith("  a  ")
    assert a.endswith("40 of 40  100 %")
    assert b.endswith("10 of 60  16 %")


@pytest.mark.parametrize("height", [1, 4, 8, 12, 40])
def test_it_fits_on_every_screen(height: int):
    """Where there is no room for all names, those with the most to do are shown."""
    tally = [(f"task-{n:02}", TaskState.PENDING, n + 1) for n in range(30)]
    found = lines(Board(look=Look(at=NOW, record=record(), tally=tally)), 80, height)
    assert len(found) <= max(2, height)
    if height == 12:
        assert found[2].strip().startswith("task-29")
        assert found[-1] == "  … 23 more kinds of tasks"


def test_an_outage_is_told_without_its_secrets():
    board = Board(look=Look(at=NOW, record=record(total=0)), outage="postgresql://me:hunter2@host/db is away")
    assert "nothing to do" in lines(board)[1]
    assert lines(board)[-1].startswith("trying again: postgresql://")
    assert "hunter2" not in lines(board)[-1]
