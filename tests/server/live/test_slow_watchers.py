"""A slow client is dropped, and nobody waits for it: neither the others nor whoever writes."""

import asyncio
import socket

import pytest
from websockets.asyncio.client import ClientConnection

from headrace.server.live.messages import Message
from headrace.server.live.pace import Pace
from headrace.server.live.sources import JobLogs
from headrace.server.live.topics import Topic
from tests.server.live.watching import CEILING, closed, numbers, receive, receive_until, watching
from tests.server.live.writing import Writer, store_of
from tests.server.serving import Serve, listening
from tests.support.sizes import sized
from tests.support.waiting import eventually

_LONG = "{} " + "x" * 20_000  # the buffers of the kernel between the two hold megabytes


@pytest.mark.chaos
async def test_a_slow_client_is_dropped_and_the_others_get_everything(serve_sqlite: Serve) -> None:
    """The one that reads nothing is closed with 4408 while it still does not read; what it had got by then is whole,
    and it goes on behind that on another connection."""
    total = sized(small=800, full=3000)
    async with serve_sqlite() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store)
        path, token, hub = f"/ws/job/{writer.job}/logs/", server.secrets["viewer"], server.api.state.hub
        quick = {"max_queue": None, "max_size": None}
        async with (
            watching(url, path, token, max_queue=1, max_size=None, ping_interval=None, sock=await _narrow(url)) as slow,
            watching(url, path, token, **quick) as one,
            watching(url, path, token, **quick) as two,
        ):
            await eventually(lambda: hub.watchers == 3)
            seen: list[list[int]] = [[], []]
            others = [
                asyncio.create_task(_follow(client, total - 1, into))
                for client, into in zip((one, two), seen, strict=True)
            ]
            before: list[int] = []

            async def dropped() -> int | None:
                """Reads from the drop on: the farewell waits for a reader some seconds, and no longer."""
                await eventually(lambda: hub.watchers == 2, 2 * CEILING, message="the slow one is dropped")
                return await closed(slow, before)

            dropping = asyncio.create_task(dropped())
            while writer.written < total:
                await writer.say(20, text=_LONG)
                # Not faster than the quick ones read, on whatever machine: else they would be slow, too.
                await eventually(lambda: min(map(len, seen)) > writer.written - 100, CEILING)
            await asyncio.gather(*others)
            code = await dropping
            async with watching(url, f"{path}?after={before[-1]}", token, **quick) as again:
                after = numbers(await receive_until(again, total - 1))
    assert code == 4408
    assert seen == [list(range(total))] * 2
    assert len(before) < total
    assert before + after == list(range(total))


async def _follow(client: ClientConnection, last: int, into: list[int]) -> None:
    while not into or into[-1] < last:
        into.append((await receive(client))["seq"])


async def _narrow(url: str) -> socket.socket:
    """A connection that takes in little while nobody reads, however much memory the machine has."""
    made = socket.socket()
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", int(url.rpartition(":")[2])))
    return made


def test_a_topic_holds_so_much_and_no_more() -> None:
    pace = Pace(most_messages=100, most_bytes=100_000)
    topic = Topic(JobLogs(1), pace)
    for length in (10, 5000):
        for number in range(5000):
            topic.append([Message("task_log_message", {"message": "x" * length}, (number,))])
            assert len(topic.items) <= 1000
            assert topic.held == sum(message.size for message in topic.items)
            assert topic.held < 2_000_000
    assert topic.covers(topic.floor)
    assert topic.items[0].position == (topic.floor[0] + 1,)
