"""Whatever is sent that is not as it has to be: a problem document that says so, and nothing is written."""

import json
from typing import Any

import pytest

from tests.server.routed import routed
from tests.server.serving import Serve, Serving

V1 = "/api/v1"
ADD = {"name": "add", "args": [1, 2]}
DEEP = "[" * 3000 + "]" * 3000

BODIES: dict[str, list[Any]] = {
    f"{V1}/tasks": [
        None,
        [],
        "add",
        {},
        {"name": ""},
        {"name": "add"},
        {"name": "add", "args": [1]},
        {"name": "add", "args": [1, 2, 3]},
        {"name": "add", "args": [1, "two"]},
        {"name": "add", "kwargs": {"a": 1, "b": 2, "c": 3}},
        {"name": "add", "args": [1], "kwargs": {"a": 1}},
        {"name": "no.such.task"},
        {"name": "add\0", "args": [1, 2]},
        {**ADD, "surprise": True},
        {**ADD, "queue": "a,b"},
        {**ADD, "queue": " "},
        {**ADD, "queue": "x" * 301},
        {**ADD, "priority": 2**31},
        {**ADD, "priority": "high"},
        {**ADD, "delay": -1},
        {**ADD, "delay": 1e300},
        {**ADD, "run_at": "tomorrow"},
        {**ADD, "run_at": "2031-05-01T08:00:00"},
        {**ADD, "run_at": "9999-12-31T23:59:59Z"},
        {**ADD, "run_at": "0001-01-01T00:00:00+14:00"},
        {**ADD, "delay": 1, "run_at": "2031-05-01T08:00:00Z"},
        {**ADD, "timeout": 0},
        {**ADD, "soft_timeout": 10, "timeout": 5},
        {**ADD, "unique": ""},
        {**ADD, "on_conflict": "explode"},
        {**ADD, "job": 0},
        {**ADD, "job": 2**63},
        {**ADD, "command": {"argv": ["true"]}},
        {"command": {"argv": []}},
        {"command": {"argv": "true"}},
        {"command": {"argv": ["tr\0ue"]}},
        {"command": {"argv": ["true"], "env": {"A=B": "c"}}},
        {"command": {"argv": ["true"]}, "args": [1]},
        {"name": "total", "args": [[10**400]]},
        {"name": "greet", "kwargs": {"name": "\ud800"}},
        {"name": "greet", "kwargs": {"name": 5}},
        {"name": "greet", "kwargs": {"name": "x", "nested": {"huge": 2**70}}},
        {**ADD, "metadata": {"n": 2**70}},
        {**ADD, "metadata": []},
    ],
    f"{V1}/jobs": [
        {"name": "j"},
        {"name": "j", "tasks": []},
        {"name": "", "tasks": [ADD]},
        {"name": "j", "tasks": [{"name": "no.such.task"}]},
        {"name": "j", "tasks": [{"name": "add", "args": [1, "x"]}]},
        {"name": "j", "tasks": [{**ADD, "after": ["b"]}, {**ADD, "key": "b"}]},
        {"name": "j", "tasks": [{**ADD, "key": "a"}, {**ADD, "key": "a"}]},
        {"name": "j", "tasks": [{**ADD, "key": "a", "after": ["a"]}]},
        {"name": "j", "tasks": [{**ADD, "kind": "on_whim"}]},
        {"name": "j", "tasks": [{"name": "total", "args": [{"$result": "nobody"}]}]},
        {"name": "j", "tasks": [ADD], "timeout": 0},
        {"name": "j", "tasks": [ADD] * 1001},
    ],
    f"{V1}/schedules": [
        {"name": "s", "task": "add", "args": [1, 2]},
        {"name": "s", "task": "add", "args": [1, 2], "cron": "0 9 * * *", "every": 5},
        {"name": "s", "task": "add", "args": [1, 2], "cron": "often"},
        {"name": "s", "task": "add", "args": [1, 2], "cron": "0 9 * * *", "tz": "Mars/Olympus"},
        {"name": "s", "task": "add", "args": [1, 2], "every": 5, "tz": "UTC"},
        {"name": "s", "task": "add", "args": [1, 2], "at": "2001-01-01T00:00:00Z"},
        {"name": "s", "task": "add", "every": 5},
        {"name": "s", "task": "no.such.task", "every": 5},
        {"name": " s ", "task": "add", "args": [1, 2], "every": 5},
        {"name": "s", "task": "add", "args": [1, 2], "every": 5, "overlap": "perhaps"},
    ],
    f"{V1}/events": [
        {},
        {"event": ""},
        {"event": "x\0"},
        {"event": "x", "key": "k" * 201},
        {"event": "x", "payload": {"n": 2**70}},
    ],
    f"{V1}/tasks/retry": [{}, {"status": ["sleepy"]}, {"status": ["dlq", "failed"]}, {"all": True, "limit": 0}],
    f"{V1}/tasks/cancel": [{}, {"status": ["completed"]}],
    f"{V1}/tasks/delete": [{}, {"queue": [""]}],
    f"{V1}/dead-letters/replay": [{}, {"all": "perhaps"}],
    f"{V1}/dead-letters/discard": [{}],
    f"{V1}/queues/a,b/pause": [None],
    f"{V1}/breakers/chat/open": [{"timeout": 0}, {"timeout": "long"}],
}
QUERIES = [
    *(f"{V1}/tasks?{query}" for query in ("limit=0", "limit=501", "limit=many", "status=sleepy", "status=dlq,failed")),
    *(f"{V1}/tasks?{query}" for query in ("job=0", "job=x", f"job={2**63}", "worker=", "worker=%00", "queue=%00")),
    *(f"{V1}/tasks?cursor={cursor}" for cursor in ("x", "W10", "WzFd", "%00", "WyJhIiwxXQ", "Wy0xLDFd", "bnVsbA", "é")),
    f"{V1}/tasks?cursor=Wzk5OTk5OTk5OTk5OTk5OTk5OSwxXQ",
    *(f"{V1}/{path}" for path in ("tasks/0", "tasks/-1", "tasks/x", f"tasks/{2**53}", f"tasks/{10**400}")),
    *(f"{V1}/{path}?cursor=x" for path in ("jobs", "dead-letters", "schedules/s/runs", "audit")),
    *(
        f"{V1}/{path}"
        for path in ("jobs?state=sleepy", "jobs?limit=0", "jobs/x", "workers?state=sleepy", "audit?act=%00")
    ),
]


async def contents(server: Serving) -> dict[str, Any]:
    """Everything that an API call could have written."""
    app = server.app
    return {
        "tasks": {record.id: record for record in await app.tasks.alist(limit=1000)},
        "jobs": len(await app.jobs.alist(limit=1000)),
        "schedules": [view.name for view in await app.schedules.alist()],
        "queues": [(queue.name, queue.paused, queue.limit, queue.rate) for queue in await app.queues.alist()],
        "breakers": await app.engine.run(lambda store: store.breakers()),
    }


@pytest.mark.requirement("F44")
async def test_nothing_is_written_of_what_is_wrong(serve: Serve):
    """F44: a summary of nothing is refused, and there is no task."""
    async with routed(serve) as server:
        await server.admin.post(f"{V1}/tasks", json=ADD)
        before = await contents(server)
        wrong: list[str] = []
        bodies = {**BODIES, f"{V1}/tasks/summarize/": [{}, {"content": ""}, {"content": " "}, {"content": 5}, None]}
        for path, given in bodies.items():
            for body in given:
                text = json.dumps(body)
                answer = await server.admin.post(path, content=text, headers={"Content-Type": "application/json"})
                if answer.status_code not in (400, 422):
                    wrong.append(f"POST {path} {text[:120]}: {answer.status_code} {answer.text[:200]}")
                else:
                    check_problem(answer)
        for raw in (b"", b"{", b"\xff\xfe", DEEP.encode(), b'{"name": "add", "args": [NaN, 1]}', b'{"name": nul'):
            answer = await server.admin.post(f"{V1}/tasks", content=raw, headers={"Content-Type": "application/json"})
            if answer.status_code not in (400, 422):
                wrong.append(f"POST {raw[:40]!r}: {answer.status_code}")
            else:
                check_problem(answer)
        assert not wrong, "\n".join(wrong)
        assert await contents(server) == before


async def test_queries_and_paths_that_cannot_be(serve: Serve):
    async with routed(serve) as server:
        for url in QUERIES:
            answer = await server.admin.get(url)
            assert answer.status_code == 422, f"{url}: {answer.status_code} {answer.text[:200]}"
            check_problem(answer)
        for path in (
            "tasks/17",
            "jobs/17",
            "workers/w9",
            "schedules/s",
            "results/17",
            "tasks/17/logs",
            "jobs/17/graph",
        ):
            answer = await server.admin.get(f"{V1}/{path}")
            assert answer.status_code == 404, path
            check_problem(answer)
        for path in ("nothing", "tasks/17/nothing"):
            answer = await server.admin.get(f"{V1}/{path}")
            assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
        assert (await server.admin.put(f"{V1}/tasks")).status_code == 405


def check_problem(answer: Any) -> None:
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["title"]
    assert body["instance"].startswith("/api/v1/")
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert body.get("detail") or body.get("errors"), body


async def test_a_field_that_there_is_none_of_is_told_those_that_there_are(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:

        async def told(path: str, body: Any) -> list[tuple[str, str]]:
            answer = await server.operator.post(f"{V1}/{path}", json=body)
            assert answer.status_code == 422, answer.text
            return [(each["pointer"], each["detail"]) for each in answer.json()["errors"]]

        [(pointer, detail)] = await told("tasks", {"name": "add", "arguments": {"a": 1}})
        assert pointer == "/arguments"
        assert detail.startswith("there is no such field; ")
        assert "args" in detail
        assert "kwargs" in detail
        [(_, detail)] = await told("tasks", {"name": "add", "kwarg": {"a": 1}})
        assert "did you mean 'kwargs'?" in detail
        [(pointer, detail)] = await told("tasks/batch", {"tasks": [{"name": "add", "quue": "mail"}]})
        assert (pointer, "did you mean 'queue'?" in detail) == ("/tasks/0/quue", True)
