"""The tasks that `headrace demo` runs."""

import asyncio
import os
import random
import time
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

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


@app.task(timeout=60)
def slow(n: int) -> int:
    """Stays in the middle until its worker is killed."""
    for step in range(10):
        current.progress(step + 1, total=10)
        time.sleep(0.05)
        if step == 5:
            _hold()
    return n


# A graph: pictures are found, made smaller side by side, and put into one album.


@app.task
async def find(album: str) -> list[str]:
    return [f"{album}-{n}" for n in range(30)]


@app.task
async def shrink(picture: str) -> int:
    await asyncio.sleep(random.random() / 50)
    return len(picture)


@app.task
async def bind(sizes: list[int]) -> int:
    return sum(sizes)


@app.task(timeout=60)
def ship_order(order: int) -> list[int]:
    """Steps that must not be done twice; whose process dies between two of them goes on behind the last one."""
    return [current.step(name, _step, order, name) for name in ("reserve", "charge", "pack", "ship")]


def _step(order: int, name: str) -> int:
    """Notes that it ran, and says in which process."""
    with beside_the_ledger("steps").open("a") as notes:
        notes.write(f"{name} {order}\n")
    if name == "pack":
        _hold()
    return os.getpid()


def beside_the_ledger(name: str) -> Path:
    return Path(app.url.removeprefix("sqlite:///")).with_name(name)


def _hold() -> None:
    """Until the demo has killed the worker, however fast the machine is; whoever takes over does not wait."""
    with beside_the_ledger("holding").open("a") as notes:
        notes.write(f"{os.getpid()}\n")
    deadline = time.monotonic() + 30
    while not beside_the_ledger("killed").exists() and time.monotonic() < deadline:
        time.sleep(0.02)


def with_tax(table: Any) -> Any:
    """A column more, chunk by chunk. Some of the chunks are done when the worker is killed, and some are not."""
    compute = import_module("pyarrow.compute")  # the core works without it
    if table["id"][0].as_py() >= 4_000:
        _hold()
    return table.append_column("tax", compute.multiply(table["price"], 0.19))


@app.schedule(timedelta(seconds=1))
@app.task
async def tick() -> str:
    """Declared in code: whatever worker runs, it fires once a second."""
    return "tick"


@app.task
async def work(n: int) -> float:
    await asyncio.sleep(random.random() / 100)
    return n / 2
