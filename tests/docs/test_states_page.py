"""The page of the state machine is generated from the code, and says so truthfully."""

import subprocess
import sys
from pathlib import Path

from headrace.core.states import HELD, JOB_TRANSITIONS, RERUN, TERMINAL, TRANSITIONS, JobState, TaskState

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_code_generates():
    check = subprocess.run([sys.executable, "tools/states.py", "--check"], cwd=ROOT, check=False)
    assert check.returncode == 0, "docs/explanation/states.md is stale: run python tools/states.py"


def test_every_state_has_its_row_in_the_table():
    assert set(TRANSITIONS) == set(TaskState)
    assert set(JOB_TRANSITIONS) == set(JobState)


def test_terminal_states_have_no_successor_within_a_run():
    assert all(not TRANSITIONS[state] for state in TERMINAL)
    assert all(TRANSITIONS[state] for state in TaskState if state not in TERMINAL)
    assert RERUN <= TERMINAL
    assert not HELD & TERMINAL
