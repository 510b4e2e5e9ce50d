"""The place where one run happens: a fresh database, fresh processes, and an observer who asks the store."""

import collections
import contextlib
import itertools
import json
import os
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg

from bench import record
from bench.processes import ROOT, Crew, command, environment
from bench.services import Services
from bench.subjects import Subject

CEILING = 180.0  # seconds for anything that a run waits for
_POLL = 0.005
_NUMBERS = itertools.count(1)
_CALM = 10.0  # percent


class Failed(Exception):
    """A run gave no figure; the message says whose, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One subject on one empty store."""

    subject: Subject
    url: str
    directory: Path
    record: Path
    services: Services
    ask: Callable[[str], int] = field(repr=False)  # a query whose answer is one number

    def call(self, act: str, *arguments: int, timeout: float = CEILING) -> Any:
        """One act of the adapter, in a process of its own; its answer."""
        done = subprocess.run(
            command(self.subject.adapter, act, *map(str, arguments)),
            cwd=ROOT, env=self._environment(), capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        if done.returncode:
            raise Failed(f"{self.subject.label}: {act} failed: {done.stderr.strip()[-600:]}")
        return json.loads(done.stdout.strip().splitlines()[-1])

    @contextlib.contextmanager
    def beside(self, act: str, *, wanted: bool = True) -> Generator[Callable[[], Any]]:
        """An act that goes on until it is told to stop: calling what this gives does, and is its answer. It is ready
        when this begins. Not `wanted`: nothing runs, and every figure of the answer is 0."""
        if not wanted:
            yield lambda: collections.defaultdict(float)
            return
        process = subprocess.Popen(
            command(self.subject.adapter, act), cwd=ROOT, env=self._environment(), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

        def stop() -> Any:
            process.terminate()
            said, wrong = process.communicate(timeout=CEILING)
            if process.returncode:
                raise Failed(f"{self.subject.label}: {act} failed: {wrong.strip()[-600:]}")
            return json.loads(said.strip().splitlines()[-1])

        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                stop()
            yield stop
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def crew(self, **options: Any) -> Crew:
        """Start the subject's workers."""
        workers = range(self.subject.workers)
        return Crew(
            [command(self.subject.adapter, "worker")] * len(workers),
            [self._environment(worker=number, **options) for number in workers],
            self.directory / "workers.log",
        )

    def started(self) -> int:
        return record.count(self.record)

    def unfinished(self) -> int:
        """How many tasks the store says are not finished."""
        wanted = self.subject.unfinished
        if isinstance(wanted, str):
            return self.ask(wanted)
        assert self.services.redis is not None
        connection = self.services.redis.connect()
        return sum(getattr(connection, verb)(key) for verb, key in wanted)

    def finished(self) -> int | None:
        return None if self.subject.finished is None else self.ask(self.subject.finished)

    def settle_store(self) -> None:
        """The planner's statistics of a queue in service, and no checkpoint that the fill has caused."""
        if self.subject.store == "postgres":
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
                connection.execute("CHECKPOINT")

    def wait_until(self, reached: Callable[[], bool], what: str, crew: Crew, ceiling: float = CEILING) -> None:
        deadline = time.monotonic() + ceiling
        while not reached():
            if time.monotonic() > deadline:
                raise Failed(f"{self.subject.label}: not within {ceiling:g} s: {what}; {crew.said}")
            if not crew.alive:
                raise Failed(f"{self.subject.label}: a worker ended: {crew.said}")
            time.sleep(_POLL)

    def _environment(self, worker: int = 0, **options: Any) -> dict[str, str]:
        return environment(
            {
                "BENCH_URL": self.url,
                "BENCH_OPTIONS": json.dumps({**self.subject.options, **options}),
                "BENCH_WORKER": str(worker),
                record.VARIABLE: str(self.record),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    services: Services
    calm: float = 0.0
    busy: list[float] = field(default_factory=list[float])

    @contextlib.contextmanager
    def fresh(self, subject: Subject) -> Generator[Run]:
        """An empty store with the subject's schema in it; nothing is left afterwards."""
        self._wait_for_calm()
        with contextlib.ExitStack() as stack:
            # Beside the project, so on its disk: the temporary folder may be memory, where an fsync costs nothing.
            home = ROOT / ".cache" / "bench"
            home.mkdir(parents=True, exist_ok=True)
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="run-", dir=home)))
            path = _record_file()
            stack.callback(path.unlink, missing_ok=True)
            url, ask = stack.enter_context(self._store(subject, directory))
            run = Run(
                subject=subject, url=url, directory=directory, record=path, services=self.services, ask=ask
            )  # fmt: skip
            run.call("setup")
            yield run

    @contextlib.contextmanager
    def _store(self, subject: Subject, directory: Path) -> Generator[tuple[str, Callable[[str], int]]]:
        match subject.store:
            case "postgres":
                server = self.services.postgres
                if server is None:
                    raise Failed(f"{subject.label}: there is no PostgreSQL on this machine")
                name = f"bench_{os.getpid()}_{next(_NUMBERS)}"
                url = server.create_database(name)
                try:
                    with psycopg.connect(url, autocommit=True) as connection:
                        yield url, lambda query: _ask_postgres(connection, query)
                finally:
                    server.drop_database(name)
            case "redis":
                if self.services.redis is None:
                    raise Failed(f"{subject.label}: there is no redis-server on this machine")
                self.services.redis.connect().flushall()
                yield self.services.redis.url, _no_query
            case "sqlite":
                yield f"sqlite:///{directory / 'store.db'}", lambda query: _ask_sqlite(directory / "store.db", query)

    def _wait_for_calm(self) -> None:
        deadline = time.monotonic() + self.calm
        while (busy := psutil.cpu_percent(0.3)) > _CALM and time.monotonic() < deadline:
            pass
        self.busy.append(busy)


def _record_file() -> Path:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    handle, name = tempfile.mkstemp(prefix="headrace-bench-", dir=memory)
    os.close(handle)
    return Path(name)


def _ask_postgres(connection: psycopg.Connection, query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def _ask_sqlite(path: Path, query: str) -> int:
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=10)) as connection:
        return connection.execute(query).fetchone()[0]


def _no_query(query: str) -> int:
    raise Failed(f"Redis answers no query: {query}")
