"""Breakers of real processes: a program, a worker and its children, on both stores."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from headrace.core.breaker import BreakerStatus
from headrace.core.states import TERMINAL, TaskState
from headrace.core.task import NewTask

ROOT = Path(__file__).parents[2]
MODULE = "tests.client.breaker_tasks"


def until(met: Callable[[], Any], what: str, ceiling: float = 60.0) -> None:
    began = time.monotonic()
    while not met():
        assert time.monotonic() - began < ceiling, what
        time.sleep(0.05)


class Room:
    """A worker, and a program beside it."""

    def __init__(self, url: str, calls: Path) -> None:
        self.app = App(url)
        self._calls = calls
        environ = {**os.environ, "HEADRACE_DATABASE_URL": url, "BREAKER_CALLS": str(calls)}
        environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        headrace = str(Path(sys.executable).parent / "headrace")
        self.app.tasks.list()
        self.worker = subprocess.Popen([headrace, "worker", f"{MODULE}:app", "--children", "2"], cwd=ROOT, env=environ)

    def put(self, task: str, what: str, *, pool: str = "coroutine") -> int:
        new = NewTask(name=f"{MODULE}.{task}", arguments=f'{{"what":"{what}"}}', pool=pool, max_attempts=1)
        [answer] = asyncio.run(self.app.engine.enqueue([new]))
        return answer.id

    def calls(self) -> list[str]:
        return [line.split()[0] for line in self._calls.read_text().splitlines()] if self._calls.exists() else []

    def went_back(self, id: int) -> bool:
        """Claimed at least once, and pending again."""
        record = self.app.tasks.get(id)
        return record.claim_no > 0 and record.state is TaskState.PENDING


@pytest.fixture
def room(store_url: str, tmp_path: Path) -> Iterator[Room]:
    made = Room(store_url, tmp_path / "calls")
    yield made
    made.worker.terminate()
    try:
        assert made.worker.wait(60) == 0
    finally:
        made.app.close()


@pytest.mark.requirement("F24", "F73", "F74")
def test_what_opens_anywhere_stops_calls_everywhere(room: Room) -> None:
    """F74, F24: opened by hand in a program, the tasks of a worker and of its children go back uncharged, and run once
    it is reset. F73: a breaker that opens in a child is seen by the program and by the worker's own process."""
    app = room.app
    app.breakers.open("mail")
    waiting = [room.put("send", "in-a-child", pool="child"), room.put("send_here", "here")]
    until(lambda: all(map(room.went_back, waiting)), "they did not go back")
    assert room.calls() == []
    assert [app.tasks.get(id).attempt for id in waiting] == [0, 0]
    app.breakers.reset("mail")
    assert [app.tasks.handle(id).result(timeout=60) for id in waiting] == ["in-a-child", "here"]
    assert sorted(room.calls()) == ["here", "in-a-child"]

    failing = [room.put("fails", f"failing-{n}", pool="child") for n in range(8)]

    def bank() -> list[BreakerStatus]:
        return [record.status for record in app.breakers.list() if record.service == "bank"]

    until(lambda: bank() == [BreakerStatus.OPEN], "nobody heard of the child's breaker")
    paying: list[int] = []

    def is_refused() -> bool:
        paying.append(room.put("pays", f"paid-{len(paying)}"))
        until(lambda: room.went_back(paying[-1]) or app.tasks.get(paying[-1]).state in TERMINAL, "nobody takes it")
        return room.went_back(paying[-1])

    until(is_refused, "the worker's own process goes on calling")
    assert f"paid-{len(paying) - 1}" not in room.calls()
    record = app.tasks.get(paying[-1])
    assert (record.attempt, record.eligible_at > record.created_at + timedelta(seconds=300)) == (0, True)
    assert len([call for call in room.calls() if call.startswith("failing")]) <= len(failing)
    assert app.health_check().checks["breakers"].detail == "bank open"
