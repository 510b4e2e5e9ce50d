"""A server is killed in the middle: whoever watched comes back to another one, and has missed nothing."""

import asyncio
import contextlib

import pytest
from websockets.exceptions import ConnectionClosed

from headrace import App
from tests.server.live.processes import ServerProcess, server_processes
from tests.server.live.watching import closed, receive, streaming, watching
from tests.server.live.writing import Writer, store_of
from tests.support.sizes import sized
from tests.support.waiting import eventually


@pytest.mark.chaos
@pytest.mark.requirement("R89")
@pytest.mark.timeout(300)
async def test_a_killed_server_leaves_no_gap(store_url: str) -> None:
    total = sized(small=1200, full=6000)
    app = App(store_url)
    async with server_processes(store_url, 2) as servers, store_of(app) as store:
        writer = await Writer.begin(store)
        seen: list[list[int]] = [[] for _ in range(5)]
        running = [asyncio.create_task(_watch(servers, writer.job, total - 1, each)) for each in seen]
        writing = asyncio.create_task(writer.say_at(600, total=total))
        await eventually(lambda: min(map(len, seen)) > 100)
        servers[0].kill()
        await writing
        connections = await asyncio.gather(*running)
    assert seen == [list(range(total))] * 5
    assert connections == [2] * 5
    await app.aclose()


async def _watch(servers: list[ServerProcess], job: int, last: int, seen: list[int]) -> int:
    """How many connections it took: to the first server, then to the one that is left."""
    for connections, server in enumerate(servers, 1):
        with contextlib.suppress(ConnectionClosed):
            path = f"/ws/job/{job}/logs/?after={seen[-1] if seen else -1}"
            async with watching(server.url, path) as client:
                while not seen or seen[-1] < last:
                    seen.append((await receive(client))["seq"])
                return connections
    raise AssertionError("no server is left")


@pytest.mark.timeout(300)
async def test_a_server_that_is_told_to_stop_lets_everybody_go(sqlite_url: str) -> None:
    """Streams never end by themselves: the server would wait for them."""
    app = App(sqlite_url)
    async with server_processes(sqlite_url) as (server,), store_of(app) as store:
        writer = await Writer.begin(store)
        await writer.say()
        async with (
            watching(server.url, f"/ws/job/{writer.job}/logs/") as client,
            streaming(server.url, f"/jobs/{writer.job}/logs") as events,
        ):
            await receive(client)
            await anext(events)
            server.process.terminate()
            assert await closed(client) == 1012
            assert [event async for event in events] == []
        assert await asyncio.to_thread(server.process.wait, 60) == 0
    await app.aclose()
