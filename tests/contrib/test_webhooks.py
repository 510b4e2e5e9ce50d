"""Webhooks against a local server that fails on request."""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from headrace import App, Retry
from headrace.contrib.webhooks import (
    POLICY,
    SIGNATURE,
    TIMESTAMP,
    InvalidDelivery,
    signed,
    verify,
    webhook,
)
from headrace.core.breaker import BreakerStatus
from headrace.core.states import AttemptState, TaskState
from headrace.testing import drain, override

SECRET = "whsec-7f3a9c1e5b"


@dataclass(slots=True)
class Receiver:
    """Answers with these statuses, one after the other, then with 204."""

    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list[tuple[dict[str, str], bytes]])
    answers: deque[tuple[int, dict[str, str]]] = field(default_factory=deque[tuple[int, dict[str, str]]])
    url: str = ""

    def then(self, status: int, **headers: str) -> None:
        self.answers.append((status, {name.replace("_", "-"): value for name, value in headers.items()}))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.came.append((dict(self.headers.items()), body))
            status, headers = found.answers.popleft() if found.answers else (204, {})
            if status == 0:  # cut
                self.connection.close()
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}/hooks?token=in-the-url"
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture
def app(receiver: Receiver, sqlite_url: str) -> Iterator[App]:
    made = App("sqlite:///:memory:")
    webhook(made, receiver.url, events=["paid", "job.completed"], secret=lambda: SECRET)
    with override(made, url=sqlite_url):
        made.events.declare()
        yield made


def run(app: App, *, with_retries: bool = False) -> None:
    drain(app, with_retries=with_retries, raise_on_failure=False)


def test_an_event_is_posted_and_can_be_verified(app: App, receiver: Receiver):
    app.send("paid", "order-7", {"total": 5, "name": "Zoë"})
    run(app)
    ((headers, body),) = receiver.came
    (task,) = app.tasks.list()
    told = verify(body, headers, SECRET)
    assert {name: told[name] for name in ("id", "event", "key", "payload")} == {
        "id": str(task.id),
        "event": "paid",
        "key": "order-7",
        "payload": {"total": 5, "name": "Zoë"},
    }
    assert told["sent_at"].endswith("+00:00")
    assert headers["X-Headrace-Event"] == "paid"
    assert headers["X-Headrace-Delivery"] == str(task.id)
    assert headers["content-type"] == "application/json"
    assert (task.state, task.result) == (TaskState.COMPLETED, "204")


def test_the_end_of_a_job_is_posted(app: App, receiver: Receiver):
    @app.task(name="work")
    async def work() -> None: ...

    job = app.jobs.create("import", tasks=[work.prepare()])
    run(app)
    ((headers, body),) = receiver.came
    assert verify(body, headers, SECRET)["payload"] == {"job": job.id, "name": "import", "state": "completed"}


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 0])
def test_what_time_may_mend_is_tried_again_as_the_same_delivery(app: App, receiver: Receiver, status: int):
    receiver.then(status)
    app.send("paid")
    run(app, with_retries=True)
    (task,) = app.tasks.list()
    assert task.state is TaskState.COMPLETED
    assert [attempt.state for attempt in app.tasks.attempts(task.id)] == [AttemptState.FAILED, AttemptState.SUCCEEDED]
    assert [verify(body, headers, SECRET)["id"] for headers, body in receiver.came] == [str(task.id)] * 2


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 410, 422])
def test_what_would_be_answered_the_same_again_is_not(app: App, receiver: Receiver, status: int):
    """A redirect is not followed: the other URL is asked for nothing."""
    receiver.then(status, location=receiver.url)
    app.send("paid")
    run(app, with_retries=True)
    (task,) = app.tasks.list()
    assert (task.state, task.dead_letter, task.attempt) == (TaskState.FAILED, True, 1)
    assert len(receiver.came) == 1
    assert str(status) in str(task.error_message)


def test_retry_after_is_the_least_that_is_waited(app: App, receiver: Receiver):
    receiver.then(503, retry_after="1234")
    app.send("paid")
    run(app)
    (task,) = app.tasks.list()
    (attempt,) = app.tasks.attempts(task.id)
    assert task.state is TaskState.PENDING
    assert attempt.finished_at is not None
    assert task.eligible_at - attempt.finished_at >= timedelta(seconds=1233)


def test_a_receiver_that_is_down_is_left_alone(app: App, receiver: Receiver):
    """Its breaker opens, and deliveries go back uncharged."""
    for _ in range(10):
        receiver.then(503)
    for number in range(12):
        app.send("paid", str(number))
    run(app)
    place = receiver.url.removeprefix("http://").partition("/")[0]
    assert app.breaker(f"webhook:{place}").status is BreakerStatus.OPEN
    assert len(receiver.came) == 10
    records = app.tasks.list()
    assert {record.state for record in records} == {TaskState.PENDING}
    assert sorted(record.attempt for record in records) == [0, 0] + [1] * 10


def test_the_secret_is_nowhere(app: App, receiver: Receiver, caplog: pytest.LogCaptureFixture, sqlite_url: str):
    caplog.set_level(logging.DEBUG)
    receiver.then(500)
    receiver.then(404)
    app.send("paid", payload={"a": 1})
    run(app, with_retries=True)
    (task,) = app.tasks.list()
    assert task.state is TaskState.FAILED
    written = repr(task) + repr(app.tasks.attempts(task.id)) + repr(app.events.subscriptions())
    assert SECRET not in written + caplog.text
    assert "in-the-url" not in written
    with open(sqlite_url.removeprefix("sqlite:///"), "rb") as file:
        assert SECRET.encode() not in file.read()


def test_verify_refuses():
    body = json.dumps({"id": "1"}).encode()
    at = int(time.time())
    headers = signed(body, SECRET, at=at)
    assert verify(body, {name.upper(): value for name, value in headers.items()}, SECRET) == {"id": "1"}
    assert verify(body, headers, SECRET.encode(), now=lambda: at + 299.0) == {"id": "1"}
    mistakes: list[tuple[bytes, dict[str, str], str, Any]] = [
        (body + b" ", headers, SECRET, time.time),
        (body, headers, "another", time.time),
        (body, {**headers, TIMESTAMP: str(at + 1)}, SECRET, time.time),
        (body, {**headers, TIMESTAMP: "soon"}, SECRET, time.time),
        (body, {**headers, SIGNATURE: headers[SIGNATURE].removeprefix("sha256=")}, SECRET, time.time),
        (body, {**headers, SIGNATURE: "sha256=é"}, SECRET, time.time),
        (body, {}, SECRET, time.time),
        (body, headers, SECRET, lambda: at + 301.0),
        (body, headers, SECRET, lambda: at - 301.0),
    ]
    for changed, given, secret, now in mistakes:
        with pytest.raises(InvalidDelivery):
            verify(changed, given, secret, now=now)


def test_mistakes_at_the_declaration():
    app = App("sqlite:///:memory:")
    for url in ("ftp://host/x", "host/x", "https://"):
        with pytest.raises(ValueError, match="https://"):
            webhook(app, url, events=["paid"], secret=SECRET)
    with pytest.raises(ValueError, match="list of names"):
        webhook(app, "https://host", events="paid", secret=SECRET)
    with pytest.raises(ValueError, match="empty"):
        webhook(app, "https://host", events=["paid"], secret="")
    task = webhook(app, "https://user:pw@host:8443/x", events=["paid", "paid"], secret=SECRET, retry=Retry())
    assert task.name.startswith("webhook:host:8443:")
    assert POLICY.dead_letter
