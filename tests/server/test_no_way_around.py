"""A user's token, in the hands of somebody who means harm: no way around approval, and none to what is another's."""

import dataclasses
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace import App
from headrace.core.schedule import NewSchedule
from headrace.server.auditing import audited
from tests.server.routed import make_app, routed
from tests.server.serving import Serve, Serving

V1 = "/api/v1"
COMMAND = {"command": {"argv": ["true"]}}
WIRED = {"name": "add", "arguments": '{"a":1,"b":2}'}
ARGV = '{"argv":["true"]}'


async def enqueued(server: Serving, **task: Any) -> Any:
    return await server.user.post(f"{V1}/ledger/enqueue", json={"tasks": [{**WIRED, **task}]})


async def state(server: Serving, id: int) -> str:
    return (await server.admin.get(f"{V1}/tasks/{id}")).json()["state"]


@pytest.mark.requirement("K71")
async def test_a_command_that_was_cancelled_and_runs_again_waits_again(serve: Serve):
    """K71: who may not run it directly cannot bring it about by two acts on their own task either."""
    async with routed(serve) as server:
        id = (await server.user.post(f"{V1}/tasks", json=COMMAND)).json()["id"]
        assert (await server.user.post(f"{V1}/tasks/{id}/cancel")).status_code == 200
        assert (await server.user.post(f"{V1}/tasks/{id}/retry")).status_code == 200
        assert await state(server, id) == "pending_approval"
        job = (await server.user.post(f"{V1}/jobs", json={"name": "j", "tasks": [COMMAND]})).json()["id"]
        await server.user.post(f"{V1}/jobs/{job}/cancel")
        assert (await server.user.post(f"{V1}/jobs/{job}/retry-failed")).status_code == 200
        (node,) = (await server.user.get(f"{V1}/jobs/{job}/graph")).json()["nodes"]
        assert node["state"] == "pending_approval"


@pytest.mark.requirement("K71")
async def test_a_command_by_another_name_waits_as_well(serve_sqlite: Serve):
    """K71: what runs as a command, or as any function that can be imported, is one, whatever its kind says."""
    async with routed(serve_sqlite) as server:
        ways = (
            {"kind": "command", "pool": "command", "name": "command", "arguments": ARGV},
            {"kind": "function", "pool": "command", "arguments": ARGV},
            {"name": "os.system", "options": '{"entrypoint":true}', "arguments": '{"command":"true"}'},
            {"name": "os.system", "options": '{"entry\\u0070oint": 1}', "arguments": '{"command":"true"}'},
        )
        for way in ways:
            answer = await enqueued(server, **way)
            assert answer.status_code == 200, answer.text
            assert await state(server, answer.json()[0][0]) == "pending_approval", way
        for hook in ("on_success", "on_failure"):
            job = {"name": "j", "tasks": [WIRED], hook: {**WIRED, **ways[1]}}
            refused = await server.user.post(f"{V1}/ledger/create_job", json={"job": job})
            assert refused.status_code == 403, hook
        # What workflows themselves are made of needs nobody's word.
        collect = {"name": "headrace.workflows.builtin.collect", "options": '{"entrypoint":true}'}
        answer = await enqueued(server, **collect, arguments='{"results":[]}')
        assert await state(server, answer.json()[0][0]) == "pending"


@pytest.mark.requirement("K71")
async def test_a_task_that_asks_for_approval_asks_for_it_whatever_the_client_says(serve_sqlite: Serve):
    """K71: the declaration that counts is the server's."""
    app = make_app(serve_sqlite.url)

    @app.task(name="deploy", approval="operator")
    async def deploy() -> None: ...

    async with routed(serve_sqlite, app) as server:
        made = (await server.user.post(f"{V1}/tasks", json={"name": "deploy"})).json()
        assert made["state"] == "pending_approval"
        answer = await enqueued(server, name="deploy", arguments="{}", options="{}")
        assert await state(server, answer.json()[0][0]) == "pending_approval"
        assert (await server.operator.post(f"{V1}/tasks", json={"name": "deploy"})).json()["state"] == "pending"


@pytest.mark.requirement("K106")
async def test_nothing_of_anothers_is_reached_through_what_one_submits(serve: Serve):
    """K106: not their jobs, not their results by an edge, not their tasks by a key, not their ids."""
    async with routed(serve) as server:
        theirs = (await server.other.post(f"{V1}/tasks", json={"name": "add", "args": [1, 2]})).json()["id"]
        call = {"name": "add", "args": [1, 2]}
        job = (await server.other.post(f"{V1}/jobs", json={"name": "j", "tasks": [call]})).json()
        keyed = {**call, "unique": "k"}
        held = (await server.other.post(f"{V1}/tasks", json=keyed)).json()["id"]
        edge = {"task": theirs, "kind": "on_success", "input": 0}
        replacing = {"scope": "unique", "key": "k", "on_conflict": "replace"}
        for harm in ({"job": job["id"]}, {"after": [edge]}, {"keys": [replacing]}):
            refused = await enqueued(server, **harm)
            assert refused.status_code == 403, (harm, refused.text)
        wired = {"name": "j", "tasks": [{**WIRED, "after": [edge]}]}
        assert (await server.user.post(f"{V1}/ledger/create_job", json={"job": wired})).status_code in (403, 422)
        mine = (await server.user.post(f"{V1}/jobs", json={"name": "j", "tasks": [call]})).json()
        refused = await server.user.post(f"{V1}/jobs/{mine['id']}/tasks", json={"tasks": [call], "after": [theirs]})
        assert refused.status_code in (403, 404, 409, 422)
        assert (await server.other.get(f"{V1}/tasks/{held}")).json()["arguments"] == {"a": 1, "b": 2}
        assert (await server.other.get(f"{V1}/jobs/{job['id']}")).json()["total"] == 1


async def test_acts_through_the_ledger_are_on_the_list(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        id = (await server.user.post(f"{V1}/tasks", json={"name": "add", "args": [1, 2]})).json()["id"]
        assert (await server.user.post(f"{V1}/ledger/cancel", json={"ids": [id]})).status_code == 200
        (entry,) = (await server.admin.get(f"{V1}/audit", params={"act": "ledger.cancel"})).json()["items"]
        assert (entry["actor"], entry["outcome"], entry["detail"]["ids"]) == ("user", "done", [id])


@pytest.mark.requirement("K75")
async def test_who_may_not_decide_may_not_by_the_ledger_either(serve_sqlite: Serve):
    """K75: the user not even about their own task, the operator not about one that asks for an admin."""
    async with routed(serve_sqlite) as server:
        answer = await enqueued(server, approval=True, options='{"approval":{"role":"admin"}}')
        id = answer.json()[0][0]
        given = {"task": id, "approved": True, "by": "admin"}
        for person, status in ((server.user, 403), (server.viewer, 403), (server.operator, 403), (server.admin, 200)):
            assert await state(server, id) == "pending_approval"
            assert (await person.post(f"{V1}/ledger/decide", json=given)).status_code == status
        assert await state(server, id) == "pending"


def guarded(url: str) -> App:
    """Tasks that ask for a role: one for an admin, one that is the summarize of the face."""
    made = App(url)

    @made.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    @made.task(name="wipe", approval="admin")
    async def wipe() -> None: ...

    @made.task(name="summarize", approval="operator")
    async def summarize(content: str) -> str:
        return content

    return made


@pytest.mark.requirement("K71")
async def test_a_schedule_is_no_way_around_approval(serve: Serve):
    """K71: who may not run a task directly makes no schedule of it, turns none into one, and runs and resumes none."""
    async with routed(serve, guarded(serve.url)) as server:
        wipe, add = {"task": "wipe", "every": 3600}, {"task": "add", "args": [1, 2], "every": 3600}
        made = f"{V1}/schedules"
        assert (await server.operator.post(made, json={**wipe, "name": "w"})).status_code == 403
        assert (await server.operator.post(made, json={**add, "name": "a"})).status_code == 201
        assert (await server.operator.patch(f"{made}/a", json={"task": "wipe"})).status_code == 403
        assert (await server.admin.post(made, json={**wipe, "name": "w"})).status_code == 201
        for path in ("run", "trigger", "trigger/", "resume"):
            refused = await server.operator.post(f"{made}/w/{path}")
            assert (refused.status_code, "wipe" in refused.json()["detail"]) == (403, True), path
        assert (await server.operator.patch(f"{made}/w", json={"every": 1})).status_code == 403
        # Nor by the ledger, whatever the client says about its task.
        for verb in ("run_schedule", "resume_schedule"):
            refused = await server.operator.post(f"{V1}/ledger/{verb}", json={"name": "w"})
            assert refused.status_code == 403, verb
        kept = await server.operator.post(f"{V1}/ledger/get_schedule", json={"name": "a"})
        wired = {**kept.json(), "name": "b", "task": {**kept.json()["task"], "name": "wipe", "arguments": "{}"}}
        known = {field.name for field in dataclasses.fields(NewSchedule)}
        wired = {name: value for name, value in wired.items() if name in known}
        refused = await server.operator.post(f"{V1}/ledger/put_schedules", json={"schedules": [wired]})
        assert refused.status_code == 403, refused.text
        allowed = {**wired, "task": kept.json()["task"]}
        assert (await server.operator.post(f"{V1}/ledger/put_schedules", json={"schedules": [allowed]})).is_success
        assert (await server.admin.get(f"{V1}/tasks")).json()["items"] == []
        assert [each["task"] for each in (await server.admin.get(made)).json()] == ["add", "add", "wipe"]
        # To stop it is another thing.
        assert (await server.operator.post(f"{made}/w/pause")).status_code == 200
        assert (await server.admin.post(f"{made}/w/resume")).status_code == 200
        fired = await server.admin.post(f"{made}/w/run")
        assert await state(server, fired.json()["task"]) == "pending"
        assert (await server.operator.delete(f"{made}/w")).status_code == 204


@pytest.mark.requirement("K71")
async def test_a_schedule_that_changes_after_it_was_looked_at_is_not_run(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    """K71: between the look at its task and the act an admin makes another task of it: 409, and nothing runs."""

    @asynccontextmanager
    async def meanwhile(app: App, *given: Any) -> AsyncGenerator[None]:
        async with audited(app, *given):
            await app.schedules.aset("a", task=app.get_task("wipe").prepare())
            yield

    async with routed(serve, guarded(serve.url)) as server:
        app, add = server.app, server.app.get_task("add").prepare(1, 2)
        given = {"name": "a", "task": "add", "args": [1, 2], "every": 3600, "paused": True}
        assert (await server.operator.post(f"{V1}/schedules", json=given)).status_code == 201
        acts = [
            ("POST", f"{V1}/schedules/a/run", None),
            ("POST", f"{V1}/schedules/a/resume", None),
            ("PATCH", f"{V1}/schedules/a", {"every": 60}),
            ("POST", f"{V1}/ledger/run_schedule", {"name": "a"}),
            ("POST", f"{V1}/ledger/resume_schedule", {"name": "a"}),
        ]
        for method, path, body in acts:
            await app.schedules.aset("a", task=add)
            with monkeypatch.context() as patched:
                for module in ("schedules", "ledger"):
                    patched.setattr(f"headrace.server.routes.{module}.audited", meanwhile)
                answer = await server.operator.request(method, path, json=body)
            assert (answer.status_code, "somebody else" in answer.json()["detail"]) == (409, True), (path, answer.text)
            kept = (await app.schedules.aget("a")).record
            assert (kept.task.name, kept.paused, '"seconds":3600.0' in kept.cadence) == ("wipe", True, True), path
        assert await app.tasks.alist() == []
        stale = {"name": "a", "expected": [1, 1]}
        await app.schedules.aset("a", task=add)
        assert (await server.operator.post(f"{V1}/ledger/run_schedule", json=stale)).status_code == 409
        assert (await server.operator.post(f"{V1}/ledger/run_schedule", json={"name": "a"})).status_code == 200


@pytest.mark.requirement("K71")
async def test_the_face_is_no_way_around_approval(serve_sqlite: Serve):
    """K71: a user's summarize waits where it was declared so; an operator's does not."""
    async with routed(serve_sqlite, guarded(serve_sqlite.url)) as server:
        for who, expected in (("user", "pending_approval"), ("operator", "pending")):
            answer = await server.of(who).post(f"{V1}/tasks/summarize/", json={"content": "a text"})
            assert answer.is_success, answer.text
            (task, *_) = (await server.admin.get(f"{V1}/tasks", params={"owner": who})).json()["items"]
            assert (task["name"], task["state"]) == ("summarize", expected)
