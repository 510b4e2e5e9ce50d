"""A task that is watched while it runs, with a real worker."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from headrace import App, current
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
            await writer.say(1, text='{{"token":{}}}', stream="value")
            value = await receive(client)
            await writer.finish()
            ended = await receive(client)
        async with watching(url, f"{path}?after=1.1", token) as client:
            again = [await receive(client) for _ in range(3)]
    assert [message["type"] for message in before] == ["task_update", *["task_log_message"] * 3]
    assert all(message["buffered"] for message in before)
    assert [(message["claim_no"], message["seq"]) for message in before[1:]] == [(1, 0), (1, 1), (1, 2)]
    assert (value["type"], value["value"], value["seq"]) == ("task_stream_value", {"token": 3}, 3)
    assert ended["status"] == "completed"
    assert [message["type"] for message in again] == ["task_update", "task_log_message", "task_stream_value"]
    assert [message["seq"] for message in again[1:]] == [2, 3]
