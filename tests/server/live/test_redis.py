"""Hints over a real Redis: many servers, and one of them listens to the database."""

import asyncio
import contextlib
import logging
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from headrace import App
from headrace.core.errors import MissingExtra
from headrace.server.live.hub import Hub
from headrace.server.live.pace import Pace
from headrace.server.live.redis import RedisHints
from headrace.server.live.sources import JobLogs
from headrace.server.options import ServerOptions
from tests.server.live.test_hub import hub_of, numbers_of
from tests.server.live.writing import Writer, store_of
from tests.support.parts import missing
from tests.support.postgres import free_port
from tests.support.waiting import eventually, wait_until


class Redis:
    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        self._process = process

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait(30)


@pytest.fixture
def redis(tmp_path) -> Iterator[Redis]:
    program = shutil.which("redis-server")
    if program is None:
        missing("redis", "no redis-server")
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    server = Redis(port, subprocess.Popen(command, stdout=subprocess.DEVNULL))
    try:
        wait_until(lambda: _answers(port))
        yield server
    finally:
        server.kill()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as line:
        line.sendall(b"PING\r\n")
        return line.recv(16).startswith(b"+PONG")
    return False


async def test_every_server_hears_what_one_of_them_listens_to(
    store_url: str, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do not look by themselves here: what they show came by hints, and only the leader asks the database."""
    listening = 0
    forward = RedisHints._forward

    async def counted(self: RedisHints, *arguments: object) -> None:
        nonlocal listening
        listening += 1
        await forward(self, *arguments)

    monkeypatch.setattr(RedisHints, "_forward", counted)
    app, pace = App(store_url), Pace(poll=600)
    async with (
        hub_of(store_url, pace, redis_url=redis.url) as one,
        hub_of(store_url, pace, redis_url=redis.url) as two,
        hub_of(store_url, pace, redis_url=redis.url) as three,
        store_of(app) as store,
    ):
        writer = await Writer.begin(store)
        async with (
            one.watching(JobLogs(writer.job), ping=60) as first,
            two.watching(JobLogs(writer.job), ping=60) as second,
            three.watching(JobLogs(writer.job), ping=60) as third,
        ):
            await eventually(lambda: listening)
            running = [asyncio.create_task(numbers_of(watcher, 39)) for watcher in (first, second, third)]
            for _ in range(20):
                await writer.say(2)
                await asyncio.sleep(0.01)
            assert await asyncio.gather(*running) == [list(range(40))] * 3
    assert listening == 1


@pytest.mark.requirement("R87")
async def test_without_redis_everything_goes_on(
    sqlite_url: str, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    """R87: the connection is lost, which is a warning; whoever writes does not notice, and who watches misses
    nothing, because servers also look by themselves."""
    app = App(sqlite_url)
    with caplog.at_level(logging.WARNING, "headrace.live"):
        async with hub_of(sqlite_url, Pace(poll=0.1), redis_url=redis.url) as hub, store_of(app) as store:
            writer = await Writer.begin(store)
            async with hub.watching(JobLogs(writer.job), ping=60) as watcher:
                running = asyncio.create_task(numbers_of(watcher, 9))
                await writer.say(5)
                await eventually(lambda: watcher.messages_behind == 0)
                redis.kill()
                await eventually(lambda: "waiting for hints" in caplog.text)
                await writer.say(5)
                assert await running == list(range(10))
    warnings = [record for record in caplog.records if "waiting for hints" in record.message]
    assert [record.levelname for record in warnings] == ["WARNING"]


async def test_a_client_that_is_not_installed_is_said_at_once(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(MissingExtra, match=r"pip install 'headrace\[redis\]'"):
        async with Hub(App(sqlite_url), ServerOptions(redis_url="redis://127.0.0.1:1/0")):
            raise AssertionError("it has started")
