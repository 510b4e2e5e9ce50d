"""The servers of one benchmark: a private PostgreSQL and a private Redis, on ports and in folders of their own."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.postgres import PostgresMissing, PrivatePostgres, find_binaries

_START_CEILING = 20.0
_DURABILITY = ("fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers")


class RedisServer:
    """Redis with its defaults: it writes snapshots and no log, so a crash may lose what it acknowledged."""

    def __init__(self, program: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="headrace-redis-"))
        self.port = _free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process = subprocess.Popen(
            [program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def connect(self) -> Any:
        # Only the environment of the benchmark has the library; the tests of this module's neighbours have not.
        import redis

        return redis.Redis(port=self.port)

    def wait_until_up(self) -> None:
        deadline = time.monotonic() + _START_CEILING
        while True:
            with contextlib.suppress(Exception):
                self.connect().ping()
                return
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"redis-server did not start within {_START_CEILING:g} s")
            time.sleep(0.05)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What is there to measure on. A part that needs a missing one says so in its results."""

    postgres: PrivatePostgres | None
    redis: RedisServer | None

    def server_pid(self, store: str) -> int | None:
        server = {"postgres": self.postgres, "redis": self.redis}.get(store)
        return None if server is None else server.pid

    def durability(self) -> dict[str, str]:
        """What the servers themselves say."""
        answers = {"SQLite": "WAL, synchronous FULL (NORMAL and off where the row says so)"}
        if self.postgres is not None:
            with self.postgres.connect() as connection:
                shown = [connection.execute(f"SHOW {name}").fetchone() for name in _DURABILITY]
            answers["PostgreSQL"] = ", ".join(
                f"{name} {row[0]}" for name, row in zip(_DURABILITY, shown, strict=True) if row
            )
            answers["PostgreSQL data on"] = file_system(self.postgres.directory)
        if self.redis is not None:
            settings = self.redis.connect().config_get("save", "append*")
            answers["Redis"] = f"appendonly {settings['appendonly']}, save {settings['save'] or 'never'}"
        return answers


@contextlib.contextmanager
def running_services() -> Generator[Services]:
    """Start both, end both. What the machine lacks is None; the caller decides whether that matters."""
    with contextlib.ExitStack() as stack:
        postgres = redis = None
        with contextlib.suppress(PostgresMissing):
            postgres = stack.enter_context(PrivatePostgres(find_binaries()))
        if program := shutil.which("redis-server"):
            redis = RedisServer(program)
            stack.callback(redis.close)
            redis.wait_until_up()
        yield Services(postgres=postgres, redis=redis)


def file_system(path: Path) -> str:
    """The kind of file system a path is on: on tmpfs an fsync costs nothing, and figures of it mean nothing."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    resolved = str(path.resolve())
    holding = [(place, kind) for place, kind in mounts if os.path.commonpath([place, resolved]) == place]
    return max(holding, key=lambda mount: len(mount[0]))[1] if holding else "unknown"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
