"""Children are processes that import the app anew: a worker has them where something runs in one, and not before."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.processes import command_has
from tests.support.waiting import wait_until

_TASKS = """
import os
from headrace import App
app = App("sqlite:///ledger.db")

@app.task
async def on_the_loop() -> int:
    return os.getpid()
"""
_BY_PATH = """
import asyncio
from headrace import orchestration
from loops import app

def double(n):
    return 2 * n

if __name__ == "__main__":
    orchestration.configure(app)
    asyncio.run(orchestration.create_job("paths", [{"entrypoint": "paths.double", "kwargs": {"n": 21}}]))
"""


def _run(directory: Path, *words: str) -> str:
    done = subprocess.run([sys.executable, *words], cwd=directory, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _below(process: psutil.Process) -> list[psutil.Process]:
    """What the worker process started."""
    (worker,) = [child for child in process.children() if command_has(child, "headrace.worker.process")]
    return worker.children()


@pytest.mark.timeout(120)
def test_an_app_without_tasks_for_children_has_none_until_one_arrives(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(_TASKS)
    (tmp_path / "paths.py").write_text(_BY_PATH)
    _run(tmp_path, "-c", "from loops import app; app.upgrade(); app.close()")
    worker = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "worker", "loops:app", "--children", "1", "--commands", "0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stderr=subprocess.DEVNULL,
    )
    try:
        _run(tmp_path, "-c", "from loops import on_the_loop; print(on_the_loop.enqueue().result(timeout=30))")
        process = psutil.Process(worker.pid)
        assert _below(process) == []
        _run(tmp_path, "paths.py")
        done = "from loops import app; print([t.result for t in app.tasks.list(names=['paths.double'])]); app.close()"
        wait_until(lambda: "42" in _run(tmp_path, "-c", done))
        assert _below(process) != []
    finally:
        worker.terminate()
        worker.wait(30)


def test_a_burst_of_an_app_without_tasks_for_children_ends(tmp_path: Path) -> None:
    (tmp_path / "loops.py").write_text(_TASKS)
    _run(tmp_path, "-c", "from loops import app, on_the_loop; app.upgrade(); on_the_loop.enqueue(); app.close()")
    _run(tmp_path, "-m", "headrace.cli", "worker", "loops:app", "--burst")
    found = _run(tmp_path, "-c", "from loops import app; print([t.state for t in app.tasks.list()]); app.close()")
    assert "completed" in found
