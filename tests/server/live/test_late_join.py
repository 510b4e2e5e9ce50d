"""Whoever comes late, or comes back, sees everything once and in order."""

import asyncio

import pytest

from tests.server.live.watching import numbers, receive, receive_until, watching
from tests.server.live.writing import Writer, store_of
from tests.server.serving import Serve, listening


@pytest.mark.requirement("R86", "R89", "R90")
async def test_a_late_joiner_sees_the_last_500_lines_and_then_what_comes(serve: Serve) -> None:
    async with serve() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store)
        await writer.say(600)
        async with watching(url, f"/ws/job/{writer.job}/logs/", server.secrets["viewer"]) as client:
            before = await receive_until(client, 599)
            await writer.say(3)
            after = await receive_until(client, 602)
    assert numbers(before) == list(range(100, 600))
    assert all(message["buffered"] is True for message in before)
    assert numbers(after) == [600, 601, 602]
    assert not any("buffered" in message for message in after)
    assert {key: after[-1][key] for key in ("type", "message", "seq", "stream", "task")} == {
        "type": "task_log_message", "message": "line 602", "seq": 602, "stream": "info", "task": str(writer.task),
    }  # fmt: skip
