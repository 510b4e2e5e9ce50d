"""A server is killed in the middle: whoever watched comes back to another one, and has missed nothing."""

import asyncio
import contextlib

import pytest
from websockets.exceptions import ConnectionClosed

from headrace import App
from tests.server.live.processes import ServerProcess, server_processes
from tests.server.live.watching import CEILING, closed, receive, streaming, watching
from tests.server.live.writing import Writer, store_of
from tests.support.sizes import sized
from tests.support.waiting import eventually


@pytest.mark.chaos
@pytest.mark.requirement("R89")
@pytest.mark.timeout(300)
async def test_a_killed_server_leaves_no_gap(store_url: str) -> None:
    """They are there before the writing begins, and it goes on over the kill: each needs the second server."""
    rest = sized(small=200, full=5000)
    app = App(store_url)
    async with server_processes(store_url, 2) as servers, store_of(app) as store:
        writer = await Writer.begin(store)
        seen: list[list[int]] = [[] for _ in range(5)]
        end = End()
        running = [asyncio.create_task(_watch(servers, writer.job, end, each)) for each in seen]
        await writer.say()
        await eventually(lambda: min(map(len, seen)), CEILING)
        writing = asyncio.create_task(_write(writer, end))
        await eventually(lambda: min(map(len, seen)) > 100, CEILING)
        await asyncio.to_thread(servers[0].kill)
        end.last = writer.written + rest
        await writing
        connections = await asyncio.gather(*running)
    assert seen == [list(range(end.last + 1))] * 5
    assert connections == [2] * 5
    await app.aclose()


class End:
    """The number of the last line; None until the server was killed, because nobody knows when that will be."""

    last: int | None = None


async def _write(writer: Writer, end: End) -> None:
    while end.last is None:
        await writer.say(10)
        await asyncio.sleep(0.02)
    await writer.say_at(600, total=end.last + 1)


async def _watch(servers: list[ServerProcess], job: int, end: End, seen: list[int]) -> int:
    """How many connections it took: to the first server, then to the one that is left."""
    for connections, server in enumerate(servers, 1):
        with contextlib.suppress(ConnectionClosed):
            path = f"/ws/job/{job}/logs/?after={seen[-1] if seen else -1}"
            async with watching(server.url, path) as client:
                while not seen or end.last is None or seen[-1] < end.last:
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
