"""The tasks of the guarantee suites. Each execution leaves a line in a file beside the ledger, by which it is counted.

`make` gives an app on any database for the test; the worker's processes import `app`, whose database comes from the
environment. The lines are one `write` to a descriptor opened with O_APPEND: whole, in order, and there after kill -9.
"""

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace import App, Retry, current

SIDE = "HEADRACE_TEST_SIDE"
# An attempt lost to a kill is charged; the suites kill more often than any sane policy allows.
PATIENT = Retry(max_attempts=50, backoff="fixed", base=0.05, jitter=0.0)
_PAUSE = 0.02


def _side() -> Path:
    return Path(os.environ[SIDE])


def _record(word: str) -> None:
    line = f"{word} {current.task_id} {current.attempt} {current.claim_no} {os.getpid()} {time.monotonic():.6f}\n"
    descriptor = os.open(_side() / "executions", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def _open(gate: str) -> bool:
    return (_side() / f"gate-{gate}").exists()


async def touch(n: int) -> int:
    """Runs on the loop, at once."""
    _record("begin")
    return n


def touch_child(n: int) -> int:
    """Runs in a child process, at once."""
    _record("begin")
    return n


async def stay(n: int, seconds: float) -> int:
    """Takes a while, so that a kill finds it running."""
    _record("begin")
    await asyncio.sleep(seconds)
    return n


def stay_child(n: int, seconds: float) -> int:
    _record("begin")
    time.sleep(seconds)
    return n


async def hold(gate: str) -> int:
    """Its first execution stays until the gate opens; the answer is the claim that gave it."""
    first = _first(gate)  # before it is seen to have begun: then it may be killed
    _record("begin")
    if first:
        while not _open(gate):  # noqa: ASYNC110 the gate is a file
            await asyncio.sleep(_PAUSE)
    return current.claim_no


def hold_child(gate: str) -> int:
    first = _first(gate)  # before it is seen to have begun: then it may be killed
    _record("begin")
    if first:
        while not _open(gate):
            time.sleep(_PAUSE)
    return current.claim_no


def _first(gate: str) -> bool:
    try:
        os.close(os.open(_side() / f"first-{gate}-{current.task_id}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    app: App
    touch: Any
    touch_child: Any
    stay: Any
    stay_child: Any
    hold: Any
    hold_child: Any


def make(url: str | None = None) -> Workload:
    app = App(url) if url else App()

    def task(function: Any, **options: Any) -> Any:
        return app.task(name=function.__name__, retry=PATIENT, **options)(function)

    return Workload(
        app=app,
        touch=task(touch),
        touch_child=task(touch_child),
        stay=task(stay),
        stay_child=task(stay_child),
        hold=task(hold, timeout=120),
        hold_child=task(hold_child, timeout=120),
    )


app = make().app
