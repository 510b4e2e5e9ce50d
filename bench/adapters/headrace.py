"""headrace, with everything on and every setting at its default but for what the subject's options name."""

import asyncio
import contextlib
import os
import random
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path

from bench import record
from bench.adapters import OPTIONS, URL, Client
from headrace import App

app = App(URL or None, synchronous=OPTIONS.get("synchronous", "FULL"))


@app.task
async def noop(sent: float) -> None:
    record.hit(sent)


# Only where it is measured: a worker starts children, and threads, for apps that have tasks for them.
if OPTIONS.get("task") == "in_child":

    @app.task
    def in_child(sent: float) -> None:
        record.hit(sent)

elif OPTIONS.get("task") == "in_thread":

    @app.task(executor="thread")
    def in_thread(sent: float) -> None:
        record.hit(sent)


@app.task
async def hold(sent: float) -> None:
    """Stays in the worker's hands where that worker was told to hold; any other worker finishes it at once."""
    record.hit(sent)
    if OPTIONS.get("hold"):
        await asyncio.Event().wait()


@app.task
async def pickups(samples: int) -> None:
    """Enqueue single tasks from inside the worker, as a server in the same command would."""
    path = Path(os.environ[record.VARIABLE])
    for _ in range(samples):
        seen = record.count(path)
        await noop.aenqueue(sent=time.time())
        while record.count(path) == seen:  # noqa: ASYNC110  another process writes the file
            await asyncio.sleep(0.001)
        await asyncio.sleep(random.uniform(0.01, 0.05))


TASK = app.get_task(f"{__name__}.{OPTIONS.get('task', 'noop')}")


async def setup() -> None:
    await app.aupgrade()


def client() -> AbstractContextManager[Client] | AbstractAsyncContextManager[Client]:
    return _sync_client() if OPTIONS.get("face") == "sync" else _async_client()


@contextlib.asynccontextmanager
async def _async_client() -> AsyncGenerator[Client]:
    async def bulk(n: int) -> None:
        await TASK.aenqueue_many({"sent": 0.0} for _ in range(n))

    yield Client(one=lambda sent: TASK.aenqueue(sent=sent), bulk=bulk)
    await app.aclose()


@contextlib.contextmanager
def _sync_client() -> Generator[Client]:
    def bulk(n: int) -> None:
        TASK.enqueue_many({"sent": 0.0} for _ in range(n))

    yield Client(one=lambda sent: TASK.enqueue(sent=sent), bulk=bulk)
    app.close()


async def refill(n: int) -> None:
    """Enqueue while nobody claims: all of it waits when the workers are let go."""
    await app.queues.apause("default")
    await TASK.aenqueue_many({"sent": 0.0} for _ in range(n))
    await app.queues.aresume("default")
    await app.aclose()


async def start_pickups(samples: int) -> None:
    await pickups.aenqueue(samples=samples)
    await app.aclose()


def worker() -> None:
    flags = [
        f"--{name}={OPTIONS[name]}" for name in ("processes", "threads", "concurrency", "lease") if name in OPTIONS
    ]
    command = OPTIONS.get("command", "worker")
    os.execv(sys.executable, [sys.executable, "-m", "headrace.cli", command, "bench.adapters.headrace:app", *flags])
