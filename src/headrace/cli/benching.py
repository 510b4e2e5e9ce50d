"""The measuring behind `headrace bench`: a namespace of its own, a worker of its own, both removed whatever happens."""

import asyncio
import os
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.app import App
from headrace.cli.apart import ended_like_ctrl_c, undisturbed
from headrace.cli.failures import FAILED, CommandError
from headrace.cli.progress import progress_bar
from headrace.cli.target import shown_url
from headrace.store.base import COUNTED_AT_MOST, StoreFacts, StoreOptions
from headrace.store.connect import connect, sqlite_path

_TARGET = "headrace.cli.bench_tasks:app"
_QUEUE = COUNTED_AT_MOST - 1  # tasks of a queue: beyond this depths are not counted
_CHUNK = 500
_START = 60.0  # seconds that a worker may take to begin
_STOP = 20.0
_LOOK = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    seconds: float
    tasks: int
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Tasks a second."""

    single: float
    batch: float
    drained: float
    done: int
    product: str
    durability: str


def measure(url: str, plan: Plan) -> Measured:
    with ended_like_ctrl_c(), _place(url) as place, _namespace(place) as (name, facts):
        app = App(place, name=name)
        nothing = app.task(name="bench.nothing")(_nothing)
        try:
            one, single = _one_by_one(nothing, plan)
            many, batch = _in_batches(nothing, plan)
            with _worker(place, name, plan) as worker, progress_bar("drain", one + many) as advance:
                done, took = _drained(app, worker, one + many, plan.seconds * 0.6, advance)
        finally:
            app.close()
    return Measured(
        single=single,
        batch=batch,
        drained=done / took,
        done=done,
        product=f"{facts.product} {'.'.join(map(str, facts.version))}",
        durability=facts.durability,
    )


async def _nothing(n: int) -> None:
    """Only its name is enqueued; the worker has the function of bench_tasks."""


@contextmanager
def _place(url: str) -> Generator[str]:
    """Where there is no file yet, a temporary one in its folder: a bench must not leave a store behind."""
    path = Path(sqlite_path(url)) if url.startswith("sqlite") else None
    if path is None or path.exists():
        yield url
        return
    if not path.absolute().parent.is_dir():
        raise CommandError(f"the folder {path.absolute().parent} does not exist; make it first")
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", dir=path.absolute().parent) as folder:
        yield f"sqlite:///{folder}/bench.db"


@contextmanager
def _namespace(url: str) -> Generator[tuple[str, StoreFacts]]:
    """A schema or prefix that nobody has; only what was made here is removed."""
    name = f"headrace_bench_{secrets.token_hex(4)}"
    made = False

    async def make() -> StoreFacts:
        nonlocal made
        store = connect(url, StoreOptions(name=name))
        try:
            if await store.schema_revision() is not None:
                raise CommandError(f"there is a schema {name} already; nothing was measured, try again", code=FAILED)
            made = True  # from here on there may be something of it
            await store.upgrade()
            await store.open()
            return await store.facts()
        finally:
            await store.close()

    async def remove() -> None:
        store = connect(url, StoreOptions(name=name))
        try:
            await store.downgrade("base")
        finally:
            await store.close()

    try:
        yield name, asyncio.run(make())
    finally:
        with undisturbed():
            try:
                if made:
                    asyncio.run(remove())
            except BaseException:
                where = shlex.quote(shown_url(url))
                print(
                    f"left behind: headrace db downgrade base --yes --database {where} --name {name}", file=sys.stderr
                )
                raise


def _one_by_one(nothing: Any, plan: Plan) -> tuple[int, float]:
    """Each is durable before the next begins."""
    n, began = 0, time.monotonic()
    until = began + plan.seconds * 0.2
    one = nothing.using(queue="single")
    with progress_bar("enqueue one by one", None) as advance:
        while time.monotonic() < until and n < _QUEUE:
            one.enqueue(n=n)
            n += 1
            advance(1)
    return n, n / (time.monotonic() - began)


def _in_batches(nothing: Any, plan: Plan) -> tuple[int, float]:
    n, began = 0, time.monotonic()
    until = began + plan.seconds * 0.2
    with progress_bar("enqueue in batches", plan.tasks) as advance:
        while n < plan.tasks and (not n or time.monotonic() < until):
            size = min(_CHUNK, plan.tasks - n, _QUEUE - n % _QUEUE)
            nothing.using(queue=f"batch-{n // _QUEUE}").enqueue_many([{"n": n + i} for i in range(size)])
            n += size
            advance(size)
    return n, n / (time.monotonic() - began)


@contextmanager
def _worker(url: str, name: str, plan: Plan) -> Generator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "headrace.cli", "worker", _TARGET, "--burst", "--children", "0", "--grace", "1"]
    environment = {**os.environ, "HEADRACE_DATABASE_URL": url, "HEADRACE_NAME": name}
    with tempfile.TemporaryFile() as log:
        worker = subprocess.Popen(
            [*command, "--processes", str(plan.processes)],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for us; it is ended below
        )
        try:
            yield worker
        except CommandError as error:
            log.seek(0)
            words = log.read().decode(errors="replace").splitlines()[-20:]
            raise CommandError("\n".join([str(error), *words]), code=error.code) from error
        finally:
            _end(worker)


def _end(worker: "subprocess.Popen[bytes]") -> None:
    worker.terminate()
    try:
        with suppress(subprocess.TimeoutExpired):
            worker.wait(timeout=_STOP)
    finally:  # also when somebody insists
        if worker.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def _drained(
    app: App, worker: "subprocess.Popen[bytes]", queued: int, seconds: float, advance: Callable[[int], object]
) -> tuple[int, float]:
    """How many were finished and in how long, from the last look at which nothing was."""
    waiting_since = begun = time.monotonic()
    done = 0
    while True:
        now = time.monotonic()
        found = queued - sum(sum(queue.depths.values()) for queue in app.queues.list())
        if not found:
            if worker.poll() is not None or now - waiting_since > _START:
                raise CommandError("the worker of the bench did not begin; its last words:", code=FAILED)
            begun = now
        advance(found - done)
        done = found
        if done and (done >= queued or now - begun >= seconds or worker.poll() is not None):
            return done, max(now - begun, _LOOK)
        time.sleep(_LOOK)
