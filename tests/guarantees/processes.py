"""Processes of a test: found by a mark in their environment, stopped, continued and killed by it."""

import contextlib
import os
import signal
from pathlib import Path

import psutil

from tests.support.waiting import wait_until

MARK = "HEADRACE_TEST_MARK"


def alive(pid: int) -> bool:
    """Whether the process runs: one that is dead and not yet reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stopped(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False


def marked(mark: str) -> list[int]:
    """Every living process whose environment carries the mark, orphans included."""
    wanted = f"{MARK}={mark}".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0") and alive(int(entry.name)):
                    found.append(int(entry.name))
    return sorted(found)


def send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill(*pids: int) -> None:
    """kill -9 of all of them before any can react, and wait until they are gone."""
    for pid in pids:
        send(pid, signal.SIGSTOP)
    for pid in pids:
        send(pid, signal.SIGKILL)
    wait_until(lambda: not any(alive(pid) for pid in pids), message=f"{pids} are gone")


def freeze(*pids: int) -> None:
    for pid in pids:
        send(pid, signal.SIGSTOP)
    wait_until(lambda: all(stopped(pid) or not alive(pid) for pid in pids), message=f"{pids} stopped")


def thaw(*pids: int) -> None:
    for pid in pids:
        send(pid, signal.SIGCONT)
