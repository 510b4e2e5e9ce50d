"""The mark that stands for a secret is not taken for its value, and no secret is on the list of what was done."""

from typing import Any

import pytest

from tests.server.routed import routed
from tests.server.serving import Serve

SCHEDULES = "/api/v1/schedules"
SECRET = "postgresql://app:hunter2@db/x"


@pytest.mark.parametrize(
    ("call", "pointer"),
    [
        ({"kwargs": {"name": "ada", "password": "[redacted]"}}, "/kwargs/password"),
        ({"args": ["postgresql://app:[redacted]@db/x"]}, "/args/0"),
        ({"kwargs": {"name": "ada", "nested": {"dsn": ["x", "--password=[redacted]"]}}}, "/kwargs/nested/dsn/1"),
    ],
)
async def test_a_schedule_does_not_take_the_mark_for_the_secret(
    serve: Serve, call: dict[str, Any], pointer: str
) -> None:
    async with routed(serve) as server:
        given = {"name": "nightly", "task": "greet", "kwargs": {"name": SECRET}, "every": 3600}
        refused = await server.operator.post(SCHEDULES, json={**given, "kwargs": {}, **call})
        assert (refused.status_code, refused.json()["pointer"]) == (422, pointer), refused.text
        assert await server.app.schedules.alist() == []
        assert (await server.operator.post(SCHEDULES, json=given)).status_code == 201
        shown = (await server.operator.get(f"{SCHEDULES}/nightly")).json()["arguments"]
        assert shown == {"name": "postgresql://app:[redacted]@db/x"}
        for change in ({"task": "greet", **call}, {"task": "greet", "kwargs": shown}):
            refused = await server.operator.patch(f"{SCHEDULES}/nightly", json=change)
            assert (refused.status_code, refused.json()["title"]) == (422, "Bad schedule")
        record = (await server.app.schedules.aget("nightly")).record
        assert SECRET in record.task.arguments


async def test_a_changed_call_is_not_on_the_list_of_what_was_done(serve_sqlite: Serve) -> None:
    async with routed(serve_sqlite) as server:
        given = {"name": "nightly", "task": "greet", "args": ["ada"], "every": 3600}
        assert (await server.operator.post(SCHEDULES, json=given)).status_code == 201
        change = {"task": "greet", "args": ["ada", "hunter2"], "jitter": 5}
        assert (await server.operator.patch(f"{SCHEDULES}/nightly", json=change)).status_code == 200
        answer = await server.admin.get("/api/v1/audit?act=schedules.change")
        (entry,) = answer.json()["items"]
        assert (entry["detail"]["task"], entry["detail"]["jitter"]) == ("greet", 5)
        assert "hunter2" not in answer.text
