"""Whoever comes late, or comes back, sees everything once and in order."""

import asyncio
from typing import Any

import pytest

from tests.server.live.watching import numbers, receive, receive_until, watching
from tests.server.live.writing import Writer, store_of
from tests.server.serving import Serve, listening
from tests.support.sizes import sized
from tests.support.waiting import eventually


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


@pytest.mark.chaos
@pytest.mark.requirement("R89", "R90")
async def test_joining_while_lines_are_written(serve: Serve) -> None:
    """One is there before, nine come one after the other while a thousand lines a second are written. Each sees a whole
    stretch up to the end: no gap, no duplicate, in order."""
    total = sized(small=900, full=8000)
    async with serve() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store)

        async def come(number: int) -> list[dict[str, Any]]:
            await eventually(lambda: writer.written >= number * total // 12)
            async with watching(url, f"/ws/job/{writer.job}/logs/", server.secrets["viewer"]) as client:
                return await receive_until(client, total - 1)

        await writer.say()
        async with watching(url, f"/ws/job/{writer.job}/logs/", server.secrets["viewer"]) as early:
            first = await receive(early)
            rest, *seen, _ = await asyncio.gather(
                receive_until(early, total - 1), *map(come, range(1, 10)), writer.say_at(1000, total=total)
            )
        seen.append([first, *rest])
    for messages in seen:
        first = messages[0]["seq"]
        assert numbers(messages) == list(range(first, total))
        live = [message["seq"] for message in messages if "buffered" not in message]
        assert live == list(range(total - len(live), total))
        assert len(messages) - len(live) <= 500
        assert [message["message"] for message in messages] == [f"line {number}" for number in range(first, total)]
    assert numbers(seen[-1])[0] == 0


async def test_resuming_further_back_than_a_late_join(serve: Serve) -> None:
    """Everything from there, in pages, while more is written; what was seen is not sent again."""
    async with serve() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store)
        await writer.say(1300)
        path = f"/ws/job/{writer.job}/logs/"
        async with (
            watching(url, f"{path}?after=-1", server.secrets["viewer"]) as whole,
            watching(url, f"{path}?after=41", server.secrets["viewer"]) as part,
            watching(url, f"{path}?after=1297", server.secrets["viewer"]) as end,
        ):
            await writer.say_at(1000, total=1400)
            seen = [await receive_until(client, 1399) for client in (whole, part, end)]
    assert [numbers(messages) for messages in seen] == [
        list(range(1400)),
        list(range(42, 1400)),
        list(range(1298, 1400)),
    ]


@pytest.mark.requirement("R85", "R88", "R89", "R90")
async def test_the_status_of_a_job(serve: Serve) -> None:
    """R89: the current status first. R85: its words. R90: `seq` from 0. R88: the ledger says the same."""
    async with serve() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store)
        path = f"/ws/job/{writer.job}/status/"
        async with watching(url, path, server.secrets["viewer"]) as client:
            current = await receive(client)
            await writer.finish()
            ended = await receive(client)
        async with watching(url, f"{path}?after=-1", server.secrets["viewer"]) as client:
            whole = await receive_until(client, ended["seq"])
        async with watching(url, path, server.secrets["viewer"]) as client:
            late = await receive(client)
        job = await server.app.jobs.aget(writer.job)
    counts = {"job": str(writer.job), "total": 1, "completed": 0, "failed": 0, "cancelled": 0}
    assert {**current, "data": {**current["data"], "at": ""}} == {
        "type": "job_status_update", "status": "running", "data": {**counts, "at": ""}, "seq": 1, "buffered": True,
    }  # fmt: skip
    assert (ended["status"], ended["seq"], ended["data"]["completed"]) == ("completed", 2, 1)
    assert "buffered" not in ended
    assert [(message["seq"], message["status"]) for message in whole] == [
        (0, "pending"), (1, "running"), (2, "completed"),
    ]  # fmt: skip
    assert late == {**ended, "buffered": True}
    assert (job.state, job.completed) == (late["status"], late["data"]["completed"])
