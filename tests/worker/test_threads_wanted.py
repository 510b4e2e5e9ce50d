"""Tasks that ask for a thread are served, or someone is told that they are not."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from headrace import App
from headrace.worker.application import warn_of_unserved
from headrace.worker.options import WorkerOptions

_TASKS = """
from headrace import App
app = App("sqlite:///ledger.db")

@app.task(executor="thread")
def in_a_thread() -> int:
    return 7
"""


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        (WorkerOptions(), True),
        (WorkerOptions(queues=("default",)), True),
        (WorkerOptions(queues=("other",)), False),
        (WorkerOptions(threads=1), False),
    ],
)
def test_who_serves_no_threads_says_which_tasks_wait(
    options: WorkerOptions, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("sqlite:///unused.db")

    @app.task(name="in_a_thread", executor="thread")
    def in_a_thread() -> None: ...

    with caplog.at_level(logging.WARNING):
        warn_of_unserved(app, options)
    assert ("in_a_thread" in caplog.text and "--threads N" in caplog.text) is warned


def test_a_worker_has_threads_when_a_task_asks_and_nobody_said_how_many(tmp_path: Path) -> None:
    (tmp_path / "threaded.py").write_text(_TASKS)

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout + done.stderr

    run("-c", "from threaded import app, in_a_thread; app.upgrade(); in_a_thread.enqueue(); app.close()")
    said = run("-m", "headrace.cli", "worker", "threaded:app", "--burst", "--children", "0", "--threads", "0")
    assert "start with --threads N" in said
    run("-m", "headrace.cli", "worker", "threaded:app", "--burst", "--children", "0")
    found = run("-c", "from threaded import app; print([t.state for t in app.tasks.list()]); app.close()")
    assert "completed" in found
