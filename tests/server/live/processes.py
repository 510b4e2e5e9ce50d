"""Servers and crowds in processes of their own, ended with the test whatever happens in it."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.waiting import eventually

_PATIENCE = 90.0


@dataclass(frozen=True)
class ServerProcess:
    port: int
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(30)


@asynccontextmanager
async def server_processes(database: str, n: int = 1) -> AsyncGenerator[list[ServerProcess]]:
    """So many servers of one ledger, without users, once they answer."""
    started = [_started("server_process", database, "0") for _ in range(n)]
    try:
        servers = [ServerProcess(int(await _line(process)), process) for process in started]
        async with httpx.AsyncClient() as client:
            for server in servers:
                await eventually(lambda server=server: _answers(client, server.url), _PATIENCE)
        yield servers
    finally:
        for process in started:
            _end(process)


async def _answers(client: httpx.AsyncClient, url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return (await client.get(f"{url}/live")).status_code == 200
    return False


class Crowd:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    async def seen(self) -> list[dict[str, Any]]:
        """What each of them saw, once all have the last message."""
        return json.loads(await _line(self._process))


@asynccontextmanager
async def crowd(port: int, paths: list[str], *, last: int) -> AsyncGenerator[Crowd]:
    """A client for each path, all of them connected."""
    process = _started("crowd")
    try:
        assert process.stdin is not None
        order = {"port": port, "paths": paths, "last": last, "patience": _PATIENCE}
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        assert (await _line(process)).strip() == "connected"
        yield Crowd(process)
    finally:
        _end(process)


def _started(module: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", f"tests.server.live.{module}", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait(30)
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(BrokenPipeError):
            assert pipe is not None
            pipe.close()


async def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), _PATIENCE + 30)
    assert line, "the process has ended"
    return line
