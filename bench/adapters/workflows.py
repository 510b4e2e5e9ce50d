"""headrace with graphs: jobs of many shapes, and a writer beside them who notes how long it had to wait."""

import asyncio
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import psutil

from bench import record
from bench.adapters import OPTIONS, URL
from headrace import App, Graph, chain, chord, group

app = App(URL or None)

_PROBE = 0.05  # seconds between two enqueues
_MEBIBYTE = 2**20


@app.task
async def step() -> None:
    record.hit()


@app.task
async def join(values: list[None]) -> int:
    record.hit()
    return len(values)


@app.task
async def aside() -> None:
    """Enqueued by the probe, on a queue that nobody takes from."""


async def setup() -> None:
    await app.aupgrade()


def fan(n: int) -> Any:
    """One, many that wait for it, and one that gets all their results."""
    return chain(step.si(), chord(group(step.si() for _ in range(n - 2)), join.s()))


def deep(n: int) -> Any:
    return chain(step.si() for _ in range(n))


def grid(n: int) -> Any:
    """A square; each waits for its neighbours on the left and above."""
    side = round(n**0.5)
    made = Graph("grid")
    above: list[Any] = []
    for _ in range(side):
        row: list[Any] = []
        for column in range(side):
            waits = [*row[-1:], *above[column : column + 1]]
            row.append(made.add(step.si(), after=waits))
        above = row
    return made


def pairs(n: int) -> Any:
    return group(chain(step.si(), step.si()) for _ in range(n // 2))


def flat(n: int) -> Any:
    """The same number of tasks in a job, and nobody waits for anybody."""
    return group(step.si() for _ in range(n))


SHAPES: tuple[Callable[[int], Any], ...] = (fan, deep, grid, pairs, flat)


async def build(shape: int, n: int) -> dict[str, float]:
    """Seconds from the call to the committed job, and what that took of memory at its peak, in MiB."""
    await aside.using(queue="aside").aenqueue()  # connected, and everything imported
    before = psutil.Process().memory_info().rss
    began = time.perf_counter()
    await SHAPES[shape](n).aenqueue()
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    await app.aclose()
    return {"seconds": seconds, "peak": peak / _MEBIBYTE, "growth": max(0, peak - before) / _MEBIBYTE}


async def probe() -> dict[str, float]:
    """One plain task every 50 ms until it is told to stop; the slowest of the calls, in seconds."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    task = aside.using(queue="aside")
    await task.aenqueue()
    print("ready", flush=True)
    slowest, n = 0.0, 0
    while not stop.is_set():
        began = time.perf_counter()
        await task.aenqueue()
        slowest, n = max(slowest, time.perf_counter() - began), n + 1
        await asyncio.sleep(_PROBE)
    await app.aclose()
    return {"slowest": slowest, "calls": n}


def worker() -> None:
    flags = [f"--{name}={OPTIONS[name]}" for name in ("processes", "concurrency") if name in OPTIONS]
    target = "bench.adapters.workflows:app"
    os.execv(
        sys.executable, [sys.executable, "-m", "headrace.cli", "worker", target, "--queues", "default", *flags]
    )  # fmt: skip
