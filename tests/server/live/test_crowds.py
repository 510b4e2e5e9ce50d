"""Many watchers of one real server process: none misses anything, none sees it out of order."""

import asyncio
import time
from typing import Any

import psutil
import pytest

from headrace import App
from tests.server.live.processes import crowd, server_processes
from tests.server.live.writing import Writer, store_of
from tests.support.sizes import sized

_JOBS = 20
_RATE = 5.0  # messages a second of each job


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_crowd_on_twenty_jobs_and_a_burst_of_one(postgres_url: str) -> None:
    """2,000 clients at full size, a hundred on each of twenty jobs with five messages a second: 10,000 deliveries a
    second. Then one job says a thousand lines a second to twenty clients. The memory of the server stays where it was.
    """
    each, total = sized(small=5, full=100), sized(small=10, full=50)
    lines = sized(small=500, full=10_000)
    app = App(postgres_url)
    async with server_processes(postgres_url) as (server,), store_of(app) as store:
        memory = psutil.Process(server.process.pid).memory_info
        writers = [await Writer.begin(store) for _ in range(_JOBS)]
        paths = [f"/ws/job/{writer.job}/logs/" for writer in writers for _ in range(each)]
        async with crowd(server.port, paths, last=total - 1) as many:
            before = memory().rss
            await asyncio.gather(*(_say(writer, place, total) for place, writer in enumerate(writers)))
            seen = await many.seen()
            grown = memory().rss - before
        assert [(client["first"], client["count"], client["disorder"]) for client in seen] == [(0, total, 0)] * len(
            paths
        )
        assert grown < 64 * 1024 * 1024

        loud = await Writer.begin(store)
        async with crowd(server.port, [f"/ws/job/{loud.job}/logs/"] * 20, last=lines - 1) as few:
            before = memory().rss
            while loud.written < lines:
                began = time.monotonic()
                await loud.say(100, text="line {} " + repr(time.time()))
                await asyncio.sleep(max(0.0, began + 0.1 - time.monotonic()))
            seen = await few.seen()
            grown = memory().rss - before
        assert _summary(seen) == [(0, lines, 0)] * 20
        assert grown < 64 * 1024 * 1024
    await app.aclose()


def _summary(seen: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    return [(client["first"], client["count"], client["disorder"]) for client in seen]


async def _say(writer: Writer, place: int, total: int) -> None:
    """Not all at the same moment."""
    began = time.monotonic() + place / _JOBS / _RATE
    for number in range(total):
        await asyncio.sleep(max(0.0, began + number / _RATE - time.monotonic()))
        await writer.say(text="line {} " + repr(time.time()))
