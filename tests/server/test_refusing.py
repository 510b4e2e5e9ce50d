"""What is misspelt, what is of one part of a body, and what was never there: refused, with its name."""

import pytest

from headrace.core.lanes import Lane
from headrace.core.task import Want, WorkerRecord
from tests.server.matrix import ROWS
from tests.server.routed import routed
from tests.server.serving import Serve

TASKS = "/api/v1/tasks"


async def test_a_parameter_that_a_route_does_not_have(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        answer = await server.viewer.get(f"{TASKS}?state=failed&limit=5&x=1")
        assert answer.status_code == 422
        body = answer.json()
        assert "'state', 'x'" in body["detail"]
        assert [wrong["pointer"] for wrong in body["errors"]] == ["/state", "/x"]
        assert "did you mean 'status'?" in body["errors"][0]["detail"]
        assert "did you mean 'status'?" in body["detail"]
        assert "did you mean" not in body["errors"][1]["detail"]
        assert (await server.viewer.get(f"{TASKS}?status=failed&limit=5")).status_code == 200
        assert (await server.viewer.get("/api/v1/queues?limit=1")).json()["detail"].endswith("it has none")
        assert (await server.nobody.get("/live?x=1")).status_code == 422
        written = await server.user.post(f"{TASKS}?dry_run=true", json={"name": "add", "args": [1, 2]})
        assert written.status_code == 422
        assert await server.app.tasks.alist() == []


async def test_no_route_takes_what_it_does_not_have(serve_sqlite: Serve):
    """Every one of them, but for pages that no router of ours serves."""
    async with routed(serve_sqlite) as server:
        for (method, path), row in ROWS.items():
            if method == "GET" and "{" not in path and not path.endswith(("docs", "openapi.json", "oauth2-redirect")):
                query = f"{row.query}&nothing-like-it=1" if row.query else "?nothing-like-it=1"
                answer = await server.admin.get(f"{path}{query}")
                assert answer.status_code == 422, path
                assert "nothing-like-it" in answer.text


async def test_the_place_of_what_is_wrong_in_a_batch(serve: Serve):
    async with routed(serve) as server:
        good, bad = {"name": "add", "args": [1, 2]}, {"name": "add", "args": ["x", 2]}
        answer = await server.user.post(f"{TASKS}/batch", json={"tasks": [good, good, bad, good]})
        assert answer.status_code == 422
        body = answer.json()
        assert body["detail"].startswith("/tasks/2: task add: ")
        assert [wrong["pointer"] for wrong in body["errors"]] == ["/tasks/2"]
        assert body["error"] == "ArgumentError"
        unknown = await server.user.post(f"{TASKS}/batch", json={"tasks": [good, {"name": "nothing"}]})
        assert unknown.json()["errors"][0]["pointer"] == "/tasks/1"
        strays = await server.user.post(f"{TASKS}/batch", json={"tasks": [good, {**good, "job": 999}]})
        assert (strays.status_code, strays.json()["errors"][0]["pointer"]) == (404, "/tasks/1")
        job = await server.user.post("/api/v1/jobs", json={"name": "j", "tasks": [good, bad]})
        assert (job.status_code, job.json()["errors"][0]["pointer"]) == (422, "/tasks/1")
        loose = await server.user.post("/api/v1/jobs", json={"name": "j", "tasks": [good, {**good, "after": ["a"]}]})
        assert (loose.status_code, loose.json()["errors"][0]["pointer"]) == (422, "/tasks/1")
        assert await server.app.tasks.alist() == []


async def test_the_place_of_a_key_that_is_held(serve: Serve):
    async with routed(serve) as server:
        good = {"name": "add", "args": [1, 2]}
        held = (await server.user.post(TASKS, json={**good, "unique": "mine"})).json()["id"]
        taken = {**good, "unique": "mine", "on_conflict": "reject"}
        answer = await server.user.post(f"{TASKS}/batch", json={"tasks": [good, taken]})
        body = answer.json()
        assert (answer.status_code, body["errors"][0]["pointer"]) == (409, "/tasks/1")
        assert (body["error"], body["task_id"]) == ("DuplicateTask", held)
        twice = [{**good, "idempotency_key": "k"}, good, {"name": "add", "args": [3, 4], "idempotency_key": "k"}]
        answer = await server.user.post(f"{TASKS}/batch", json={"tasks": twice})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/tasks/2")
        assert [task.id for task in await server.app.tasks.alist()] == [held]
        alone = await server.user.post(TASKS, json=taken)
        assert (alone.status_code, "errors" in alone.json()) == (409, False)


async def test_a_breaker_that_never_opened_is_not_reset(serve: Serve):
    async with routed(serve) as server:
        answer = await server.operator.post("/api/v1/breakers/nothing/reset")
        assert answer.status_code == 404
        remote = await server.operator.post("/api/v1/ledger/reset_breaker", json={"service": "nothing", "by": "me"})
        assert remote.status_code == 404
        assert (await server.viewer.get("/api/v1/breakers")).json() == []
        assert (await server.viewer.get("/api/v1/breakers/nothing/history")).status_code == 404


async def test_what_was_done_to_a_breaker(serve: Serve):
    async with routed(serve) as server:
        await server.app.engine.run(
            lambda store: store.open_breaker("mail/eu", by="w1", timeout=60, calls=9, failures=7)
        )
        path = "/api/v1/breakers/mail/eu"
        for reader, by in ((server.viewer, None), (server.operator, "w1")):  # who acted is for operators
            found = (await reader.get(f"{path}/history")).json()
            assert found["complete"] is True
            assert [(each["act"], each["by"], each["source"]) for each in found["items"]] == [("opened", by, "ledger")]
        assert (await server.operator.post(f"{path}/reset")).status_code == 200
        assert (await server.admin.post(f"{path}/open")).status_code == 200
        remote = await server.operator.post("/api/v1/ledger/reset_breaker", json={"service": "mail/eu", "by": "me"})
        assert remote.status_code == 200, remote.text
        found = (await server.operator.get(f"{path}/history")).json()
        assert [(each["act"], each["by"], each["source"], each["outcome"]) for each in found["items"]] == [
            ("reset", "operator", "audit", "done"),
            ("opened", "admin", "audit", "done"),
            ("reset", "operator", "audit", "done"),
            ("opened", "w1", "ledger", "done"),
        ]
        found = (await server.viewer.get(f"{path}/history")).json()
        assert {each["source"] for each in found["items"]} == {"ledger"}, "what was done by hand is for operators"
        assert [each["act"] for each in found["items"]] == ["closed", "opened", "closed", "opened"]


async def test_events_that_were_sent(serve: Serve):
    async with routed(serve) as server:
        for n in range(3):
            payload = {"amount": n, "api_key": "sk-123"}
            sent = await server.operator.post(
                "/api/v1/events", json={"event": "paid", "key": f"{n}", "payload": payload}
            )
            assert sent.status_code == 201
        body = (await server.viewer.get("/api/v1/events?limit=2")).json()
        assert [(each["name"], each["key"]) for each in body["items"]] == [("paid", "2"), ("paid", "1")]
        assert body["items"][0]["payload"] == {"amount": 2, "api_key": "[redacted]"}
        rest = (await server.viewer.get(f"/api/v1/events?limit=2&cursor={body['next']}")).json()
        assert ([each["key"] for each in rest["items"]], rest["next"]) == (["0"], None)
        one = (await server.viewer.get("/api/v1/events?name=paid&key=1")).json()
        assert [each["key"] for each in one["items"]] == ["1"]
        assert (await server.viewer.get("/api/v1/events?key=1")).status_code == 422
        assert (await server.user.get("/api/v1/events")).status_code == 403
        audit = (await server.admin.get("/api/v1/audit?act=events.send")).json()["items"]
        assert [entry["subject"] for entry in audit] == ["event/paid/2", "event/paid/1", "event/paid/0"]


async def test_workers_and_what_they_hold(serve: Serve):
    async with routed(serve) as server:
        now = await server.app.engine.run(lambda store: store.now())
        record = WorkerRecord(
            id="w1", kind="pool", hostname="here", pid=1, state="active", beat=0, lease=600.0, queues=(), version="1",
            started_at=now, last_heartbeat=now, stopped_at=None, tasks_completed=0, tasks_failed=0,
        )  # fmt: skip
        await server.app.engine.run(lambda store: store.register(record))
        mine = await server.user.post(TASKS, json={"name": "add", "args": [1, 2]})
        await server.other.post(TASKS, json={"name": "add", "args": [3, 4]})
        want = Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=10)
        assert len(await server.app.engine.run(lambda store: store.claim("w1", [want]))) == 2
        [worker] = (await server.viewer.get("/api/v1/workers")).json()
        assert (worker["id"], worker["alive"], worker["holds"]) == ("w1", True, {"n": 2, "more": False})
        assert 0 <= worker["heartbeat_age"] < 600
        shown = (await server.viewer.get("/api/v1/workers/w1")).json()
        assert len(shown["holding"]) == 2
        own = (await server.user.get("/api/v1/workers/w1")).json()
        assert [task["id"] for task in own["holding"]] == [mine.json()["id"]]
        assert (await server.viewer.get("/api/v1/workers/nobody")).status_code == 404
        await server.app.engine.run(lambda store: store.deregister("w1"))
        [gone] = (await server.viewer.get("/api/v1/workers")).json()
        assert (gone["alive"], gone["holds"]["n"]) == (False, 0)


@pytest.mark.parametrize(("fires", "runs"), [(0, 0), (5, 3), (100, 20)])
async def test_next_fires_and_last_runs(serve: Serve, fires: int, runs: int):
    async with routed(serve) as server:
        made = {"name": "hourly", "task": "add", "args": [1, 2], "every": 3600}
        assert (await server.operator.post("/api/v1/schedules", json=made)).status_code == 201
        for _ in range(4):
            await server.operator.post("/api/v1/schedules/hourly/run")
        [shown] = (await server.viewer.get(f"/api/v1/schedules?fires={fires}&runs={runs}")).json()
        assert (len(shown["upcoming"]), len(shown["last_runs"])) == (fires, min(runs, 4))
        assert shown["upcoming"] == sorted(shown["upcoming"])
        one = (await server.viewer.get(f"/api/v1/schedules/hourly?fires={fires}")).json()
        assert (one["upcoming"], len(one["runs"])) == (shown["upcoming"], 4)
        assert {run["status"] for run in one["runs"]} == {"pending"}
        assert (await server.viewer.get("/api/v1/schedules?fires=101")).status_code == 422
