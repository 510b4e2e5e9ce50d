"""One task: why it waits, what it has to do with others, once more with all that follows, as a copy, and its lines."""

import dataclasses
from typing import Any

import pytest

from headrace import Retry
from headrace.core.task import After, NewJob, Ref
from headrace.scheduling.declaration import Schedule
from headrace.testing import adrain
from tests.server.routed import make_app, routed
from tests.server.serving import Serve, Serving

TASKS = "/api/v1/tasks"


async def enqueued(server: Serving, name: str, *args: Any, owner: str | None = "user", **options: Any) -> int:
    task = server.app.get_task(name)
    new = (task.using(**options) if options else task).prepare(*args)
    (answer,) = await server.app.engine.enqueue([dataclasses.replace(new, owner=owner)])
    return answer.id


async def chain(server: Serving) -> tuple[int, list[int]]:
    """One that fails, one that waits for it, one that waits for that."""
    fail, add = server.app.get_task("fail").prepare(), server.app.get_task("add").prepare(1, 2)
    tasks = [
        fail,
        dataclasses.replace(add, after=(After(task=0, local=True),), options='{"label":"second"}'),
        dataclasses.replace(add, after=(After(task=1, local=True),)),
    ]
    job = NewJob(name="nightly", tasks=[dataclasses.replace(task, owner="user") for task in tasks], owner="user")
    id, answers = await server.app.engine.run(lambda store: store.create_job(job))
    return id, [answer.id for answer in answers]


async def test_why_it_waits(serve: Serve):
    async with routed(serve) as server:
        id = await enqueued(server, "add", 1, 2)
        await server.app.queues.apause("default")
        answer = (await server.user.get(f"{TASKS}/{id}/explain")).json()
        assert (answer["id"], answer["name"], answer["state"]) == (id, "add", "pending")
        assert answer["reasons"][0] == {
            "what": "its queue default is paused",
            "mend": "headrace queues resume default",
            "act": {"kind": "resume_queue", "subject": "default"},
        }
        assert [reason["what"] for reason in answer["reasons"][1:]] == ["no worker is active"]
        await server.app.queues.aresume("default")
        _, (first, second, third) = await chain(server)
        blocked = (await server.viewer.get(f"{TASKS}/{second}/explain")).json()
        assert blocked["reasons"] == [
            {
                "what": f"it waits for other tasks to end first: task {first} (fail) is pending",
                "mend": None,
                "act": {"kind": "look_at_task", "subject": str(first)},
            }
        ]
        below = (await server.viewer.get(f"{TASKS}/{third}/explain")).json()
        assert f"task {second} (second) is blocked" in below["reasons"][0]["what"]
        await adrain(server.app, raise_on_failure=False)
        ended = (await server.user.get(f"{TASKS}/{first}/explain")).json()
        assert ended["state"] == "failed/error"
        assert "as it was told to" in ended["reasons"][0]["what"]
        assert ended["reasons"][0]["act"] == {"kind": "retry_task", "subject": str(first)}


async def test_an_explanation_has_no_secrets(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        id = await enqueued(server, "fail", "password=hunter2 was wrong")
        await adrain(server.app, raise_on_failure=False)
        answer = await server.user.get(f"{TASKS}/{id}/explain")
        assert "[redacted]" in answer.text
        assert "hunter2" not in answer.text


async def test_what_it_has_to_do_with_others(serve: Serve):
    async with routed(serve) as server:
        job, (first, second, third) = await chain(server)
        shown = (await server.user.get(f"{TASKS}/{second}")).json()
        assert (shown["job"], shown["job_name"]) == (job, "nightly")
        assert shown["parents"] == {
            "items": [
                {"id": first, "name": "fail", "label": None, "state": "pending", "kind": "on_success", "passes": False}
            ],
            "more": False,
        }
        assert [child["id"] for child in shown["children"]["items"]] == [third]
        assert (shown["schedule"], shown["trace_id"], shown["reenqueued_from"]) == (None, None, None)
        await server.app.schedules.aadd(server.app.get_task("add"), Schedule(3600, name="hourly"), 1, 2)
        run = (await server.operator.post("/api/v1/schedules/hourly/run")).json()
        assert (await server.operator.get(f"{TASKS}/{run['task']}")).json()["schedule"] == "hourly"
        trace = "0af7651916cd43dd8448eb211c80319c"
        traced = dataclasses.replace(
            server.app.get_task("add").prepare(1, 2), options=f'{{"traceparent":"00-{trace}-b7ad6b7169203331-01"}}'
        )
        (answer,) = await server.app.engine.enqueue([traced])
        shown = (await server.viewer.get(f"{TASKS}/{answer.id}")).json()
        assert (shown["trace_id"], shown["trace_url"]) == (trace, None)
    app = make_app(serve.url, trace_url="https://jaeger.example.org/trace/{trace_id}?uiFind=headrace")
    async with routed(serve, app) as server:
        shown = (await server.viewer.get(f"{TASKS}/{answer.id}")).json()
        assert shown["trace_url"] == f"https://jaeger.example.org/trace/{trace}?uiFind=headrace"
        assert (await server.viewer.get(f"{TASKS}/{second}")).json()["trace_url"] is None


async def test_no_more_than_a_hundred_relatives(serve: Serve):
    async with routed(serve) as server:
        add = server.app.get_task("add").prepare(1, 2)
        parents = [add] * 101
        last = dataclasses.replace(add, after=tuple(After(task=place, local=True) for place in range(101)))
        job = NewJob(name="wide", tasks=[*parents, last])
        _, answers = await server.app.engine.run(lambda store: store.create_job(job))
        shown = (await server.viewer.get(f"{TASKS}/{answers[-1].id}")).json()["parents"]
        assert (len(shown["items"]), shown["more"]) == (100, True)


async def test_clear_with_all_that_follows(serve: Serve):
    async with routed(serve) as server:
        job, (first, second, third) = await chain(server)
        early = await server.user.post(f"{TASKS}/{first}/clear", json={"dry_run": True})
        assert early.status_code == 409
        await adrain(server.app, raise_on_failure=False)
        would = (await server.user.post(f"{TASKS}/{first}/clear", json={"dry_run": True})).json()
        assert (would["dry_run"], would["count"]) == (True, {"n": 3, "more": False})
        assert would["ids"] == [first, second, third]
        assert would["items"][1] == {"id": second, "name": "add", "label": "second", "state": "cancelled"}
        assert (await server.user.get(f"/api/v1/jobs/{job}")).json()["state"] == "failed"
        assert (await server.user.get(f"{TASKS}/{first}")).json()["state"] == "failed"
        cleared = (await server.user.post(f"{TASKS}/{first}/clear")).json()
        assert sorted(cleared["ids"]) == [first, second, third]
        assert cleared["count"] == {"n": 3, "more": False}
        assert (await server.user.get(f"/api/v1/jobs/{job}")).json()["state"] == "pending"
        [entry] = [
            entry
            for entry in (await server.admin.get("/api/v1/audit")).json()["items"]
            if entry["act"] == "tasks.clear"
        ]
        assert (entry["actor"], entry["subject"], entry["outcome"]) == ("user", f"task/{first}", "done")
        assert (await server.other.post(f"{TASKS}/{first}/clear", json={"dry_run": True})).status_code == 403


async def test_what_is_held_below_is_not_cleared(serve: Serve):
    async with routed(serve) as server:
        _, (first, second, _) = await chain(server)
        await adrain(server.app, raise_on_failure=False)
        assert (await server.user.post(f"{TASKS}/{first}/clear")).status_code == 200
        assert (await server.user.post(f"{TASKS}/{second}/clear", json={"dry_run": True})).status_code == 409


async def test_a_copy_with_other_arguments(serve: Serve):
    async with routed(serve) as server:
        id = await enqueued(
            server, "add", 1, 2, queue="slow", priority=4, tags=["red"], metadata={"team": "post"}, timeout=30,
            retry=Retry(max_attempts=9), max_age=3600,
        )  # fmt: skip
        made = await server.user.post(
            f"{TASKS}/{id}/reenqueue", json={"kwargs": {"a": 5}, "keep": ["b"], "priority": 7}
        )
        assert made.status_code == 201, made.text
        copy = made.json()["id"]
        assert made.headers["Location"] == f"{TASKS}/{copy}"
        shown = (await server.user.get(f"{TASKS}/{copy}")).json()
        assert shown["arguments"] == {"a": 5, "b": 2}
        assert (shown["queue"], shown["priority"], shown["owner"], shown["max_attempts"]) == ("slow", 7, "user", 9)
        assert (shown["tags"], shown["metadata"]) == (["red"], {"team": "post", "reenqueued_from": id})
        assert (shown["reenqueued_from"], shown["job"], shown["expires_at"] is not None) == (id, None, True)
        again = (await server.user.post(f"{TASKS}/{id}/reenqueue")).json()["id"]
        assert (await server.user.get(f"{TASKS}/{again}")).json()["arguments"] == {"a": 1, "b": 2}
        acts = [entry["act"] for entry in (await server.admin.get("/api/v1/audit")).json()["items"]]
        assert acts.count("tasks.reenqueue") == 2


async def test_a_secret_is_kept_unseen_and_never_overwritten_by_its_mark(serve: Serve):
    async with routed(serve) as server:
        task = server.app.get_task("greet").prepare("ada", "hunter2")
        (answer,) = await server.app.engine.enqueue([dataclasses.replace(task, owner="user")])
        shown = (await server.user.get(f"{TASKS}/{answer.id}")).json()["arguments"]
        assert shown["password"] == "[redacted]"
        refused = await server.user.post(f"{TASKS}/{answer.id}/reenqueue", json={"kwargs": shown})
        assert refused.status_code == 422
        assert refused.json()["pointer"] == "/kwargs/password"
        made = await server.user.post(
            f"{TASKS}/{answer.id}/reenqueue", json={"kwargs": {"name": "bob"}, "keep": ["password"]}
        )
        copy = await server.app.tasks.aget(made.json()["id"])
        assert copy.arguments == '{"name":"bob","password":"hunter2"}'


@pytest.mark.parametrize(
    "body",
    [
        {"kwargs": {"a": 1}},  # b is missing
        {"kwargs": {"a": "x", "b": 2}},
        {"keep": ["c"]},
        {"kwargs": {"a": 1, "b": 2}, "keep": ["a"]},
        {"command": {"argv": ["ls"]}},
        {"delay": 1, "run_at": "2030-01-01T00:00:00Z"},
        {"name": "other"},
        {"queue": ""},
    ],
)
async def test_a_copy_that_cannot_be(serve_sqlite: Serve, body: dict[str, Any]):
    async with routed(serve_sqlite) as server:
        id = await enqueued(server, "add", 1, 2)
        answer = await server.user.post(f"{TASKS}/{id}/reenqueue", json=body)
        assert answer.status_code == 422, answer.text
        assert len(await server.app.tasks.alist()) == 1


async def test_a_command_is_copied_as_one(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        made = await server.operator.post(TASKS, json={"command": {"argv": ["true"], "env": {"A": "b"}}})
        id = made.json()["id"]
        same = await server.operator.post(f"{TASKS}/{id}/reenqueue")
        record = await server.app.tasks.aget(same.json()["id"])
        assert (record.kind, record.arguments) == ("command", '{"argv":["true"],"env":{"A":"b"}}')
        changed = await server.operator.post(f"{TASKS}/{id}/reenqueue", json={"command": {"argv": ["false"]}})
        assert (await server.app.tasks.aget(changed.json()["id"])).arguments == '{"argv":["false"]}'
        wrong = await server.operator.post(f"{TASKS}/{id}/reenqueue", json={"kwargs": {"a": 1}})
        assert wrong.status_code == 422


async def test_a_users_copy_of_a_command_waits_for_approval(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        made = await server.user.post(TASKS, json={"command": {"argv": ["true"]}})
        copy = await server.user.post(f"{TASKS}/{made.json()['id']}/reenqueue")
        assert copy.json()["state"] == "pending_approval"


async def test_lines_by_a_word_and_as_a_file(serve: Serve):
    async with routed(serve) as server:
        id = await enqueued(server, "add", 1, 2)
        lines = [
            (
                Ref(id, claim),
                seq,
                "info" if seq % 2 else "error",
                f"Line {seq} of {claim}" if seq else "password=hunter2",
            )
            for claim in (1, 2)
            for seq in range(700)
        ]
        await server.app.engine.run(lambda store: store.append_logs(lines))
        found = (await server.user.get(f"{TASKS}/{id}/logs?search=line%201%20of")).json()
        assert [line["line"] for line in found["items"]] == ["Line 1 of 1", "Line 1 of 2"]
        assert found["next"] is None
        secret = (await server.user.get(f"{TASKS}/{id}/logs?search=hunter2")).json()
        assert secret["items"] == []
        errors = (await server.user.get(f"{TASKS}/{id}/logs?stream=error&limit=500")).json()
        assert len(errors["items"]) == 500
        rest = (await server.user.get(f"{TASKS}/{id}/logs?stream=error&limit=500&cursor={errors['next']}")).json()
        assert (len(rest["items"]), rest["next"]) == (200, None)
        whole = (await server.user.get(f"{TASKS}/{id}/logs?limit=5000")).json()
        assert (len(whole["items"]), whole["next"]) == (1400, None)
        places = [(line["claim_no"], line["seq"]) for line in whole["items"]]
        assert places == [(claim, seq) for claim in (1, 2) for seq in range(700)]
        most = (await server.user.get(f"{TASKS}/{id}/logs?limit=1300")).json()
        behind = (await server.user.get(f"{TASKS}/{id}/logs?limit=1300&cursor={most['next']}")).json()
        assert most["items"] + behind["items"] == whole["items"]
        assert (await server.user.get(f"{TASKS}/{id}/logs?limit=5001")).status_code == 422
        file = await server.user.get(f"{TASKS}/{id}/logs/download")
        assert file.headers["content-type"] == "text/plain; charset=utf-8"
        assert file.headers["content-disposition"] == f'attachment; filename="task-{id}.log"'
        written = file.text.splitlines()
        assert len(written) == 1400
        assert written[0].endswith("[1] error: password=[redacted]")
        assert written[1].endswith("[1] info: Line 1 of 1")
        assert "hunter2" not in file.text
        part = await server.user.get(f"{TASKS}/{id}/logs/download?claim=2")
        assert len(part.text.splitlines()) == 700
        assert (await server.other.get(f"{TASKS}/{id}/logs/download")).status_code == 403


async def test_a_search_that_looked_far_enough_can_be_gone_on_with(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        id = await enqueued(server, "add", 1, 2)
        n = 20_500
        for first in range(0, n, 5000):
            lines = [(Ref(id, 1), seq, "info", f"line {seq}") for seq in range(first, min(first + 5000, n))]
            await server.app.engine.run(lambda store, lines=lines: store.append_logs(lines))
        page = (await server.user.get(f"{TASKS}/{id}/logs?search=line%2020499")).json()
        assert page["items"] == []
        assert page["next"] is not None
        page = (await server.user.get(f"{TASKS}/{id}/logs?search=line%2020499&cursor={page['next']}")).json()
        assert [line["seq"] for line in page["items"]] == [20_499]
        assert page["next"] is None
