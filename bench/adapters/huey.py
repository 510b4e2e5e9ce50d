"""Huey on SQLite; it removes a message before it runs it."""

import contextlib
from collections.abc import Generator

from huey import SqliteHuey

from bench import record
from bench.adapters import OPTIONS, URL, Client

huey = SqliteHuey("bench", filename=URL.removeprefix("sqlite:///"), fsync=OPTIONS["fsync"])


@huey.task()
def noop(sent: float) -> None:
    record.hit(sent)


def setup() -> None:
    pass


@contextlib.contextmanager
def client() -> Generator[Client]:
    def bulk(n: int) -> None:
        noop.map([(0.0,)] * n)

    yield Client(noop, bulk)


def worker() -> None:
    huey.create_consumer(workers=OPTIONS["threads"], worker_type=OPTIONS["kind"]).run()
