"""A supervisor whose database is not there when it starts."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from headrace.core.states import TaskState
from headrace.store.base import StoreOptions
from headrace.store.connect import connect
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually, wait_until
from tests.worker.application import app as functions
from tests.worker.bench import LEASE, Bench, opened
from tests.worker.trees import tree

pytestmark = pytest.mark.timeout(120)

WAITS = "the supervisor: the store cannot be reached"


class Door:
    """Turns everybody away until it is opened; then it leads to the server."""

    def __init__(self, url: str) -> None:
        self._server = urlsplit(url)
        self._listening: asyncio.Server | None = None
        self.opened = False
        self.turned_away = 0
        self.url = ""

    async def __aenter__(self) -> "Door":
        self._listening = await asyncio.start_server(self._through, "127.0.0.1", 0)
        port = self._listening.sockets[0].getsockname()[1]
        self.url = urlunsplit(self._server._replace(netloc=f"{self._server.username}@127.0.0.1:{port}"))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listening is not None
        self._listening.close()

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.opened:
            self.turned_away += 1
            writer.close()
            return
        upstream = await asyncio.open_connection(self._server.hostname, self._server.port)

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        await asyncio.gather(copy(reader, upstream[1]), copy(upstream[0], writer), return_exceptions=True)


@contextmanager
def command(name: str, url: str, directory: Path, *arguments: str) -> Generator[subprocess.Popen[bytes]]:
    """`headrace worker` or `headrace up` as typed; its words are in <directory>/log."""
    (directory / "tasks.py").write_text("from headrace import App\n\napp = App()\n")
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", name, "tasks:app", "--children", "0", *arguments],
            cwd=directory, env={**os.environ, "HEADRACE_DATABASE_URL": url, "HEADRACE_PORT": "0"},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)
        print((directory / "log").read_text()[-4000:])


async def test_it_waits_and_goes_on_when_the_database_is_there(postgres_url: str, tmp_path: Path) -> None:
    """It says so once, however often it has tried."""
    bench = Bench(postgres_url)
    bench.app = functions
    async with opened(bench):
        task = await bench.enqueue("greet", {"user": 1})
        async with Door(postgres_url) as door:
            with tree(door.url, tmp_path, bench.options(concurrency=10)) as running:
                await eventually(lambda: door.turned_away >= 5)
                assert running.process.poll() is None
                assert running.log.read_text().count(WAITS) == 1
                door.opened = True
                await eventually(lambda: _is_completed(bench, task))
                assert "the supervisor: the store is back after" in running.log.read_text()
                assert await asyncio.to_thread(running.stop) == 0
        assert await bench.store.check() == []


async def _is_completed(bench: Bench, task: int) -> bool:
    return await bench.state(task) == TaskState.COMPLETED


async def test_up_waits_too_and_makes_the_schema_then(postgres_server: PostgresServer, tmp_path: Path) -> None:
    name = f"up_{os.getpid()}"
    url = postgres_server.create_database(name)
    try:
        async with Door(url) as door:
            with command("up", door.url, tmp_path) as process:
                await eventually(lambda: door.turned_away >= 2)
                door.opened = True
                await eventually(lambda: _has_a_worker(url))
                process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(process.wait, 30) == 0
    finally:
        postgres_server.drop_database(name)


def _has_a_worker(url: str) -> bool:
    try:
        with psycopg.connect(url) as connection:
            found = connection.execute("SELECT count(*) FROM headrace.workers").fetchone()
            return found is not None and found[0] == 1
    except psycopg.errors.UndefinedTable:
        return False


@pytest.mark.parametrize(("name", "number"), [("worker", signal.SIGTERM), ("up", signal.SIGINT)])
@pytest.mark.parametrize("silent", [False, True], ids=["refused", "silent"])
def test_a_stop_signal_ends_the_wait_at_once(tmp_path: Path, name: str, number: int, silent: bool) -> None:
    """Also while a connection is being made to a host that takes it and never answers (ten seconds and more)."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        if silent:
            held.listen()
            held.settimeout(30)
        url = f"postgresql://nobody@127.0.0.1:{held.getsockname()[1]}/none"
        with command(name, url, tmp_path) as process:
            connection = held.accept()[0] if silent else None
            if connection is None:
                wait_until(lambda: WAITS in (tmp_path / "log").read_text())
            began = time.monotonic()
            process.send_signal(number)
            assert process.wait(20) == 0
            assert time.monotonic() - began < 5
            if connection is not None:
                connection.close()


def refused(name: str, url: str, directory: Path, *arguments: str) -> tuple[int, str]:
    with command(name, url, directory, *arguments) as process:
        code = process.wait(30)
    return code, (directory / "log").read_text()


@pytest.mark.parametrize("name", ["worker", "up"])
@pytest.mark.parametrize(
    ("url", "code", "word"),
    [
        ("mysql://host/database", 1, "is not understood"),
        ("postgresql://host:port/database", 4, "check this URL"),
        ("sqlite:////no/such/folder/x.db", 4, "does not exist"),
    ],
)
def test_a_wrong_url_ends_at_once(tmp_path: Path, name: str, url: str, code: int, word: str) -> None:
    ended, said = refused(name, url, tmp_path)
    assert (ended, word in said, "Traceback" in said, WAITS in said) == (code, True, False, False)


@pytest.mark.parametrize("name", ["worker", "up"])
@pytest.mark.parametrize("what", ["database", "user"])
def test_a_database_or_user_that_the_server_does_not_know_ends_at_once(
    postgres_server: PostgresServer, tmp_path: Path, name: str, what: str
) -> None:
    parts = urlsplit(postgres_server.url())
    if what == "database":
        url = urlunsplit(parts._replace(path="/no_such_database"))
    else:
        url = urlunsplit(parts._replace(netloc=f"nobody:wrong@{parts.hostname}:{parts.port}"))
    ended, said = refused(name, url, tmp_path)
    assert (ended, "check this URL" in said, "Traceback" in said, WAITS in said) == (4, True, False, False)
    assert "wrong@" not in said


async def test_a_newer_schema_ends_at_once(postgres_url: str, tmp_path: Path) -> None:
    store = connect(postgres_url, StoreOptions(lease=LEASE))
    await store.upgrade()
    await store.close()
    with psycopg.connect(postgres_url) as connection:
        connection.execute(sql.SQL("UPDATE headrace.meta SET value = '9999' WHERE key = 'schema'"))
    ended, said = await asyncio.to_thread(refused, "worker", postgres_url, tmp_path)
    assert (ended, "newer" in said, WAITS in said) == (4, True, False)


def test_a_burst_does_not_wait(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"postgresql://nobody@127.0.0.1:{held.getsockname()[1]}/none"
        ended, said = refused("worker", url, tmp_path, "--burst")
    assert (ended, "Connect" in said, WAITS in said) == (4, True, False)
