"""`headrace worker` as a real process over a folder with a tasks.py, for tests of what it tells the outside."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil


def python(folder: Path, code: str, *words: str, **variables: str) -> str:
    """Run some Python beside the tasks; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, env={**os.environ, **variables},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def headrace(folder: Path, *words: str, code: int = 0, **variables: str) -> "subprocess.CompletedProcess[str]":
    """A command to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli", *words], cwd=folder, env={**os.environ, **variables},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done


@contextmanager
def worker(folder: Path, *words: str, **variables: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A worker in the background; what it says goes to worker.log."""
    with (folder / "worker.log").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", "worker", "tasks:app", *words], cwd=folder,
            env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            with suppress(psutil.NoSuchProcess):
                for one in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
                    with suppress(psutil.NoSuchProcess):
                        one.kill()
        process.wait(30)
        print((folder / "worker.log").read_text()[-4000:])
