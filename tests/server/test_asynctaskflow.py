"""The endpoints of AsyncTaskFlow, by its specification, on both stores."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from headrace import App, Retry
from headrace.client.breakers import Breaker
from headrace.contrib.summarize import SummarizeSettings, register
from headrace.core.breaker import BreakerStatus
from headrace.core.errors import BreakerOpen
from headrace.core.lanes import Lane
from headrace.core.limits import Gate
from headrace.core.outcome import Completed
from headrace.core.settlement import success
from headrace.core.task import NewTask, Want
from headrace.server.faces.ids import id_of, uuid_of
from headrace.store.base import Store
from headrace.testing import adrain, override
from headrace.worker.options import WorkerOptions
from headrace.worker.worker import worker_record
from tests.server.serving import Serve, Serving
from tests.support import chat_server as answers
from tests.support.chat_server import ChatServer
from tests.support.waiting import eventually

TASKS = "/api/v1/tasks"
FIELDS = [
    "task_id", "state", "content", "retry_count", "max_retries", "last_error", "error_type", "retry_after",
    "created_at", "updated_at", "completed_at", "result", "error_history",
]  # fmt: skip
type Open = Callable[[], AbstractAsyncContextManager["Flow"]]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-test")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


class Flow:
    """A server whose app has the summariser, and a way to run what waits."""

    def __init__(self, server: Serving) -> None:
        self.server = server
        self.app = server.app

    async def submit(self, content: str = "A text about rivers.", *, by: str = "user") -> str:
        answer = await self.server.of(by).post(f"{TASKS}/summarize/", json={"content": content})
        assert answer.status_code == 200, answer.text
        return answer.json()["task_id"]

    async def get(self, path: str, *, by: str = "user", **query: Any) -> Any:
        answer = await self.server.of(by).get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def detail(self, task_id: str, *, by: str = "user") -> dict[str, Any]:
        return await self.get(f"{TASKS}/{task_id}", by=by)

    async def run(self, *, with_retries: bool = False) -> None:
        await adrain(self.app, with_retries=with_retries, raise_on_failure=False)

    async def on_store(self, act: Callable[[Store], Any]) -> Any:
        return await self.app.engine.run(act)


@pytest.fixture
def flow(store_url: str, chat: ChatServer) -> Open:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[Flow]:
        app = App(store_url, preset="asynctaskflow")
        register(app, SummarizeSettings(base_url=chat.base_url, timeout=10.0))

        @app.task(name="plain", retry=Retry(max_attempts=1))
        async def plain(works: bool = True) -> str:
            if not works:
                raise ValueError("as it was told to")
            return "done"

        async with override(app, url=store_url), Serve(store_url)(app=app) as server:
            yield Flow(server)

    return opened


def _refused(answer: httpx.Response, status: int, detail: str) -> None:
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["detail"]) == (status, detail)


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    assert at.utcoffset() == timedelta(0)
    return at


@pytest.mark.requirement("F4", "F5", "F6", "F43")
async def test_a_text_is_submitted_and_looked_at(flow: Open):
    """F43: a task_id that is a UUID, and PENDING. F4: the record has exactly these fields, with these values. F5: what
    there is not is null. F6: instants have a zone, which is UTC."""
    async with flow() as made:
        answer = await made.server.user.post(f"{TASKS}/summarize/", json={"content": "A text about rivers."})
        assert answer.status_code == 200
        assert answer.json() == {"task_id": str(UUID(answer.json()["task_id"])), "state": "PENDING"}
        body = await made.detail(answer.json()["task_id"])
        assert list(body) == FIELDS
        created = _instant(body["created_at"])
        assert abs(datetime.now(UTC) - created) < timedelta(minutes=5)
        assert body["created_at"].endswith("Z")
        assert body["updated_at"].endswith("Z")
        assert {name: body[name] for name in FIELDS if not name.endswith("d_at")} == {
            "task_id": answer.json()["task_id"],
            "state": "PENDING",
            "content": "A text about rivers.",
            "retry_count": 0,
            "max_retries": 3,
            "last_error": None,
            "error_type": None,
            "retry_after": None,
            "result": None,
            "error_history": [],
        }
        assert body["completed_at"] is None


NO_CONTENT: list[Any] = [
    {}, {"content": ""}, {"content": " \n\t "}, {"content": None}, {"content": 7}, {"content": ["text"]},
    {"content": "text", "more": 1}, [], None, "text",
]  # fmt: skip


@pytest.mark.requirement("F44")
async def test_without_content_nothing_is_written(flow: Open):
    """F44: each is answered by a problem of the 400s, and there is no task afterwards."""
    async with flow() as made:
        for sent in NO_CONTENT:
            answer = await made.server.user.post(f"{TASKS}/summarize/", json=sent)
            assert 400 <= answer.status_code < 500, sent
            assert answer.headers["content-type"] == "application/problem+json"
        answer = await made.server.user.post(f"{TASKS}/summarize/", content=b'{"content": ')
        assert 400 <= answer.status_code < 500
        assert await made.on_store(lambda store: store.counts()) == {}


async def test_an_app_without_the_task_says_what_to_do(serve_sqlite: Serve):
    async with serve_sqlite() as server:
        answer = await server.user.post(f"{TASKS}/summarize/", json={"content": "text"})
        assert answer.status_code == 503
        assert "headrace.contrib.summarize.register(app)" in answer.json()["detail"]


@pytest.mark.requirement("F1")
async def test_from_the_request_to_the_result(flow: Open, chat: ChatServer):
    """F1: the API takes the task, queues it, a worker runs it, and whoever looks sees each of that."""
    chat.then(answers.text(["To the", " sea."]))
    async with flow() as made:
        task_id = await made.submit()
        assert (await made.get("/api/v1/queues/status"))["queues"]["primary"] == 1
        await made.run()
        body = await made.detail(task_id)
        assert (body["state"], body["result"], body["retry_count"]) == ("COMPLETED", "To the sea.", 0)
        assert _instant(body["completed_at"]) >= _instant(body["created_at"])
        assert (await made.get("/api/v1/queues/status"))["queues"]["primary"] == 0


@pytest.mark.requirement("F7", "F33", "F5")
async def test_a_failed_attempt_waits_and_is_told(flow: Open, chat: ChatServer):
    """F7: an entry with time, error, type and retry count for each failed attempt. F33: `retry_after` says when the
    retry is due, and is null again (F5) when none waits."""
    chat.then(answers.status(429), answers.status(503))
    async with flow() as made:
        task_id = await made.submit()
        await made.run()
        waiting = await made.detail(task_id)
        assert (waiting["state"], waiting["retry_count"], waiting["error_type"]) == ("FAILED", 1, "RateLimitError")
        (entry,) = waiting["error_history"]
        assert (entry["type"], entry["retry_count"]) == ("RateLimitError", 0)
        assert "answered 429" in entry["error"]
        wait = _instant(waiting["retry_after"]) - _instant(entry["time"])
        assert timedelta(seconds=59) <= wait <= timedelta(seconds=70)
        assert (await made.get("/api/v1/queues/status"))["queues"]["scheduled"] == 1
        await made.run(with_retries=True)
        body = await made.detail(task_id)
        assert (body["state"], body["retry_after"], body["retry_count"]) == ("COMPLETED", None, 2)
        assert [each["type"] for each in body["error_history"]] == ["RateLimitError", "ServiceUnavailable"]
        assert [each["retry_count"] for each in body["error_history"]] == [0, 1]


@pytest.mark.requirement("F24")
async def test_a_retry_that_meets_an_open_breaker_is_pending(flow: Open):
    """F24: it failed, and its retry is not started while the breaker is open: PENDING, with the retries that it had,
    in the detail and in the lists."""
    async with flow() as made:
        failures = [ConnectionError("once")]

        @made.app.task(name="guarded", retry=Retry(max_attempts=3, base=0.01, cap=0.01))
        async def guarded() -> str:
            if failures:
                raise failures.pop()
            async with made.app.breaker("bank").call():
                return "paid"

        await made.app.breakers.aopen("bank")
        handle = await guarded.aenqueue()

        async def was_put_back() -> bool:
            await made.run()
            return (await made.app.tasks.aget(handle.id)).claim_no == 2

        await eventually(was_put_back)
        task_id = str(uuid_of(handle.id))
        body = await made.detail(task_id, by="operator")
        assert (body["state"], body["retry_after"], body["retry_count"]) == ("PENDING", None, 1)
        assert [entry["error"] for entry in body["error_history"]] == ["once"]
        for status, ids in (("PENDING", [task_id]), ("FAILED", [])):
            listed = await made.get(f"{TASKS}/", by="operator", status=status)
            assert [task["task_id"] for task in listed] == ids
            assert (await made.get("/api/v1/queues/status"))["states"][status] == len(ids)
        _refused(await made.server.operator.post(f"{TASKS}/{task_id}/retry"), 400, "Task cannot be retried")
        await made.app.breakers.areset("bank")
        await made.run(with_retries=True)
        assert (await made.detail(task_id, by="operator"))["state"] == "COMPLETED"


@pytest.mark.requirement("F47")
async def test_a_task_of_any_kind_is_found_by_its_id(flow: Open):
    """F47: the detail of a task that is no summary; 404 «Task not found» for an id that names none."""
    async with flow() as made:
        handle = await made.app.get_task("plain").aenqueue()
        await made.run()
        body = await made.detail(str(uuid_of(handle.id)), by="operator")
        assert (body["state"], body["content"], body["result"]) == ("COMPLETED", None, "done")
        for unknown in (uuid4(), uuid_of(999_999_999)):
            for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/retry")):
                answer = await made.server.operator.request(method, f"{TASKS}/{unknown}{path}")
                _refused(answer, 404, "Task not found")


async def test_the_native_api_has_the_same_task_by_its_number(flow: Open):
    async with flow() as made:
        task_id = await made.submit()
        native = await made.get(f"{TASKS}/{id_of(UUID(task_id))}")
        assert (native["name"], native["state"]) == ("summarize", "pending")


@pytest.mark.requirement("F48", "F49")
async def test_a_dead_task_is_retried_once(flow: Open, chat: ChatServer):
    """F48: from DLQ it is PENDING with retry_count 0, in the retry queue; again, or of one that is not FAILED or DLQ,
    400 «Task cannot be retried». F49: it is no longer in the DLQ. Two at once: one."""
    chat.otherwise = answers.status(401)
    async with flow() as made:
        task_id = await made.submit()
        _refused(await made.server.user.post(f"{TASKS}/{task_id}/retry"), 400, "Task cannot be retried")
        await made.run()
        assert [task["task_id"] for task in await made.get("/api/v1/queues/dlq")] == [task_id]
        both = await asyncio.gather(*[made.server.user.post(f"{TASKS}/{task_id}/retry") for _ in range(2)])
        assert sorted(answer.status_code for answer in both) == [200, 400]
        (done,) = [answer for answer in both if answer.status_code == 200]
        assert done.json() == {"task_id": task_id, "state": "PENDING"}
        assert await made.get("/api/v1/queues/dlq") == []
        body = await made.detail(task_id)
        assert (body["state"], body["retry_count"]) == ("PENDING", 0)
        status = await made.get("/api/v1/queues/status")
        assert (status["queues"]["retry"], status["queues"]["primary"], status["queues"]["dlq"]) == (1, 0, 0)
        chat.otherwise = answers.text("now it works")
        await made.run()
        assert (await made.detail(task_id))["result"] == "now it works"
        _refused(await made.server.user.post(f"{TASKS}/{task_id}/retry"), 400, "Task cannot be retried")


@pytest.mark.requirement("F48")
async def test_a_task_that_waits_for_its_retry_is_retried_now(flow: Open, chat: ChatServer):
    """F48: from FAILED (its retry waits for a minute): PENDING at once, with a fresh budget."""
    chat.then(answers.status(429))
    async with flow() as made:
        task_id = await made.submit()
        await made.run()
        assert (await made.detail(task_id))["state"] == "FAILED"
        answer = await made.server.user.post(f"{TASKS}/{task_id}/retry")
        assert (answer.status_code, answer.json()["state"]) == (200, "PENDING")
        body = await made.detail(task_id)
        assert (body["state"], body["retry_count"], body["retry_after"]) == ("PENDING", 0, None)
        await made.run()
        assert (await made.detail(task_id))["state"] == "COMPLETED"


@pytest.mark.requirement("F50")
async def test_a_retry_by_hand_is_as_young_as_the_retry(flow: Open, chat: ChatServer):
    """F50: it was dead because it was too old; retried by hand it runs."""
    async with flow() as made:
        task = made.app.get_task("summarize").using(max_age=0.001)
        handle = await task.aenqueue(content="old")
        await eventually(lambda: made.on_store(lambda store: store.expire()))
        task_id = str(uuid_of(handle.id))
        body = await made.detail(task_id, by="operator")
        assert (body["state"], body["error_history"]) == ("DLQ", [])
        assert body["last_error"]
        record = await made.app.tasks.aget(handle.id)
        await made.server.operator.post(f"{TASKS}/{task_id}/retry")
        again = await made.app.tasks.aget(handle.id)
        assert (again.state, again.expires_at is not None and record.expires_at is not None) == ("pending", True)
        assert again.enqueued_at > record.enqueued_at
        assert again.expires_at > record.expires_at  # type: ignore[operator]


@pytest.mark.requirement("F51")
async def test_lists_are_filtered_and_limited(flow: Open, chat: ChatServer):
    """F51: by status, each of the five words, newest first, and at most `limit`."""
    async with flow() as made:
        done = [await made.submit(f"text {n}") for n in range(3)]
        await made.run()
        chat.then(answers.status(400), answers.status(503))
        dead = await made.submit("dead")
        await made.run()
        failed = await made.submit("waits for its retry")
        await made.run()
        held = await made.submit("held")
        await made.on_store(_claimed_by("someone"))
        pending = [await made.submit(f"pending {n}") for n in range(3)]
        found = {
            word: [task["task_id"] for task in await made.get(f"{TASKS}/", status=word)]
            for word in ("PENDING", "ACTIVE", "COMPLETED", "FAILED", "DLQ")
        }
        assert found == {
            "PENDING": pending[::-1],
            "ACTIVE": [held],
            "COMPLETED": done[::-1],
            "FAILED": [failed],
            "DLQ": [dead],
        }
        everything = await made.get(f"{TASKS}/")
        assert {task["task_id"] for task in everything} == {*done, dead, failed, held, *pending}
        assert [task["task_id"] for task in await made.get(f"{TASKS}/", status="PENDING", limit=2)] == pending[:0:-1]
        assert len(await made.get(f"{TASKS}/", limit=4)) == 4
        for wrong in ({"status": "ASLEEP"}, {"limit": 0}, {"limit": 10_000}, {"limit": "many"}):
            assert (await made.server.user.get(f"{TASKS}/", params=wrong)).status_code == 422


def _claimed_by(worker: str, n: int = 1) -> Callable[[Store], Any]:
    """A worker that registers, takes tasks and is never heard of again."""

    async def claim(store: Store) -> None:
        await store.register(worker_record(worker, WorkerOptions(lease=60.0)))
        wants = [Want(queue="default", pool="coroutine", lane=lane, n=n) for lane in Lane]
        assert await store.claim(worker, wants)

    return claim


@pytest.mark.requirement("F52")
async def test_orphans_are_queued_again_once(flow: Open):
    """F52: two tasks of a worker that is gone, and one that waits for a slot that is free and that nobody woke: each is
    queued once, the answer counts them, and the next call finds none."""
    async with flow() as made:
        tasks = [await made.submit(f"text {n}") for n in range(2)]
        await made.on_store(_claimed_by("gone", 2))
        await made.on_store(_stopped("gone"))
        assert {(await made.detail(task))["state"] for task in tasks} == {"ACTIVE"}
        parked = await made.on_store(_parked_for_nothing)
        answer = await made.server.operator.post(f"{TASKS}/requeue-orphaned")
        assert answer.json() == {"requeued": 3, "pending": 1, "active": 2, "failed": 0}
        assert {(await made.detail(task))["state"] for task in tasks} == {"PENDING"}
        assert (await made.app.tasks.aget(parked)).waiting_on is None
        again = await made.server.operator.post(f"{TASKS}/requeue-orphaned")
        assert again.json() == {"requeued": 0, "pending": 0, "active": 0, "failed": 0}
        # Not for users: it concerns everybody's tasks.
        assert (await made.server.user.post(f"{TASKS}/requeue-orphaned")).status_code == 403


def _stopped(worker: str) -> Callable[[Store], Any]:
    """It died: somebody took it over, and stopped before they gave its tasks back."""

    async def stop(store: Store) -> None:
        (found,) = [each for each in await store.workers() if each.id == worker]
        assert await store.take_over(worker, beat=found.beat)

    return stop


async def _parked_for_nothing(store: Store) -> int:
    """Three tasks of one slot. When the first has ended, its room goes to the second, whose queue is paused: nobody
    takes it, and nobody wakes the third."""
    gate = (Gate(kind="limit", key="one", n=1),)
    await store.register(worker_record("w", WorkerOptions(lease=60.0)))
    claims = []
    for queue in ("first", "paused", "third"):
        await store.enqueue([NewTask(name="plain", queue=queue, gates=gate)])
        (claim,) = await store.claim("w", [Want(queue=queue, pool="coroutine", lane=Lane.PRIMARY, n=1)])
        await store.admit("w", [claim])
        claims.append(claim)
    await store.pause("paused")
    done = success(claims[0], Completed(result="1"), ran_for=0.1, executor="coroutine", result_ttl=None)
    assert (await store.finish("w", [done])).accepted
    third = claims[-1].id
    assert (await store.get([third]))[third].waiting_on is not None
    return third


@pytest.mark.requirement("F53")
async def test_a_task_is_deleted_everywhere(flow: Open, chat: ChatServer):
    """F53: pending, scheduled, done or dead: gone from lists, queues and the DLQ; unknown 404; ACTIVE 409."""
    chat.then(answers.status(400), answers.status(503), answers.text("done"))
    async with flow() as made:
        dead = await made.submit("dead")
        await made.run()
        scheduled = await made.submit("scheduled")
        await made.run()
        done = await made.submit("done")
        await made.run()
        held = await made.submit("held")
        await made.on_store(_claimed_by("someone"))
        pending = await made.submit("pending")
        for task in (dead, scheduled, done, pending):
            answer = await made.server.user.delete(f"{TASKS}/{task}")
            assert (answer.status_code, answer.content) == (204, b"")
            _refused(await made.server.user.get(f"{TASKS}/{task}"), 404, "Task not found")
            _refused(await made.server.user.delete(f"{TASKS}/{task}"), 404, "Task not found")
        answer = await made.server.user.delete(f"{TASKS}/{held}")
        assert (answer.status_code, answer.json()["detail"][:14]) == (409, "Task is ACTIVE")
        assert [task["task_id"] for task in await made.get(f"{TASKS}/")] == [held]
        status = await made.get("/api/v1/queues/status")
        assert status["queues"] == {"primary": 0, "retry": 0, "scheduled": 0, "dlq": 0}
        assert status["states"] == {"PENDING": 0, "ACTIVE": 1, "COMPLETED": 0, "FAILED": 0, "DLQ": 0}


@pytest.mark.requirement("F54", "F55")
async def test_the_status_of_the_queues(flow: Open, chat: ChatServer):
    """F54: depths of primary, retry, scheduled and dlq, tasks by state, and the share of retries. F55: the figures are
    those of the ledger, exactly."""
    async with flow() as made:
        assert await made.get("/api/v1/queues/status") == {
            "queues": {"primary": 0, "retry": 0, "scheduled": 0, "dlq": 0},
            "states": {"PENDING": 0, "ACTIVE": 0, "COMPLETED": 0, "FAILED": 0, "DLQ": 0},
            "retry_ratio": 0.3,
            "at_least": [],
        }
        chat.then(*[answers.text("done")] * 4, *[answers.status(404)] * 3, *[answers.status(503)] * 2)
        for n in range(9):
            await made.submit(f"text {n}")
            await made.run()
        plain = made.app.get_task("plain")
        await plain.aenqueue(works=False)
        await made.run()
        cancelled = await plain.aenqueue()
        await cancelled.acancel()
        dead = await made.get("/api/v1/queues/dlq")
        await made.server.user.post(f"{TASKS}/{dead[0]['task_id']}/retry")
        await made.submit("held")
        await made.on_store(_claimed_first_primary)
        for n in range(5):
            await made.submit(f"waiting {n}")
        await plain.using(run_after=3600).aenqueue()
        found = await made.get("/api/v1/queues/status")
        assert found["queues"] == {"primary": 5, "retry": 1, "scheduled": 3, "dlq": 2}
        assert found["states"] == {"PENDING": 7, "ACTIVE": 1, "COMPLETED": 4, "FAILED": 4, "DLQ": 2}
        for word, n in found["states"].items():
            assert len(await made.get(f"{TASKS}/", by="operator", status=word)) == n


async def _claimed_first_primary(store: Store) -> None:
    await store.register(worker_record("someone", WorkerOptions(lease=60.0)))
    assert await store.claim("someone", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)])


@pytest.mark.requirement("F56")
async def test_the_dead_are_listed_with_details(flow: Open, chat: ChatServer):
    """F56: records of the dead, latest first, at most `limit`."""
    chat.otherwise = answers.status(403)
    async with flow() as made:
        tasks = []
        for n in range(3):
            tasks.append(await made.submit(f"text {n}"))
            await made.run()
        found = await made.get("/api/v1/queues/dlq")
        assert [task["task_id"] for task in found] == tasks[::-1]
        assert {(task["state"], task["error_type"]) for task in found} == {("DLQ", "ServiceRefused")}
        assert all(list(task) == FIELDS and len(task["error_history"]) == 1 for task in found)
        assert [task["task_id"] for task in await made.get("/api/v1/queues/dlq", limit=1)] == tasks[:1:-1]


async def test_users_see_and_touch_their_own(flow: Open):
    async with flow() as made:
        mine, theirs = await made.submit(by="user"), await made.submit(by="other")
        assert [task["task_id"] for task in await made.get(f"{TASKS}/")] == [mine]
        assert {task["task_id"] for task in await made.get(f"{TASKS}/", by="viewer")} == {mine, theirs}
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/retry")):
            _refused(await made.server.user.request(method, f"{TASKS}/{theirs}{path}"), 404, "Task not found")
        assert (await made.server.viewer.delete(f"{TASKS}/{mine}")).status_code == 403
        assert (await made.server.viewer.post(f"{TASKS}/summarize/", json={"content": "x"})).status_code == 403
        assert (await made.server.nobody.get(f"{TASKS}/{mine}")).status_code == 401
        assert (await made.server.operator.delete(f"{TASKS}/{theirs}")).status_code == 204
        assert await made.get(f"{TASKS}/", by="other") == []


# --- health -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("F57")
async def test_health_needs_the_database_and_a_worker(flow: Open):
    """F57: the four fields; healthy once a worker is active, and not when it is silent for longer than its lease.
    Nobody needs a token for it."""
    async with flow() as made:
        before = await made.get("/health", by="nobody")
        assert list(before) == ["status", "components", "timestamp"]
        assert before["status"] == "unhealthy"
        assert before["components"] == {"redis": True, "workers": False, "circuit_breaker": {"openrouter": "CLOSED"}}
        assert abs(datetime.now(UTC) - _instant(before["timestamp"])) < timedelta(minutes=5)
        await made.on_store(lambda store: store.register(worker_record("w", WorkerOptions(lease=60.0))))
        await eventually(lambda: _healthy(made.server))  # the answer is kept for a second
        after = await made.get("/health", by="nobody")
        assert (after["status"], after["components"]["workers"]) == ("healthy", True)
        await made.on_store(lambda store: store.deregister("w"))
        await eventually(lambda: _unhealthy(made.server))


@pytest.mark.requirement("F57", "F58")
@pytest.mark.postgres
async def test_health_answers_when_the_database_hangs(postgres_url: str):
    """F58: the table of workers is locked by somebody, so that looking at it would wait for ever; F57: the answer comes
    all the same, soon, and says unhealthy."""
    import asyncpg

    app = App(postgres_url, preset="asynctaskflow")
    async with Serve(postgres_url)(app=app) as server:
        await server.app.engine.run(lambda store: store.register(worker_record("w", WorkerOptions(lease=60.0))))
        assert (await server.nobody.get("/health")).json()["status"] == "healthy"
        connection = await asyncpg.connect(postgres_url)
        try:
            async with connection.transaction():
                await connection.execute("LOCK TABLE headrace.workers IN ACCESS EXCLUSIVE MODE")
                began = time.monotonic()
                await eventually(lambda: _unhealthy(server))
                answer = await server.nobody.get("/health")
                assert time.monotonic() - began < 20
                assert answer.status_code == 200
                assert answer.json()["status"] == "unhealthy"
                assert answer.json()["components"]["redis"] is False
        finally:
            await connection.close()
        await eventually(lambda: _healthy(server))


async def _healthy(server: Serving) -> bool:
    return (await server.nobody.get("/health")).json()["status"] == "healthy"


async def _unhealthy(server: Serving) -> bool:
    return not await _healthy(server)


@pytest.mark.requirement("F40", "F57", "F73", "F74")
async def test_a_breaker_is_counted_in_memory_and_seen_by_all(flow: Open, store_url: str):
    """F40: while it is closed nothing of it is stored, however many calls it counts; its state is in the API. F73: one
    process opens it, and another's next calls are refused within seconds; F57: /health says OPEN. F74: it is reset by
    hand, and opened by hand, for both."""
    another = App(store_url, preset="asynctaskflow")
    async with flow() as made:
        operator = made.server.operator
        ours, theirs = made.app.breaker("openrouter"), another.breaker("openrouter")
        for _ in range(5):
            async with ours.call():
                pass
        assert await made.get("/api/v1/breakers") == []
        for _ in range(5):
            with suppress(ConnectionError):
                async with ours.call():
                    raise ConnectionError("down")
        assert ours.status is BreakerStatus.OPEN
        await eventually(lambda: _refuses(theirs))
        await eventually(lambda: _shows(made, "OPEN"))
        (shown,) = await made.get("/api/v1/breakers")
        assert (shown["service"], shown["status"]) == ("openrouter", "open")

        assert (await operator.post("/api/v1/breakers/openrouter/reset")).status_code == 200
        for breaker in (ours, theirs):
            await eventually(lambda breaker=breaker: _lets_through(breaker))
        await eventually(lambda: _shows(made, "CLOSED"))

        assert (await operator.post("/api/v1/breakers/openrouter/open")).status_code == 200
        for breaker in (ours, theirs):
            await eventually(lambda breaker=breaker: _refuses(breaker))
        await eventually(lambda: _shows(made, "OPEN"))
        assert (await made.server.user.post("/api/v1/breakers/openrouter/reset")).status_code == 403
    await another.aclose()


async def _refuses(breaker: Breaker) -> bool:
    try:
        async with breaker.call():
            return False
    except BreakerOpen:
        return True


async def _lets_through(breaker: Breaker) -> bool:
    return not await _refuses(breaker)


async def _shows(made: Flow, word: str) -> bool:
    return (await made.get("/health", by="nobody"))["components"]["circuit_breaker"] == {"openrouter": word}
