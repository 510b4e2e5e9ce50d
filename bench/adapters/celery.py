"""Celery on Redis without results, acknowledging early: its defaults, and its fastest way."""

import contextlib
import os
import sys
from collections.abc import Generator

from celery import Celery, group

from bench import record
from bench.adapters import OPTIONS, URL, WORKER, Client

app = Celery("bench", broker=URL)
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=OPTIONS.get("prefetch", 4),
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop(sent: float) -> None:
    record.hit(sent)


def setup() -> None:
    pass


@contextlib.contextmanager
def client() -> Generator[Client]:
    def bulk(n: int) -> None:
        group(noop.s(0.0) for _ in range(n)).apply_async()

    with app.connection_for_write() as connection:
        connection.ensure_connection()
        yield Client(noop.delay, bulk)


def worker() -> None:
    command = [sys.executable, "-m", "celery", "-A", "bench.adapters.celery", "worker", "-l", "ERROR"]
    size = ["-P", OPTIONS["pool"], "-c", str(OPTIONS["concurrency"]), "-n", f"worker{WORKER}@bench"]
    os.execv(sys.executable, [*command, *size, "--without-gossip", "--without-mingle", "--without-heartbeat"])
