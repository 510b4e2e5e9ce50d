"""/tasks over HTTP: what is submitted, what is shown, what is acted on."""

import dataclasses
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.core.lanes import Lane
from headrace.core.task import Want, WorkerRecord
from headrace.server import submitting
from headrace.server.models.tasks import TaskDetail
from headrace.testing import adrain
from tests.server.routed import make_app, routed
from tests.server.serving import Serve

TASKS = "/api/v1/tasks"


def worker_record() -> WorkerRecord:
    now = datetime.now(UTC)
    return WorkerRecord(
        id="w1", kind="pool", hostname="here", pid=1, state="active", beat=0, lease=30.0, queues=(), version="1",
        started_at=now, last_heartbeat=now, stopped_at=None, tasks_completed=0, tasks_failed=0,
    )  # fmt: skip


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


@pytest.mark.requirement("F5", "F7")
async def test_what_is_shown_of_a_failure(serve: Serve):
    """F5: what there is not is null, in every field of every answer: none is missing, none is the text None. F7: one
    entry for each failed attempt, with its time, its error, its type and its number."""
    async with routed(serve) as server:
        id = (await server.user.post(TASKS, json={"name": "again"})).json()["id"]
        fresh = (await server.user.get(f"{TASKS}/{id}")).json()
        nulls = {name for name, value in fresh.items() if value is None}
        assert nulls >= {"worker", "job", "started_at", "finished_at", "progress", "error", "reason", "approval"}
        assert set(fresh) == set(TaskDetail.model_fields)
        assert "None" not in str([value for value in fresh.values() if isinstance(value, str)])
        await adrain(server.app, raise_on_failure=False, with_retries=True)
        failed = (await server.user.get(f"{TASKS}/{id}")).json()
        assert (failed["state"], failed["reason"], failed["attempt"]) == ("failed", "error", 2)
        assert failed["error"] == {"error_class": "builtins.ConnectionError", "message": "never there"}
        history = [(each["attempt"], each["state"], each["error"]["error_class"]) for each in failed["attempts"]]
        assert history == [(n, "failed", "builtins.ConnectionError") for n in (1, 2)]
        assert all(each["finished_at"] and "never there" in each["traceback"] for each in failed["attempts"])
        assert (await server.user.get(f"{TASKS}/{id}/result")).json()["error"]["message"] == "never there"


@pytest.mark.requirement("D69")
async def test_secrets_are_taken_out_of_every_answer(serve_sqlite: Serve):
    """D69: what a field's name gives away, at the top or inside of something, in arguments, results, lines, errors and
    metadata; also to the owner, the operator and the admin."""
    app = make_app(serve_sqlite.url, redact=["iban"])
    secrets = ("hunter2", "tok-nested", "sk-result-secret", "result-token", "abcdef0123456789", "DE99", "meta-secret")
    async with routed(serve_sqlite, app) as server:
        nested = {"auth": {"bearer": "tok-nested"}, "iban": "DE99", "max": 3}
        given = {"name": "ada", "password": "hunter2", "nested": nested}
        id = (
            await server.user.post(
                TASKS, json={"name": "greet", "kwargs": given, "metadata": {"api_key": "meta-secret"}}
            )
        ).json()["id"]
        why = {"name": "fail", "kwargs": {"why": "login failed: password=hunter2 at postgres://u:hunter2@db/x"}}
        failed = (await server.user.post(TASKS, json=why)).json()["id"]
        await adrain(app, raise_on_failure=False)
        for caller in ("user", "viewer", "operator", "admin"):
            text = ""
            for path in ("", f"/{id}", f"/{id}/result", f"/{id}/logs", f"/{failed}", f"/{failed}/attempts"):
                answer = await server.of(caller).get(TASKS + path)
                assert answer.status_code == 200
                text += answer.text
            assert not [secret for secret in secrets if secret in text], caller
            assert text.count("[redacted]") > 8
            assert "hello ada" in text  # what is no secret is there
        # Who needs the very value can ask for it; that is on the list of what was done.
        raw = (await server.user.get(f"{TASKS}/{id}/result", params={"reveal": True})).json()
        assert raw["value"]["api_key"] == "sk-result-secret"
        assert (await server.viewer.get(f"{TASKS}/{id}/result", params={"reveal": True})).status_code == 403
        (entry,) = (await server.admin.get("/api/v1/audit", params={"act": "tasks.reveal"})).json()["items"]
        assert (entry["actor"], entry["subject"], entry["outcome"]) == ("user", f"task/{id}", "done")


async def test_options_of_one_call(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        given = {
            "name": "hello",  # an alias
            "args": ["ada"],
            "queue": "slow",
            "priority": 7,
            "delay": 3600,
            "timeout": 60,
            "tags": ["a"],
            "metadata": {"trip": 3},
        }
        id = (await server.user.post(TASKS, json=given)).json()["id"]
        found = (await server.user.get(f"{TASKS}/{id}")).json()
        assert (found["name"], found["queue"], found["priority"], found["tags"]) == ("greet", "slow", 7, ["a"])
        assert found["metadata"] == {"trip": 3}
        assert found["eligible_at"] > found["created_at"]
        at = "2031-05-01T10:00:00+02:00"
        id = (await server.user.post(TASKS, json={"name": "add", "args": [1, 2], "run_at": at})).json()["id"]
        assert (await server.user.get(f"{TASKS}/{id}")).json()["eligible_at"] == "2031-05-01T08:00:00Z"


async def test_the_same_submission_twice_is_one_task(serve: Serve):
    async with routed(serve) as server:
        key, call = {"Idempotency-Key": "order-17 {a.__class__}"}, {"name": "add", "args": [1, 2]}
        first = await server.user.post(TASKS, json=call, headers=key)
        second = await server.user.post(TASKS, json=call, headers=key)
        assert (first.status_code, second.status_code) == (201, 200)
        assert second.json() == {**first.json(), "created": False}
        # The same key for something else is a mistake; the same key of somebody else is another key.
        changed = await server.user.post(TASKS, json={"name": "add", "args": [1, 3]}, headers=key)
        assert (changed.status_code, "otherwise" in changed.json()["detail"]) == (422, True)
        theirs = await server.other.post(TASKS, json=call, headers=key)
        assert theirs.status_code == 201
        assert theirs.json()["id"] != first.json()["id"]
        both = await server.user.post(TASKS, json={**call, "idempotency_key": "x"}, headers=key)
        assert both.status_code == 422
        assert len((await server.admin.get(TASKS)).json()["items"]) == 2


async def test_a_key_that_another_holds_gives_nothing_away(serve: Serve):
    async with routed(serve) as server:
        call = {"name": "add", "args": [1, 2], "unique": "the one"}
        held = (await server.other.post(TASKS, json=call)).json()["id"]
        for conflict in ({}, {"on_conflict": "reject"}):
            refused = await server.user.post(TASKS, json={**call, **conflict})
            assert refused.status_code == 409
            assert not {"task_id", "key"} & set(refused.json())
        # Nor can a user put a task of their own in its place.
        replaced = await server.user.post(TASKS, json={**call, "args": [5, 5], "on_conflict": "replace"})
        assert replaced.status_code == 403
        assert (await server.other.get(f"{TASKS}/{held}")).json()["arguments"] == {"a": 1, "b": 2}
        mine = await server.other.post(TASKS, json={**call, "on_conflict": "reject"})
        assert (mine.status_code, mine.json()["task_id"]) == (409, held)


async def test_a_batch_that_is_refused_for_a_key_has_written_nothing(serve: Serve):
    async with routed(serve) as server:
        plain = {"name": "add", "args": [0, 0]}
        keyed, once = {**plain, "unique": "theirs"}, {**plain, "idempotency_key": "mine"}
        await server.other.post(TASKS, json=keyed)
        await server.user.post(TASKS, json=once)
        before = (await server.admin.get(TASKS)).json()["items"]
        changed = {**once, "args": [0, 1]}
        again, otherwise = {**plain, "idempotency_key": "x"}, {**plain, "args": [1, 1], "idempotency_key": "x"}
        for bad, status in (([keyed], 409), ([changed], 422), ([again, otherwise], 422)):
            refused = await server.user.post(f"{TASKS}/batch", json={"tasks": [plain, *bad, plain]})
            assert (refused.status_code, "nothing was written" in refused.json()["detail"]) == (status, True)
            assert (await server.admin.get(TASKS)).json()["items"] == before
        # What is one's own is answered in its place, and so is what stands there twice.
        own = {**plain, "unique": "own"}
        answer = await server.user.post(f"{TASKS}/batch", json={"tasks": [plain, once, own, own]})
        assert answer.status_code == 201, answer.text
        items = answer.json()["items"]
        assert [item["created"] for item in items] == [True, False, True, False]
        assert items[2]["id"] == items[3]["id"]
        assert len((await server.admin.get(TASKS)).json()["items"]) == len(before) + 2


async def test_a_key_that_is_taken_after_the_look_refuses_the_whole_batch(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    async with routed(serve) as server:
        plain = {"name": "add", "args": [0, 0]}
        look, looked = submitting._existing, 0

        async def looks_too_early(*given: Any) -> Any:
            nonlocal looked
            looked += 1
            found = await look(*given)
            if looked == 1:
                new = server.app.get_task("add").using(unique="late").prepare(5, 5)
                await server.app.engine.enqueue([dataclasses.replace(new, owner="other")])
            return found

        monkeypatch.setattr(submitting, "_existing", looks_too_early)
        batch = {"tasks": [plain, {**plain, "unique": "late"}, plain]}
        refused = await server.user.post(f"{TASKS}/batch", json=batch)
        assert (refused.status_code, looked) == (409, 2)
        [kept] = (await server.admin.get(TASKS)).json()["items"]
        assert kept["owner"] == "other"


async def test_a_batch_is_written_whole_or_not_at_all(serve: Serve):
    async with routed(serve) as server:
        good = [{"name": "add", "args": [n, n]} for n in range(1000)]
        made = await server.user.post(f"{TASKS}/batch", json={"tasks": good})
        assert made.status_code == 201
        assert len({item["id"] for item in made.json()["items"]}) == 1000
        before = await server.app.tasks.acounts()
        for bad in (
            [*good[:5], {"name": "add", "args": ["x", 1]}],
            [*good[:5], {"name": "no.such.task"}],
            [*good, good[0]],
            [],
            [{"name": "add", "args": [1, 2], "unique": "k"}, {"name": "add", "args": [1, 2], "job": 2**40}],
        ):
            refused = await server.user.post(f"{TASKS}/batch", json={"tasks": bad})
            assert refused.status_code in (404, 422), refused.text
        assert await server.app.tasks.acounts() == before


@pytest.mark.requirement("F51")
async def test_lists_filter_limit_and_go_on(serve: Serve):
    """F51: by status, in both vocabularies, and by limit; the pages together are everything, once."""
    async with routed(serve) as server:
        batch = [{"name": "add", "args": [n, n]} for n in range(7)] + [{"name": "fail"}] * 3
        await server.user.post(f"{TASKS}/batch", json={"tasks": batch})
        await server.other.post(TASKS, json={"name": "greet", "args": ["x"]})
        await adrain(server.app, raise_on_failure=False)
        await server.user.post(TASKS, json={"name": "add", "args": [1, 1], "delay": 60})

        async def ids(caller: str = "user", **query: object) -> list[int]:
            answer = await server.of(caller).get(TASKS, params=query)
            assert answer.status_code == 200, answer.text
            return [item["id"] for item in answer.json()["items"]]

        assert len(await ids()) == 11
        assert len(await ids("viewer")) == 12
        assert len(await ids(status="completed")) == len(await ids(status="COMPLETED")) == 7
        assert len(await ids(status="DLQ")) == len(await ids(dead_letter=True)) == len(await ids(status="failed")) == 3
        assert len(await ids(status="ACTIVE")) == 0
        assert len(await ids(status=["pending", "failed"])) == len(await ids(status="pending,failed")) == 4
        assert len(await ids(name="fail")) == 3
        assert len(await ids("admin", queue="mail")) == 1
        assert len(await ids("admin", owner="other")) == 1
        assert (await server.user.get(TASKS, params={"owner": "other"})).status_code == 403
        pages: list[int] = []
        url = f"{TASKS}?limit=4&status=completed&status=failed"
        while url:
            answer = await server.user.get(url)
            pages += [item["id"] for item in answer.json()["items"]]
            link = answer.headers.get("Link")
            assert (link is None) == (answer.json()["next"] is None)
            url = "" if link is None else link.partition("<")[2].partition(">")[0]
        assert pages == await ids(status=["completed", "failed"])
        assert len(set(pages)) == 10


async def test_lines_come_page_by_page(serve: Serve):
    async with routed(serve) as server:
        id = (await server.user.post(TASKS, json={"name": "greet", "args": ["ada"]})).json()["id"]
        await adrain(server.app)
        whole = (await server.user.get(f"{TASKS}/{id}/logs")).json()
        assert whole["items"][0]["line"] == "greets ada"
        assert len(whole["items"]) == 2
        first = (await server.user.get(f"{TASKS}/{id}/logs", params={"limit": 1})).json()
        second = (await server.user.get(f"{TASKS}/{id}/logs", params={"limit": 1, "cursor": first["next"]})).json()
        assert first["items"] + second["items"] == whole["items"]


@pytest.mark.requirement("F48", "F49", "F53")
async def test_retry_cancel_and_delete(serve: Serve):
    """F48: what has not ended is not retried; what failed runs again with a fresh budget. F49: then it is no dead
    letter. F53: deleted is gone, unknown is 404, and what a worker holds is 409."""
    async with routed(serve) as server:
        id = (await server.user.post(TASKS, json={"name": "fail"})).json()["id"]
        early = await server.user.post(f"{TASKS}/{id}/retry")
        assert (early.status_code, early.json()["title"]) == (409, "Task cannot be retried")
        await adrain(server.app, raise_on_failure=False)
        letters = await server.user.get("/api/v1/dead-letters")
        assert [item["id"] for item in letters.json()["items"]] == [id]
        again = await server.user.post(f"{TASKS}/{id}/retry")
        assert again.json() == {"ids": [id]}
        assert (await server.user.get("/api/v1/dead-letters")).json()["items"] == []
        found = (await server.user.get(f"{TASKS}/{id}")).json()
        assert (found["state"], found["attempt"], found["run_no"], found["lane"]) == ("pending", 0, 2, "retry")

        cancelled = await server.user.post(f"{TASKS}/{id}/cancel")
        assert cancelled.json() == {"id": id, "answer": "cancelled"}
        assert (await server.user.post(f"{TASKS}/{id}/cancel")).status_code == 409
        assert (await server.user.delete(f"{TASKS}/{id}")).status_code == 204
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/retry"), ("POST", "/cancel"), ("GET", "/logs")):
            gone = await server.user.request(method, f"{TASKS}/{id}{path}")
            assert (gone.status_code, gone.headers["content-type"]) == (404, "application/problem+json")

        held = (await server.user.post(TASKS, json={"name": "add", "args": [1, 2]})).json()["id"]
        worker = worker_record()
        wants = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)]
        await server.app.engine.run(lambda store: store.register(worker))
        assert len(await server.app.engine.run(lambda store: store.claim(worker.id, wants))) == 1
        assert (await server.user.delete(f"{TASKS}/{held}")).status_code == 409
        stopping = await server.user.post(f"{TASKS}/{held}/cancel", json={"reason": "killed"})
        assert stopping.json()["answer"] == "cancelling"


@pytest.mark.requirement("K34", "K70", "K71", "K72", "K74", "K75")
async def test_a_users_command_waits_for_an_operator(serve: Serve):
    """K34, K71: a user's command is pending_approval, its approval pending. K70: an operator's is pending, with null.
    K72: approved it has who and when, and is pending. K74: rejected it has the reason, and has ended. K75: a user gets
    403, for their own as well; what does not wait is 409."""
    command = {"command": {"argv": [sys.executable, "-c", "print('ran')"]}}
    async with routed(serve) as server:
        assert (await server.operator.post(TASKS, json=command)).json()["state"] == "pending"
        assert (await server.admin.post(TASKS, json=command)).json()["state"] == "pending"
        made = [(await server.user.post(TASKS, json=command)).json() for _ in range(2)]
        assert [task["state"] for task in made] == ["pending_approval"] * 2
        first, second = (f"{TASKS}/{task['id']}" for task in made)
        waiting = {"status": "pending", "role": None, "by": None, "at": None, "note": None}
        assert (await server.user.get(first)).json()["approval"] == waiting
        for caller in (server.user, server.other, server.viewer):
            assert (await caller.post(f"{first}/approve")).status_code == 403
            assert (await caller.post(f"{first}/reject")).status_code == 403
        approved = (await server.operator.post(f"{first}/approve", json={"note": "fine"})).json()
        assert approved["state"] == "pending"
        decision = approved["approval"]
        assert (decision["status"], decision["by"], decision["note"]) == ("approved", "operator", "fine")
        assert decision["at"].endswith("Z")
        assert (await server.operator.post(f"{first}/approve")).status_code == 409
        assert (await server.operator.post(f"{first}/reject")).status_code == 409
        rejected = (await server.admin.post(f"{second}/reject", json={"note": "no budget"})).json()
        assert (rejected["state"], rejected["finished_at"] is not None) == ("rejected", True)
        assert (rejected["approval"]["status"], rejected["approval"]["by"]) == ("rejected", "admin")
        assert rejected["approval"]["note"] == "no budget"
        own = (await server.operator.post(TASKS, json=command)).json()["id"]
        assert (await server.operator.get(f"{TASKS}/{own}")).json()["approval"] is None
        acts = (await server.admin.get("/api/v1/audit")).json()["items"]
        told = {(entry["actor"], entry["act"], entry["outcome"]) for entry in acts}
        assert told >= {("operator", "tasks.approve", "done"), ("admin", "tasks.reject", "done")}


@pytest.mark.requirement("K73")
async def test_without_users_nothing_waits_for_approval(serve_sqlite: Serve):
    """K73: the command is pending at once."""
    async with routed(serve_sqlite, auth=False) as server:
        made = await server.nobody.post(TASKS, json={"command": {"argv": ["true"]}})
        assert (made.status_code, made.json()["state"]) == (201, "pending")


async def test_acts_by_filter(serve: Serve):
    async with routed(serve) as server:
        for caller in (server.user, server.other):
            await caller.post(
                f"{TASKS}/batch", json={"tasks": [{"name": "fail"}] * 2 + [{"name": "add", "args": [1, 2]}]}
            )
        await adrain(server.app, raise_on_failure=False)
        for act in ("retry", "cancel", "delete"):
            assert (await server.operator.post(f"{TASKS}/{act}", json={})).status_code == 422
            assert (await server.operator.post(f"{TASKS}/{act}", json={"status": ["sleepy"]})).status_code == 422
        retried = await server.operator.post(f"{TASKS}/retry", json={"name": ["fail"], "owner": "user"})
        assert retried.json()["answers"]["retried"] == 2
        cancelled = await server.operator.post(f"{TASKS}/cancel", json={"status": ["pending"]})
        assert cancelled.json()["answers"]["cancelled"] == 2
        replayed = await server.operator.post("/api/v1/dead-letters/replay", json={"all": True})
        assert replayed.json()["answers"]["retried"] == 2
        await adrain(server.app, raise_on_failure=False)
        letters = (await server.other.get("/api/v1/dead-letters")).json()["items"]
        assert [item["owner"] for item in letters] == ["other"] * 2
        assert (await server.other.post(f"/api/v1/dead-letters/{letters[0]['id']}/replay")).status_code == 200
        assert (await server.other.delete(f"/api/v1/dead-letters/{letters[0]['id']}")).status_code == 409
        gone = await server.operator.post("/api/v1/dead-letters/discard", json={"all": True})
        assert gone.json()["answers"]["deleted"] == 1
        deleted = await server.operator.post(f"{TASKS}/delete", json={"all": True})
        assert deleted.json()["answers"]["deleted"] == 5
        assert (await server.admin.get(TASKS)).json()["items"] == []
