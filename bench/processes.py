"""Processes that the benchmark starts: their trees, what they cost, and how they are ended."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
_GRACE = 5.0
# The caller's own settings must not reach what is measured; pip and Python variables neither.
_FOREIGN = ("HEADRACE_", "PYTHON", "BENCH_", "CELERY", "dramatiq")


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    # This checkout's code, wherever the environment's own installation of headrace leads.
    return {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]), **extra}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bench.peer", *arguments]


def tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system seconds of these trees, with the children they have already reaped."""
    total = 0.0
    for process in (process for pid in pids for process in tree(pid)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def resident_bytes(pids: Iterable[int]) -> int:
    """Memory that only these trees hold: pages shared between a parent and its forks would count twice."""
    total = 0
    for process in (process for pid in pids for process in tree(pid)):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_full_info().uss
    return total


class Crew:
    """The worker commands of one run. Leaving the block ends them and everything they started."""

    def __init__(self, commands: Sequence[Sequence[str]], environments: Sequence[Mapping[str, str]], log: Path) -> None:
        self._log = log
        with log.open("ab") as output:
            self._processes = [
                subprocess.Popen(
                    list(each),
                    cwd=ROOT,
                    env=dict(variables),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
                for each, variables in zip(commands, environments, strict=True)
            ]

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    @property
    def alive(self) -> bool:
        return all(process.poll() is None for process in self._processes)

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")[-800:] if self._log.exists() else ""

    def kill(self) -> None:
        """kill -9 of everything, as when a machine loses power; the parent first, so that it replaces nobody."""
        for process in (process for pid in self.pids for process in tree(pid)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for process in self._processes:
            process.wait()

    def end(self) -> None:
        # Taken before the parents are gone: an orphan could not be found again.
        members = [process for pid in self.pids for process in tree(pid)]
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _GRACE
        while time.monotonic() < deadline and any(process.poll() is None for process in self._processes):
            time.sleep(0.02)
        members += [process for pid in self.pids for process in tree(pid)]
        for member in members:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        for process in self._processes:
            process.wait()
