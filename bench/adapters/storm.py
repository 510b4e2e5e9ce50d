"""headrace in a storm of retries: tasks that fail and come back, and new work that arrives meanwhile."""

import asyncio
import os
import sys
import time

from bench import record
from bench.adapters import OPTIONS, URL
from headrace import App, Retry
from headrace.core.errors import Transient

app = App(URL or None)
_AGAIN = 0.2  # seconds until a failed one is due again


@app.task(name="fresh")
async def fresh(sent: float) -> None:
    record.hit(sent)


@app.task(name="fails", retry=Retry(max_attempts=1_000_000, backoff="fixed", base=_AGAIN, jitter=0))
async def fails() -> None:
    raise Transient("the service is down")


async def setup() -> None:
    await app.aupgrade()


async def storm(n: int) -> None:
    """So many tasks that fail whenever they run."""
    await app.get_task("fails").aenqueue_many({} for _ in range(n))
    await app.aclose()


async def arrive(n: int) -> None:
    """New work, one every 20 ms."""
    task = app.get_task("fresh")
    for _ in range(n):
        await task.aenqueue(sent=time.time())
        await asyncio.sleep(0.02)
    await app.aclose()


def worker() -> None:
    flags = [f"--concurrency={OPTIONS.get('concurrency', 100)}", "--log-level", "error"]
    os.execv(sys.executable, [sys.executable, "-m", "headrace.cli", "worker", "bench.adapters.storm:app", *flags])
