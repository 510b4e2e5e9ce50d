"""/jobs over HTTP."""

import httpx
import pytest

from headrace.server import job_searching
from headrace.server.job_searching import FoundJobs, JobSearch, search_jobs
from headrace.store.base import Store
from headrace.testing import adrain
from tests.server.routed import routed
from tests.server.serving import Serve

JOBS = "/api/v1/jobs"


async def test_a_graph_is_drawn_run_and_shown(serve: Serve):
    graph = {
        "name": "sum",
        "metadata": {"password": "hunter2", "note": "kept"},
        "tasks": [
            {"key": "a", "name": "add", "args": [1, 2]},
            {"key": "b", "name": "add", "kwargs": {"a": 3, "b": 4}},
            {"key": "sum", "name": "total", "args": [[{"$result": "a"}, {"$result": "b"}]]},
            {"key": "last", "name": "add", "args": [{"$result": "sum"}, 100], "after": ["b"]},
        ],
    }
    async with routed(serve) as server:
        made = await server.user.post(JOBS, json=graph)
        assert made.status_code == 201, made.text
        job = made.json()
        assert (job["state"], job["total"], job["open"], job["owner"]) == ("pending", 4, 4, "user")
        assert job["metadata"] == {"password": "[redacted]", "note": "kept"}
        place = made.headers["Location"]
        assert place == f"{JOBS}/{job['id']}"
        drawn = (await server.user.get(f"{place}/graph")).json()
        names = {node["id"]: node["name"] for node in drawn["nodes"]}
        edges = {(names[edge["upstream"]], names[edge["task"]], edge["passes"]) for edge in drawn["edges"]}
        assert edges >= {("a", "sum", True), ("b", "sum", True), ("sum", "last", True)}
        assert drawn["complete"] is True
        await adrain(server.app)
        done = (await server.user.get(place)).json()
        assert (done["state"], done["completed"], done["open"]) == ("completed", 4, 0)
        last = next(node["id"] for node in drawn["nodes"] if node["name"] == "last")
        assert (await server.user.get(f"/api/v1/tasks/{last}/result")).json()["value"] == 110
        owners = {item["owner"] for item in (await server.admin.get("/api/v1/tasks")).json()["items"]}
        assert owners == {"user"}
        assert [item["id"] for item in (await server.user.get(JOBS)).json()["items"]] == [job["id"]]
        assert (await server.other.get(JOBS)).json()["items"] == []
        assert (await server.other.get(place)).status_code == 403
        assert (await server.user.post(f"{place}/cancel")).status_code == 409


async def test_events_and_lines_by_number(serve: Serve):
    async with routed(serve) as server:
        tasks = [{"name": "greet", "args": [f"guest {n}"]} for n in range(3)]
        place = (await server.user.post(JOBS, json={"name": "party", "tasks": tasks})).headers["Location"]
        await adrain(server.app)
        events = (await server.user.get(f"{place}/events")).json()["items"]
        assert [event["seq"] for event in events] == list(range(len(events)))
        assert (events[-1]["state"], events[-1]["completed"]) == ("completed", 3)
        lines = (await server.user.get(f"{place}/logs")).json()["items"]
        assert [line["seq"] for line in lines] == list(range(6))
        assert "abcdef0123456789" not in str(lines)
        first = (await server.user.get(f"{place}/logs", params={"limit": 4})).json()
        rest = (await server.user.get(f"{place}/logs", params={"after": first["next"]})).json()
        assert first["items"] + rest["items"] == lines


async def test_cancel_retry_and_add(serve: Serve):
    async with routed(serve) as server:
        call = {"name": "add", "args": [1, 2]}
        place = (await server.user.post(JOBS, json={"name": "j", "tasks": [call]})).headers["Location"]
        (first,) = (await server.user.get(f"{place}/graph")).json()["nodes"]
        command = {"command": {"argv": ["true"]}}
        added = await server.user.post(f"{place}/tasks", json={"tasks": [call, command], "after": [first["id"]]})
        assert (added.status_code, len(added.json()["ids"])) == (201, 2)
        graph = (await server.user.get(f"{place}/graph")).json()
        assert {(edge["upstream"], edge["task"]) for edge in graph["edges"]} == {
            (first["id"], id) for id in added.json()["ids"]
        }
        # A user's command waits for an operator's word in a job as well.
        assert [node["waiting_on"] for node in graph["nodes"]] == [None, None, "approval"]
        assert (await server.other.post(f"{place}/tasks", json={"tasks": [call]})).status_code == 403
        assert (await server.user.post(f"{place}/cancel")).json()["state"] == "cancelled"
        assert (await server.user.post(f"{place}/tasks", json={"tasks": [call]})).status_code == 409
        again = await server.user.post(f"{place}/retry-failed")
        assert (again.status_code, len(again.json()["ids"])) == (200, 3)
        assert (await server.user.post(f"{place}/retry-failed")).status_code == 409
        assert (await server.user.post(f"{JOBS}/{2**40}/cancel")).status_code == 404


async def test_jobs_by_name(serve: Serve):
    async with routed(serve) as server:
        names = ["nightly", "Nightly report", "weekly", "nightly", "password=hunter2 import"]
        tasks = [{"name": "add", "args": [1, 2]}]
        made = [(await server.user.post(JOBS, json={"name": name, "tasks": tasks})).json()["id"] for name in names]
        others = (await server.other.post(JOBS, json={"name": "nightly", "tasks": tasks})).json()["id"]
        await server.admin.post(f"{JOBS}/{made[0]}/cancel")

        async def found(who: httpx.AsyncClient, **query: object) -> set[int]:
            answer = await who.get(JOBS, params=query)
            assert answer.status_code == 200, answer.text
            assert (answer.json()["next"], answer.json()["complete"]) == (None, True)
            return {item["id"] for item in answer.json()["items"]}

        assert await found(server.admin, name="nightly") == {made[0], made[3], others}
        assert await found(server.user, name="nightly") == {made[0], made[3]}
        assert await found(server.admin, name="nightly", owner="other") == {others}
        assert await found(server.admin, name="nightly", state="cancelled") == {made[0]}
        assert await found(server.admin, name="night*", owner="user") == {made[0], made[3]}
        assert await found(server.admin, name="*") == {*made, others}
        assert await found(server.admin, name="no such") == set()
        assert await found(server.admin, text="REPORT night") == {made[1]}
        assert await found(server.user, text="nightly", state="pending") == {made[1], made[3]}
        assert await found(server.admin, text=str(made[2])) == {made[2]}
        # Nobody finds by what nobody is shown.
        assert await found(server.admin, text="import") == {made[4]}
        assert await found(server.admin, text="hunter2") == set()

        place, pages = None, []
        while True:
            asked = {"name": "nightly", "limit": 1, **({} if place is None else {"cursor": place})}
            page = (await server.admin.get(JOBS, params=asked)).json()
            pages += [item["id"] for item in page["items"]]
            if (place := page["next"]) is None:
                break
        assert pages == sorted([made[0], made[3], others], reverse=True)


async def test_a_look_for_jobs_keeps_its_time_and_can_be_gone_on_with(serve: Serve):
    async with routed(serve) as server:
        for number in range(3):
            await server.app.jobs.acreate(f"job {number}", [])
        wanted = JobSearch(name="job 0*", text=None, states=(), owner=None, shown=str)

        async def look(store: Store, below: int | None) -> FoundJobs:
            return await search_jobs(store, wanted, below=below, limit=10, seconds=0)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(job_searching, "_FIRST", 1)
            below, looks, names = None, 0, []
            while True:
                found = await server.app.engine.run(lambda store, below=below: look(store, below))
                looks += 1
                names += [record.name for record in found.records]
                assert found.complete == (found.below is None)
                if (below := found.below) is None:
                    break
        # One job a look, and one look that finds nothing behind the last.
        assert (names, looks) == (["job 0"], 4)


async def test_what_its_end_enqueues(serve: Serve):
    async with routed(serve) as server:
        app = server.app
        add, fail, greet = (app.get_task(name) for name in ("add", "fail", "greet"))

        async def hooks(id: int) -> dict[str, object]:
            return (await server.viewer.get(f"{JOBS}/{id}")).json()["hooks"]

        plain = await app.jobs.acreate("plain", [add.prepare(1, 2)])
        assert await hooks(plain.id) == {"on_success": None, "on_failure": None}
        made = await app.jobs.acreate("both", [add.prepare(1, 2)], on_success=greet.s("ada"), on_failure=fail.s())
        waiting = {
            "on_success": {"task": "greet", "status": "waiting"},
            "on_failure": {"task": "fail", "status": "waiting"},
        }
        assert await hooks(made.id) == waiting
        await adrain(app)
        assert await hooks(made.id) == {
            "on_success": {"task": "greet", "status": "enqueued"},
            "on_failure": {"task": "fail", "status": "passed_over"},
        }
        failing = await app.jobs.acreate("fails", [fail.prepare()], on_failure=greet.s("bob"))
        await adrain(app, raise_on_failure=False)
        assert await hooks(failing.id) == {"on_success": None, "on_failure": {"task": "greet", "status": "enqueued"}}
        # Another run of it has an end of its own.
        await app.jobs.aretry_failed(failing.id)
        assert await hooks(failing.id) == {"on_success": None, "on_failure": {"task": "greet", "status": "waiting"}}


async def test_pages_of_jobs(serve: Serve):
    async with routed(serve) as server:
        call = {"name": "add", "args": [1, 2]}
        made = [(await server.user.post(JOBS, json={"name": "j", "tasks": [call]})).json()["id"] for _ in range(5)]
        found: list[int] = []
        query: dict[str, object] = {"limit": 2}
        while True:
            page = (await server.user.get(JOBS, params=query)).json()
            found += [item["id"] for item in page["items"]]
            if page["next"] is None:
                break
            query["cursor"] = page["next"]
        assert found == made[::-1]
        assert len((await server.user.get(JOBS, params={"state": "pending"})).json()["items"]) == 5
        assert (await server.user.get(JOBS, params={"state": "failed"})).json()["items"] == []


@pytest.mark.requirement("K106")
async def test_a_task_is_not_added_to_anothers_job(serve: Serve):
    """K106: neither by /jobs/{id}/tasks nor by a task that names the job."""
    async with routed(serve) as server:
        call = {"name": "add", "args": [1, 2]}
        job = (await server.other.post(JOBS, json={"name": "j", "tasks": [call]})).json()["id"]
        assert (await server.user.post("/api/v1/tasks", json={**call, "job": job})).status_code == 403
        batch = {"tasks": [call, {**call, "job": job}]}
        assert (await server.user.post("/api/v1/tasks/batch", json=batch)).status_code == 403
        assert (await server.other.get(f"{JOBS}/{job}")).json()["total"] == 1
        assert (await server.user.get("/api/v1/tasks")).json()["items"] == []
