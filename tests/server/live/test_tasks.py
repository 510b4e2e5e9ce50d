"""A task that is watched while it runs, with a real worker."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace import App, Retry, current
from headrace.core.task import Ref
from headrace.worker.options import WorkerOptions
from headrace.worker.worker import Worker
from tests.server.live.watching import receive, watching
from tests.server.live.writing import Writer, store_of
from tests.server.serving import Serve, listening


@asynccontextmanager
async def working(app: App) -> AsyncGenerator[None]:
    async with store_of(app) as store:
        worker = Worker(app, store=store, options=WorkerOptions(children=0, poll=0.2))
        running = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.stop()
            await asyncio.wait_for(running, 30)


@pytest.mark.requirement("R4")
async def test_progress_is_pushed_while_the_task_runs(serve: Serve) -> None:
    """R4: the task goes on only after its watcher has seen how far it is."""
    app = App(serve.url)
    seen = asyncio.Event()

    @app.task(name="measured")
    async def measured() -> str:
        current.progress(1, 2, "half of it")
        await seen.wait()
        return "done"

    async with serve(app=app) as server, listening(server.api) as url, working(app):
        handle = await measured.aenqueue()
        async with watching(url, f"/ws/task/{handle.id}/", server.secrets["viewer"]) as client:
            message = await receive(client)
            while message["progress"] is None:
                message = await receive(client)
            assert message["type"] == "task_update"
            assert message["status"] in ("claimed", "running")
            assert message["progress"] == {"value": 1, "total": 2, "message": "half of it"}
            seen.set()
            while message["status"] != "completed":
                message = await receive(client)


async def test_the_lines_and_values_of_a_task(serve: Serve) -> None:
    """Its state first, then the lines; each claim counts anew, and both together say where to go on."""
    async with serve() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store)
        await writer.say(3)
        path, token = f"/ws/task/{writer.task}/", server.secrets["viewer"]
        async with watching(url, path, token) as client:
            before = [await receive(client) for _ in range(4)]
            await writer.say(1, text='{{"word":{}}}', stream="value")
            value = await receive(client)
            await writer.finish()
            ended = await receive(client)
        async with watching(url, f"{path}?after=1.1", token) as client:
            again = [await receive(client) for _ in range(3)]
    assert [message["type"] for message in before] == ["task_update", *["task_log_message"] * 3]
    assert all(message["buffered"] for message in before)
    assert [(message["claim_no"], message["seq"]) for message in before[1:]] == [(1, 0), (1, 1), (1, 2)]
    assert (value["type"], value["value"], value["seq"]) == ("task_stream_value", {"word": 3}, 3)
    assert ended["status"] == "completed"
    assert [message["type"] for message in again] == ["task_update", "task_log_message", "task_stream_value"]
    assert [message["seq"] for message in again[1:]] == [2, 3]


async def test_secrets_are_not_pushed(serve: Serve) -> None:
    """Progress, errors, values and lines are shown by the rules of the app, as they are by the rest of the API."""
    app = App(serve.url, redact=["iban", _without_mars])
    go_on = asyncio.Event()

    @app.task(name="careless", retry=Retry(max_attempts=1))
    async def careless() -> None:
        current.progress(1, 2, "password=hunter2")
        current.stream({"api_key": "hunter2", "iban": "DE00", "to": "mars", "part": 1})
        current.log("password=hunter2")
        await go_on.wait()
        raise ValueError("cannot log in with password=hunter2")

    async with serve(app=app) as server, listening(server.api) as url, working(app):
        handle = await careless.aenqueue()
        async with watching(url, f"/ws/task/{handle.id}/", server.secrets["viewer"]) as client:
            seen = [await receive(client)]
            while not {"task_stream_value", "task_log_message"} <= {message["type"] for message in seen}:
                seen.append(await receive(client))
            go_on.set()
            while seen[-1].get("status") != "failed":
                seen.append(await receive(client))
    assert "hunter2" not in json.dumps(seen)
    (value,) = [message["value"] for message in seen if message["type"] == "task_stream_value"]
    assert value == {"api_key": "[redacted]", "iban": "[redacted]", "to": "a planet", "part": 1}
    assert seen[-1]["error_message"] == "cannot log in with password=[redacted]"
    assert "password=[redacted]" in [message["progress"]["message"] for message in seen if message.get("progress")]


def _without_mars(name: str, value: object) -> object:
    return "a planet" if value == "mars" else value


async def test_what_others_wrote_is_shown_by_the_rules_of_this_app(serve_sqlite: Serve) -> None:
    """Lines that a worker with fewer rules has stored, of a task and of its job."""
    app = App(serve_sqlite.url, redact=["iban"])
    async with serve_sqlite(app=app) as server, listening(server.api) as url, store_of(app) as store:
        writer = await Writer.begin(store)
        await writer.say(text="iban=DE00 {}")
        await writer.progress('{"iban":"DE00')  # was cut, and is no JSON
        found: list[dict[str, Any]] = []
        for path, n in ((f"/ws/task/{writer.task}/", 2), (f"/ws/job/{writer.job}/logs/", 1)):
            async with watching(url, path, server.secrets["viewer"]) as client:
                found += [await receive(client) for _ in range(n)]
    assert "DE00" not in json.dumps(found)
    assert [message["message"] for message in found[1:]] == ["iban=[redacted] 0"] * 2


async def test_late_lines_of_an_earlier_attempt_are_in_the_log_and_not_shown_live(serve: Serve) -> None:
    """A worker that has lost its claim still writes what the task said there: nothing of it is lost."""
    async with serve() as server, listening(server.api) as url, store_of(server.app) as store:
        writer = await Writer.begin(store)
        later = Ref(writer.task, writer.ref.claim_no + 1)
        viewer = server.secrets["viewer"]
        async with (
            watching(url, f"/ws/task/{writer.task}/", viewer) as of_task,
            watching(url, f"/ws/job/{writer.job}/logs/", viewer) as of_job,
        ):
            assert (await receive(of_task))["type"] == "task_update"
            live: list[str] = []
            for ref, number, line in ((writer.ref, 0, "first"), (later, 0, "second"), (later, 1, "third")):
                if line == "third":
                    await store.append_logs([(writer.ref, 1, "info", "late")])
                await store.append_logs([(ref, number, "info", line)])
                live.append((await receive(of_task))["message"])
            job = [(await receive(of_job))["message"] for _ in range(4)]
        stored = (await server.viewer.get(f"/api/v1/tasks/{writer.task}/logs")).json()["items"]
    assert live == ["first", "second", "third"]
    assert job == ["first", "second", "late", "third"]
    assert [line["line"] for line in stored] == ["first", "late", "second", "third"]
