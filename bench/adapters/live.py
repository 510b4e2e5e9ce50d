"""headrace with an audience: jobs that talk in a worker of their own, a server that passes on what they say, and plain
tasks that another worker drains meanwhile.
"""

import asyncio
import os
import sys

from bench import record
from bench.adapters import OPTIONS, URL
from headrace import App, current, group

app = App(URL or None)
_JOBS = 20
_PAUSE = 0.2  # seconds between two lines of a job


@app.task
async def noop(sent: float) -> None:
    record.hit(sent)


@app.task(queue="live")
async def talk() -> None:
    """Until its worker is ended."""
    while True:
        current.log("as much as a line of a log says, and it says it five times a second")
        await asyncio.sleep(_PAUSE)


async def setup() -> None:
    await app.aupgrade()
    await app.aclose()


async def fill(n: int) -> None:
    await noop.aenqueue_many({"sent": 0.0} for _ in range(n))
    await app.aclose()


async def begin() -> list[int]:
    """The jobs that talk."""
    jobs = [await group([talk.si()]).aenqueue() for _ in range(_JOBS)]
    await app.aclose()
    return [job.id for job in jobs]


def worker() -> None:
    """A worker that drains, one that talks, or the server."""
    command, *flags = {
        "drain": ("worker", "--queues", "default"),
        "talk": ("worker", "--queues", "live"),
        "server": ("server", "--host", "127.0.0.1", "--port", str(OPTIONS["port"]), "--no-auth", "--rate-limit", "0"),
    }[OPTIONS["role"]]
    target = "bench.adapters.live:app"
    os.execv(
        sys.executable, [sys.executable, "-m", "headrace.cli", command, target, "--log-level", "error", *flags]
    )  # fmt: skip
