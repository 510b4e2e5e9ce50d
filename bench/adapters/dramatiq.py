"""Dramatiq on Redis; it acknowledges a message after it ran."""

import contextlib
import os
import sys
from collections.abc import Generator

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench import record
from bench.adapters import OPTIONS, URL, Client

broker = RedisBroker(url=URL)
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(sent: float) -> None:
    record.hit(sent)


def setup() -> None:
    pass


@contextlib.contextmanager
def client() -> Generator[Client]:
    def bulk(n: int) -> None:
        dramatiq.group(noop.message(0.0) for _ in range(n)).run()

    broker.client.ping()
    yield Client(noop.send, bulk)


def worker() -> None:
    if "prefetch" in OPTIONS:
        os.environ["dramatiq_queue_prefetch"] = str(OPTIONS["prefetch"])  # noqa: SIM112  its own name
    command = [sys.executable, "-m", "dramatiq", "bench.adapters.dramatiq"]
    os.execv(sys.executable, [*command, "-p", str(OPTIONS["processes"]), "-t", str(OPTIONS["threads"])])
