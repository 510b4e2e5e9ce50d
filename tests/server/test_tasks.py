"""/tasks over HTTP: what is submitted, what is shown, what is acted on."""

import pytest

from headrace.testing import adrain
from tests.server.routed import routed
from tests.server.serving import Serve

TASKS = "/api/v1/tasks"


@pytest.mark.requirement("F1", "F6")
async def test_a_task_goes_in_over_http_and_its_result_comes_out(serve: Serve):
    """F1: submitted over HTTP, queued, executed by a worker, and the front end reads what came of it. F6: every instant
    ends in Z, which is UTC."""
    async with routed(serve) as server:
        made = await server.user.post(TASKS, json={"name": "add", "kwargs": {"a": 2, "b": 3}})
        assert made.status_code == 201, made.text
        body = made.json()
        assert body == {"id": body["id"], "name": "add", "queue": "default", "state": "pending", "created": True}
        place = made.headers["Location"]
        assert place == f"{TASKS}/{body['id']}"
        waiting = (await server.user.get(place)).json()
        assert (waiting["state"], waiting["owner"], waiting["arguments"]) == ("pending", "user", {"a": 2, "b": 3})
        assert (await server.user.get(f"{place}/result")).status_code == 409
        await adrain(server.app)
        done = (await server.user.get(place)).json()
        assert done["state"] == "completed"
        for name in ("created_at", "enqueued_at", "eligible_at", "started_at", "finished_at"):
            assert done[name].endswith("Z"), name
        assert [attempt["state"] for attempt in done["attempts"]] == ["succeeded"]
        result = (await server.user.get(f"{place}/result")).json()
        assert (result["value"], result["error"]) == (5, None)
        assert (await server.user.get(f"/api/v1/results/{body['id']}")).json() == result
        assert (await server.user.get(f"{place}/attempts")).json() == done["attempts"]
