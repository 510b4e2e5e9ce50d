"""Every example runs as its page says: enqueue, `headrace worker --burst`, look at the results."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

EXPECTED = {
    "first_task": ['greet completed "hello world"', 'fetch completed {"attempt":2,"page":1}'],
    "limits_and_order": [
        *(f"print_page completed {page}" for page in range(6)),
        "post completed 10",
        "post completed -3",
        "post completed 5",
        'report completed "stopped in time, with what was ready"',
    ],
    "transactions": ['send_receipt completed "receipt for order 1"'],
    "commands": ["counted 42"],
}


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_has_an_expectation():
    assert set(EXPECTED) == {path.stem for path in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_example_does_what_it_says(name: str, tmp_path: Path):
    shutil.copy(EXAMPLES / f"{name}.py", tmp_path)
    run(tmp_path, f"{name}.py")
    run(tmp_path, "-m", "headrace.cli", "worker", f"{name}:app", "--burst", "--children", "1")
    printed = run(tmp_path, f"{name}.py", "--results")
    for line in EXPECTED[name]:
        assert line in printed
    if name == "transactions":
        assert printed.count("send_receipt") == 1, "the rolled-back order left a task behind"
