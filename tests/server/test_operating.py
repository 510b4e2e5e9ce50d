"""What operators and probes use: queues, schedules, breakers, events, workers, audit, metrics, health."""

import asyncio
import builtins
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import current
from headrace.core.breaker import BreakerRecord, BreakerStatus
from headrace.server.breaker_history import history_of
from headrace.server.probes import KEPT_FOR, Probes
from headrace.server.routes import events
from headrace.testing import adrain
from tests.server.routed import make_app, routed
from tests.server.serving import Serve
from tests.support.waiting import eventually

V1 = "/api/v1"


async def test_queues(serve: Serve):
    async with routed(serve) as server:
        await server.user.post(f"{V1}/tasks", json={"name": "greet", "args": ["x"]})

        async def mail() -> dict[str, Any]:
            return next(queue for queue in (await server.viewer.get(f"{V1}/queues")).json() if queue["name"] == "mail")

        found = await mail()
        assert (found["paused"], found["depths"]["primary"], found["retry_ratio"]) == (False, 1, 0.3)
        assert (found["limit"], found["rate"]) == (None, None)
        assert (await server.operator.post(f"{V1}/queues/mail/pause")).json()["paused"] is True
        assert (await adrain(server.app)).runs == 0
        assert (await server.operator.post(f"{V1}/queues/mail/resume")).json()["paused"] is False
        limited = await server.operator.put(f"{V1}/queues/mail/limit", json={"n": 3})
        assert limited.json()["limit"] == 3
        rated = await server.operator.put(f"{V1}/queues/mail/rate", json={"n": 10, "per": 60, "burst": 2})
        assert rated.json()["rate"] == {"n": 10, "per": 60.0, "burst": 2}
        assert (await mail())["limit"] == 3
        await server.operator.put(f"{V1}/queues/mail/limit", json={"n": None})
        lifted = await server.operator.put(f"{V1}/queues/mail/rate", json={"n": None})
        assert (lifted.json()["limit"], lifted.json()["rate"]) == (None, None)
        assert (await adrain(server.app)).completed == 1


async def test_a_schedule_keeps_the_queue_and_the_priority_that_were_chosen_for_it(serve: Serve):
    async with routed(serve) as server:
        given = {"name": "chosen", "task": "greet", "args": ["ada"], "every": 3600, "queue": "slow", "priority": 7}
        place = (await server.operator.post(f"{V1}/schedules", json=given)).headers["Location"]

        async def changed(**change: Any) -> tuple[str, str, int]:
            answer = await server.operator.patch(place, json=change)
            assert answer.status_code == 200, answer.text
            record = (await server.app.schedules.aget(answer.json()["name"])).record
            assert record.task.queue == answer.json()["queue"]
            return record.task.name, record.task.queue, record.task.priority

        assert await changed(task="greet", args=["bob"]) == ("greet", "slow", 7)
        assert await changed(task="add", args=[1, 2]) == ("add", "slow", 7)
        assert await changed(jitter=5) == ("add", "slow", 7)
        fired = (await server.operator.post(f"{place}/run")).json()["task"]
        assert (await server.app.tasks.aget(fired)).queue == "slow"

        # What was never chosen is that of its task.
        given = {"name": "plain", "task": "greet", "args": ["ada"], "every": 3600}
        place = (await server.operator.post(f"{V1}/schedules", json=given)).headers["Location"]
        assert await changed(task="greet", args=["bob"]) == ("greet", "mail", 0)
        assert await changed(task="add", args=[1, 2]) == ("add", "default", 0)


@pytest.mark.requirement("R105")
async def test_schedules(serve: Serve):
    """R105: POST …/trigger/ gives 202 and the task, which is there and runs."""
    async with routed(serve) as server:
        given = {"name": "morning", "task": "greet", "args": ["ada"], "kwargs": {"password": "hunter2"}}
        made = await server.operator.post(f"{V1}/schedules", json={**given, "cron": "0 9 * * *", "tz": "Europe/Berlin"})
        assert made.status_code == 201, made.text
        place = made.headers["Location"]
        assert place == f"{V1}/schedules/morning"
        assert (await server.operator.post(f"{V1}/schedules", json={**given, "every": 60})).status_code == 409
        shown = (await server.viewer.get(place)).json()
        assert shown["arguments"] == {"name": "ada", "password": "[redacted]"}
        assert len(shown["upcoming"]) == 5
        for path in ("trigger/", "trigger", "run"):
            fired = await server.operator.post(f"{place}/{path}")
            assert fired.status_code == 202
            assert fired.headers["Location"] == f"{V1}/tasks/{fired.json()['task']}"
        await adrain(server.app)
        runs = (await server.viewer.get(f"{place}/runs", params={"limit": 2})).json()
        more = (await server.viewer.get(f"{place}/runs", params={"limit": 2, "cursor": runs["next"]})).json()
        assert [run["status"] for run in runs["items"] + more["items"]] == ["completed"] * 3
        assert len((await server.viewer.get(place)).json()["runs"]) == 3
        changed = await server.operator.patch(place, json={"cron": "0 10 * * *", "jitter": 5})
        assert (changed.json()["jitter"], "Berlin" in changed.json()["when"]) == (5, True)
        other = await server.operator.patch(place, json={"task": "add", "args": [1, 2]})
        assert (other.json()["task"], other.json()["arguments"]) == ("add", {"a": 1, "b": 2})
        assert (await server.operator.patch(place, json={})).status_code == 422
        assert (await server.operator.post(f"{place}/pause")).json()["paused"] is True
        assert (await server.operator.post(f"{place}/resume")).json()["paused"] is False
        assert [each["name"] for each in (await server.viewer.get(f"{V1}/schedules")).json()] == ["morning"]
        assert (await server.operator.delete(place)).status_code == 204
        assert (await server.operator.delete(place)).status_code == 404
        assert (await server.operator.post(f"{place}/trigger/")).status_code == 404


@pytest.mark.requirement("F74")
async def test_breakers(serve: Serve):
    """F74: opened by hand it stays open until it is reset by hand."""
    async with routed(serve) as server:
        assert (await server.user.get(f"{V1}/breakers")).json() == []
        opened = (await server.operator.post(f"{V1}/breakers/chat/open")).json()
        assert (opened["status"], opened["forced"], opened["changed_by"]) == ("open", True, "operator")
        (shown,) = (await server.admin.get(f"{V1}/breakers")).json()
        assert shown == opened
        # Who acted is for those to know who might have.
        for reader in (server.viewer, server.user):
            assert (await reader.get(f"{V1}/breakers")).json() == [{**opened, "changed_by": None}]
            (record,) = (await reader.post(f"{V1}/ledger/breakers")).json()
            assert (record["service"], record["changed_by"]) == ("chat", "")
        (record,) = (await server.operator.post(f"{V1}/ledger/breakers")).json()
        assert record["changed_by"] == "operator"
        assert (await server.operator.post(f"{V1}/breakers/chat/reset")).json()["status"] == "closed"
        timed = (await server.operator.post(f"{V1}/breakers/chat/open", json={"timeout": 600})).json()
        assert (timed["forced"], timed["until"] is not None) == (False, True)


async def test_the_history_of_a_breaker(serve: Serve):
    async with routed(serve) as server:
        run = server.app.engine.run
        history = f"{V1}/breakers/chat/history"

        async def told(who: str = "operator") -> list[tuple[object, ...]]:
            answer = await server.of(who).get(history)
            assert answer.status_code == 200, answer.text
            assert answer.json()["complete"] is True
            return [(item["act"], item["by"], item["source"], item["calls"]) for item in answer.json()["items"]]

        opened = await run(lambda store: store.open_breaker("chat", by="w1", timeout=0.05, calls=12, failures=7))
        assert ("opened", "w1", "ledger", 12) in await told()

        async def is_over() -> bool:
            return await run(lambda store: store.probe_breaker("chat", by="w2", revision=opened.revision, patience=60))

        await eventually(is_over)
        half_open = ("half_open", None, "ledger", None)
        assert await told() == [half_open, ("opened", "w1", "ledger", 12)]
        assert await run(lambda store: store.close_breaker("chat", by="w2", revision=opened.revision))
        await server.operator.post(f"{V1}/breakers/chat/open")
        # It changes nothing, and was done all the same.
        await server.admin.post(f"{V1}/breakers/chat/open")
        await server.operator.post(f"{V1}/breakers/chat/reset")
        assert await told() == [
            ("reset", "operator", "audit", None),
            ("opened", "admin", "audit", None),
            ("opened", "operator", "audit", None),
            ("closed", "w2", "ledger", None),
            half_open,
            ("opened", "w1", "ledger", 12),
        ]
        # What was tried, and by whom, is not for everybody.
        assert (
            await told("viewer")
            == await told("user")
            == [
                ("closed", None, "ledger", None),
                ("opened", None, "ledger", None),
                ("closed", None, "ledger", None),
                half_open,
                ("opened", None, "ledger", 12),
            ]
        )
        for n in range(100):
            await run(lambda store, n=n: store.reset_breaker("chat", by=f"w{n}"))
        assert (await server.viewer.get(history)).json()["complete"] is False
        body = (await server.operator.get(history)).json()
        assert [item["by"] for item in body["items"][:2]] == ["w99", "w98"]
        assert len([item for item in body["items"] if item["source"] == "ledger"]) == 100


def test_the_last_change_is_told_of_a_breaker_whose_changes_were_not_kept() -> None:
    at = datetime(2026, 5, 1, 8, tzinfo=UTC)
    record = BreakerRecord(
        service="chat", status=BreakerStatus.HALF_OPEN, forced=False, until=at + timedelta(minutes=1), probe_by=None,
        calls=9, failures=9, revision=7, changed_at=at, changed_by="w1",
    )  # fmt: skip
    told = history_of(record, [], [], now=at + timedelta(minutes=5))
    assert [(item.act, item.at, item.calls) for item in told.items] == [
        ("half_open", at + timedelta(minutes=1), None),
        ("opened", at, 9),
    ]
    assert not told.complete


async def test_an_event_lets_a_task_go_on(serve: Serve):
    app = make_app(serve.url)

    @app.task(name="wait")
    async def wait(order: str) -> Any:
        return await current.wait("paid", order)

    async with routed(serve, app) as server:
        id = (await server.user.post(f"{V1}/tasks", json={"name": "wait", "args": ["17"]})).json()["id"]
        await adrain(app)
        assert (await server.user.get(f"{V1}/tasks/{id}")).json()["state"] != "completed"
        sent = await server.operator.post(f"{V1}/events", json={"event": "paid", "key": "17", "payload": {"sum": 12}})
        assert sent.status_code == 201
        await adrain(app)
        assert (await server.user.get(f"{V1}/results/{id}")).json()["value"] == {"sum": 12}


async def test_events_of_a_name_are_looked_for_as_long_as_there_is_time(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    """Without a key no index has them in order: a page says where to go on, and a long history makes none slower."""
    async with routed(serve) as server:
        ids: list[int] = []
        for n, name in enumerate(["paid", *["sent"] * 7, "paid", "paid"]):
            answer = await server.operator.post(f"{V1}/events", json={"event": name, "key": str(n), "payload": n})
            ids.append(answer.json()["id"])

        async def pages(**asked: object) -> list[list[int]]:
            found: list[list[int]] = []
            cursor: str | None = None
            while not found or cursor is not None:
                more = {} if cursor is None else {"cursor": cursor}
                answer = await server.viewer.get(f"{V1}/events", params={"name": "paid", **asked, **more})
                assert answer.status_code == 200, answer.text
                found.append([item["id"] for item in answer.json()["items"]])
                assert all(item["name"] == "paid" for item in answer.json()["items"])
                cursor = answer.json()["next"]
            return found

        wanted = [ids[9], ids[8], ids[0]]
        assert await pages() == [wanted]
        assert await pages(limit=2) == [wanted[:2], wanted[2:]]
        assert await pages(key="8") == [[ids[8]]]
        monkeypatch.setattr(events, "_WINDOW", 4)
        assert await pages() == [wanted]
        assert await pages(limit=1) == [[each] for each in wanted]
        monkeypatch.setattr(events, "_PATIENCE", -1)
        assert await pages() == [wanted[:2], [], wanted[2:]]


async def test_what_was_done_is_on_the_list(serve: Serve):
    async with routed(serve) as server:
        id = (await server.user.post(f"{V1}/tasks", json={"name": "add", "args": [1, 2]})).json()["id"]
        await server.user.post(f"{V1}/tasks/{id}/cancel", headers={"X-Request-ID": "my-own-request-1"})
        await server.user.post(f"{V1}/tasks/{id}/cancel")
        await server.operator.post(f"{V1}/queues/mail/pause")
        entries = (await server.admin.get(f"{V1}/audit")).json()["items"]
        told = [(entry["actor"], entry["act"], entry["subject"], entry["outcome"]) for entry in entries]
        assert told[0] == ("operator", "queues.pause", "queue/mail", "done")
        assert told[1][:3] == ("user", "tasks.cancel", f"task/{id}")
        assert told[1][3] not in (None, "done")
        assert told[2] == ("user", "tasks.cancel", f"task/{id}", "done")
        assert entries[2]["request"] == "my-own-request-1"
        mine = (await server.admin.get(f"{V1}/audit", params={"actor": "user", "limit": 1})).json()
        rest = (await server.admin.get(f"{V1}/audit", params={"actor": "user", "cursor": mine["next"]})).json()
        assert [entry["id"] for entry in mine["items"] + rest["items"]] == [entries[1]["id"], entries[2]["id"]]


async def test_probes_and_metrics(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    async with routed(serve) as server:
        await server.user.post(f"{V1}/tasks", json={"name": "greet", "args": ["x"]})
        assert (await server.nobody.get("/live")).json() == {"live": True}
        assert (await server.nobody.get("/ready")).json()["ready"] is True
        page = await server.viewer.get("/metrics")
        assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert 'queue_depth{lane="primary",queue="mail"} 1.0' in page.text
        assert (await server.viewer.get(f"{V1}/workers")).status_code == 200

        real = builtins.__import__

        def without(name: str, *rest: Any, **more: Any) -> Any:
            if name == "headrace.telemetry.prometheus.collector":
                raise ModuleNotFoundError("no prometheus_client", name="prometheus_client")
            return real(name, *rest, **more)

        monkeypatch.setattr(builtins, "__import__", without)
        missing = await server.viewer.get("/metrics")
        assert (missing.status_code, "headrace[metrics]" in missing.json()["detail"]) == (404, True)


async def test_a_database_that_is_away_is_not_ready(tmp_path: Any):
    """The process is live, and says why it is not ready, without the address of the database."""
    from headrace import App
    from headrace.server.application import create_application
    from headrace.server.options import ServerOptions
    from tests.server.serving import Serving

    app = App("postgresql://nobody:hunter2@127.0.0.1:1/none")
    api = create_application(app, ServerOptions(auth=False))
    server = Serving(app, api, {})
    assert (await server.nobody.get("/live")).status_code == 200
    answer = await server.nobody.get("/ready")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)
    assert "hunter2" not in answer.text
    assert "127.0.0.1" not in answer.json()["detail"]
    await server.aclose()
    await app.aclose()


@pytest.mark.parametrize("path", ["/ready", "/health"])
async def test_a_flood_of_probes_looks_at_the_store_once(
    serve_sqlite: Serve, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Those that come at once share one look, and its answer is told for a second; then it is looked at again."""
    async with routed(serve_sqlite) as server:
        now, looks, probes = 0.0, 0, Probes(clock=lambda: now)
        look = probes._look

        async def counted(*arguments: Any) -> Any:
            nonlocal looks
            looks += 1
            return await look(*arguments)

        monkeypatch.setattr(probes, "_look", counted)
        monkeypatch.setattr(server.api.state, "probes", probes)
        answers = await asyncio.gather(*(server.nobody.get(path) for _ in range(50)))
        answers += [await server.nobody.get(path) for _ in range(20)]
        assert {answer.status_code for answer in answers} == {200}
        assert looks == 1
        now += KEPT_FOR
        assert (await server.nobody.get(path)).status_code == 200
        assert looks == 2
