"""What the first page and lists are told while it happens."""

import json
from typing import Any

from tests.server.routed import routed
from tests.server.serving import Serve, Serving
from tests.support.waiting import eventually


async def said(server: Serving, topic: str, caller: str = "viewer") -> dict[str, Any]:
    """The message that a late watcher is shown."""
    answer = await server.of(caller).get(f"/api/v1/live/{topic}?follow=false")
    assert answer.status_code == 200, answer.text
    [data] = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    return json.loads(data)


async def test_the_overview_counts_the_last_two_minutes(serve: Serve):
    async with routed(serve) as server:
        await server.user.post("/api/v1/tasks", json={"name": "add", "args": [1, 2]})
        counts = [("w", "default", "add", "completed", 3), ("w", "default", "fail", "failed", 1)]
        await server.app.engine.run(lambda store: store.count_outcomes(counts))
        message = await said(server, "overview")
        assert message["type"] == "overview"
        assert len(message["minutes"]) == 2
        assert message["minutes"][0]["at"] < message["minutes"][1]["at"] <= message["at"]
        assert sum(minute["completed"] for minute in message["minutes"]) == 3
        assert sum(minute["failed"] for minute in message["minutes"]) == 1
        assert message["states"]["pending"] == 1
        [queue] = [queue for queue in message["queues"] if queue["name"] == "default"]
        assert (queue["depths"]["primary"], queue["paused"]) == (1, False)
        assert set(message["workers"]) == {"alive", "silent", "stopping", "hosts"}


async def test_a_list_is_told_when_it_begins_with_another(serve: Serve):
    async with routed(serve) as server:
        nothing = await said(server, "tasks")
        assert (nothing["newest"], nothing["ended"], nothing["ended_at"]) == (None, None, None)
        mine = (await server.user.post("/api/v1/tasks", json={"name": "add", "args": [1, 2]})).json()["id"]

        async def told(id: int, caller: str) -> bool:
            return (await said(server, "tasks", caller))["newest"] == str(id)

        await eventually(lambda: told(mine, "user"))
        theirs = (await server.other.post("/api/v1/tasks", json={"name": "add", "args": [1, 2]})).json()["id"]
        await eventually(lambda: told(max(mine, theirs), "viewer"))
        assert (await said(server, "tasks", "user"))["newest"] == str(mine)
        await server.user.post(f"/api/v1/tasks/{mine}/cancel")

        async def ended() -> bool:
            return (await said(server, "tasks", "user"))["ended"] == str(mine)

        await eventually(ended)
        assert (await said(server, "tasks", "other"))["ended"] is None
