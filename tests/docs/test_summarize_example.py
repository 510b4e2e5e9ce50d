"""The example with the page runs as its README says: server, worker, a service that fails first, and who watches."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import chat_server as answers
from tests.support.chat_server import ChatServer
from tests.support.waiting import wait_until

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "summarize"
CEILING = 60.0


@contextmanager
def running(folder: Path, environment: dict[str, str], *command: str) -> Iterator[None]:
    log = folder / f"{Path(command[0]).stem}-{command[-1].replace(':', '-')}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield
    except BaseException:
        print(log.read_text(errors="replace")[-4000:])
        raise
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.requirement("F1", "F2")
def test_a_text_is_submitted_and_watched_until_its_summary(tmp_path: Path):
    """F1: the server takes a text over HTTP, a worker of its own process runs it, and who watches is told each state
    and each token. F2: the worker asks the service, whose first answer is a 500, again after the delay of its row."""
    folder = shutil.copytree(EXAMPLE, tmp_path / "summarize")
    with ChatServer() as chat:
        chat.then(answers.status(500), answers.text(["To", " the", " sea."]))
        environment = {**os.environ, "OPENROUTER_BASE_URL": chat.base_url, "OPENROUTER_API_KEY": "sk-test"}
        port = _free_port()
        with (
            running(folder, environment, "serve.py", str(port)),
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=CEILING, trust_env=False) as client,
        ):
            wait_until(lambda: _answers(client), CEILING, message="the server to answer")
            _check_page(client)
            worker = ("-m", "headrace.cli", "worker", "--children", "1", "tasks:app")
            with running(folder, environment, *worker):
                answer = client.post("/api/v1/tasks/summarize/", json={"content": "A river runs."})
                task_id = answer.json()["task_id"]
                events = _watched(client, task_id)
                # All that there is, for who comes late: the last tokens may be told behind the last state.
                late = _watched(client, task_id, follow="false")
            updates = [data for kind, data in events if kind == "task_update"]
            assert (updates[-1]["status"], updates[-1]["attempt"]) == ("completed", 2)
            streamed = [data["value"]["text"] for kind, data in late if kind == "task_stream_value"]
            assert "".join(streamed) == "To the sea."
            assert {data["status"] for data in updates} & {"pending", "claimed", "running"}, "it was watched meanwhile"
            body = client.get(f"/api/v1/tasks/{task_id}").json()
            assert (body["state"], body["result"], body["retry_count"]) == ("COMPLETED", "To the sea.", 1)
            assert [entry["type"] for entry in body["error_history"]] == ["NetworkTimeout"]
            assert client.get(f"/api/v1/tasks/{updates[-1]['task']}").json()["lane"] == "retry"
        assert len(chat.asked) == 2


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/live", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def _watched(client: httpx.Client, task_id: str, follow: str = "true") -> list[tuple[str, Any]]:
    """What the page would be told, until the task has ended."""
    events: list[tuple[str, Any]] = []
    with client.stream("GET", f"/api/v1/live/tasks/{task_id}", params={"follow": follow}) as response:
        assert response.status_code == 200
        kind = ""
        for line in response.iter_lines():
            if line.startswith("event:"):
                kind = line.partition(":")[2].strip()
            elif line.startswith("data:"):
                events.append((kind, json.loads(line.partition(":")[2])))
                if follow == "true" and kind == "task_update" and events[-1][1]["status"] in ("completed", "failed"):
                    break
    return events


def _check_page(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    for name in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        assert client.get(f"/{name}").status_code == 200
    script = client.get("/page.js").text
    # What is shown comes from a service: it must not become markup.
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", script)
    assert not re.search(r"<script>|\son\w+=", page.text)
    wanted = set(re.findall(r'at\("(\w+)"\)|show\("(\w+)"', script))
    ids = set(re.findall(r'id="(\w+)"', page.text))
    assert {first or second for first, second in wanted} <= ids
