"""Server-sent events, pings, and the figures of the whole ledger."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from headrace.server.live.admission import read_ping
from headrace.server.live.pace import Pace
from tests.server.live.watching import CEILING, closed, receive, streaming, watching
from tests.server.live.writing import Writer, store_of
from tests.server.serving import Serve, Serving, listening
from tests.support.waiting import eventually


async def test_an_event_stream_goes_on_behind_the_last_event(serve: Serve) -> None:
    async with serve() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store)
        await writer.say(3)
        path, token = f"/jobs/{writer.job}/logs", server.secrets["viewer"]
        async with streaming(url, path, token) as events:
            before = [await anext(events) for _ in range(3)]
            await writer.say(2)
            live = [await anext(events) for _ in range(2)]
        await writer.say(2)
        # A browser comes back to the URL that it knows, with the last id in a header.
        async with streaming(url, f"{path}?after=0", token, last=live[-1]["id"]) as events:
            again = [await anext(events) for _ in range(2)]
    assert [event["id"] for event in before + live + again] == ["0", "1", "2", "3", "4", "5", "6"]
    assert {event["event"] for event in before + live + again} == {"task_log_message"}
    assert [json.loads(event["data"]).get("buffered") for event in before + live + again] == [
        True, True, True, None, None, True, True,
    ]  # fmt: skip


async def test_what_is_there_and_the_end(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server, store_of(server.app) as store:
        writer = await Writer.begin(store)
        await writer.say(1200)
        whole = await _there(server, f"jobs/{writer.job}/logs?after=-1&follow=false")
        late = await _there(server, f"jobs/{writer.job}/logs?follow=false")
        (status,) = await _there(server, f"jobs/{writer.job}/status?follow=false")
        (queues,) = await _there(server, "queues?follow=false")
        (system,) = await _there(server, "system?follow=false")
    assert [message["seq"] for message in whole] == list(range(1200))
    assert [message["seq"] for message in late] == list(range(700, 1200))
    assert status["status"] == "running"
    assert [queue["name"] for queue in queues["queues"]] == ["live"]
    assert system["tasks"]["claimed"] == 1


async def _there(server: Serving, path: str) -> list[dict[str, Any]]:
    answer = await server.viewer.get(f"/api/v1/live/{path}")
    assert answer.status_code == 200
    return [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line.startswith("data: ")]


@pytest.mark.requirement("R90")
async def test_pings(serve_sqlite: Serve) -> None:
    """R90: each 60 s, which nobody waits for here; event streams have a comment each 15 s."""
    assert (Pace().ping, Pace().comment) == (60.0, 15.0)
    async with serve_sqlite() as server, listening(server.api) as url, store_of(server.app) as store:
        server.api.state.hub.pace = Pace(ping=0.2, comment=0.2)
        writer = await Writer.begin(store)
        async with (
            watching(url, f"/ws/job/{writer.job}/logs/", server.secrets["viewer"]) as client,
            streaming(url, f"/jobs/{writer.job}/logs", server.secrets["viewer"]) as events,
            asyncio.timeout(CEILING),
        ):
            assert [json.loads(await client.recv()) for _ in range(2)] == [{"type": "ping"}] * 2
            assert [await anext(events) for _ in range(2)] == [{"comment": "ping"}] * 2


async def test_pings_as_often_as_one_asks_for(serve_sqlite: Serve) -> None:
    """Whoever has to notice soon that a connection is dead, as the dashboard does, need not wait for a minute."""
    assert (read_ping(None, Pace()), read_ping("20", Pace()), read_ping("5", Pace())) == (60.0, 20.0, 5.0)
    async with serve_sqlite() as server, listening(server.api) as url:
        server.api.state.hub.pace = Pace(least_ping=0.1)
        async with (
            watching(url, "/ws/queues/?ping=0.2", server.secrets["viewer"]) as client,
            asyncio.timeout(CEILING / 2),
        ):
            said = [json.loads(await client.recv())["type"] for _ in range(3)]
            assert said == ["queues", "ping", "ping"]


@pytest.mark.parametrize("ping", ["4", "61", "soon", "nan", "-1"])
async def test_a_pace_of_pings_that_nobody_gets_is_refused(serve_sqlite: Serve, ping: str) -> None:
    async with (
        serve_sqlite() as server,
        listening(server.api) as url,
        watching(url, f"/ws/queues/?ping={ping}", server.secrets["viewer"]) as client,
    ):
        assert await closed(client) == 4400
        assert client.close_reason == f"ping={ping} is not from 5 to 60 seconds"


async def test_figures_of_queues_and_of_the_system(serve: Serve) -> None:
    """The latest ones, when they have changed; not every change."""
    async with serve() as server, listening(server.api) as url:
        async with (
            watching(url, "/ws/queues/", server.secrets["user"]) as queues,
            watching(url, "/ws/system/", server.secrets["user"]) as system,
        ):
            assert (await receive(queues))["queues"] == []
            assert (await receive(system))["tasks"].get("pending", 0) == 0
            task = server.app.get_task("add")
            for _ in range(5):
                await task.aenqueue(a=1, b=2)
            shown = [message async for message in _until(queues, lambda m: _depth(m) == 5)]
            counted = [message async for message in _until(system, lambda m: m["tasks"].get("pending") == 5)]
        assert shown[-1]["queues"][0]["name"] == "default"
        assert len(counted) <= 6
        await eventually(lambda: not server.api.state.hub.topics, message="nobody watches: nothing is read")


def _depth(message: dict[str, Any]) -> int:
    return sum(queue["depths"]["primary"] for queue in message["queues"])


async def _until(client: Any, wanted: Any) -> Any:
    while True:
        message = await receive(client)
        yield message
        if wanted(message):
            return


async def test_compression_does_not_hold_events_back(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store)
        await writer.say(100)
        headers = {"Authorization": f"Bearer {server.secrets['viewer']}", "Accept-Encoding": "gzip"}
        async with (
            httpx.AsyncClient(base_url=url, headers=headers, timeout=CEILING) as client,
            client.stream("GET", f"/api/v1/live/jobs/{writer.job}/logs") as response,
        ):
            assert "content-encoding" not in response.headers
            assert response.headers["cache-control"] == "no-store"
            assert "id: 0" in await anext(response.aiter_text())
