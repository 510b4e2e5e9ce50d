"""The tasks that `headrace demo` runs."""

import asyncio
import os
import random
import time
from datetime import timedelta

from headrace import App, Limit, Permanent, Retry, current

app = App(os.environ.get("HEADRACE_DATABASE_URL", "sqlite:///headrace-demo.db"), lease=2.0)


@app.task
async def greet(name: str) -> str:
    return f"hello {name}"


@app.task(retry=Retry(max_attempts=4, backoff="fixed", base=0.2))
async def flaky(seed: int) -> str:
    """Fails on its first two attempts."""
    if current.attempt < 3:
        raise ConnectionError(f"the service is away (attempt {current.attempt})")
    return f"came through on attempt {current.attempt}"


@app.task
async def hopeless() -> None:
    raise Permanent("this can never work, so it is not tried again")


@app.task(timeout=1)
def endless() -> None:
    """A loop that no cancellation reaches: the hard limit ends its process, and only its."""
    while True:
        pass


@app.task(limit=Limit(2, key="printer"))
async def gated(page: int) -> int:
    await asyncio.sleep(0.05)
    return page


@app.task(timeout=30)
def slow(n: int) -> int:
    """Long enough to be killed in the middle."""
    for step in range(10):
        current.progress(step + 1, total=10)
        time.sleep(0.2)
    return n


@app.schedule(timedelta(seconds=1))
@app.task
async def tick() -> str:
    """Declared in code: whatever worker runs, it fires once a second."""
    return "tick"


@app.task
async def work(n: int) -> float:
    await asyncio.sleep(random.random() / 100)
    return n / 2
