"""The connections: in memory, across a fork, shared commits, several apps in one file."""

import asyncio
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from headrace.core.lanes import Lane
from headrace.core.task import NewTask, Want
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.store.sqlite.connection import Transaction
from headrace.store.sqlite.thread import Thread


async def test_a_database_in_memory_is_one_for_reads_and_writes() -> None:
    store = SQLiteStore(":memory:", StoreOptions())
    await store.open()
    try:
        (task,) = await store.enqueue([NewTask(name="x")])
        assert (await store.get([task.id]))[task.id].name == "x"
        assert await store.check() == []
    finally:
        await store.close()


async def test_callers_that_wait_together_share_a_commit(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "x.db"), StoreOptions())
    await store.open()
    try:
        commits: list[str] = []

        def trace(statement: str) -> None:
            if statement == "COMMIT":
                commits.append(statement)

        await store.database.alone(lambda transaction: transaction.connection.set_trace_callback(trace))
        answers = await asyncio.gather(*(store.enqueue([NewTask(name="x")]) for _ in range(50)))
        assert len({answer[0].id for answer in answers}) == 50
        assert len(commits) < 25
    finally:
        await store.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_store_opened_before_a_fork_works_on_both_sides(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "x.db"), StoreOptions())

    async def enqueue() -> int:
        return (await store.enqueue([NewTask(name="x")]))[0].id

    async def opened() -> int:
        await store.open()
        return await enqueue()

    assert asyncio.run(opened()) == 1
    pid = os.fork()
    if pid == 0:
        # Nothing of pytest may run in the child.
        code = 1
        try:
            code = 0 if asyncio.run(enqueue()) == 2 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    async def after() -> tuple[int, int]:
        last = await enqueue()
        found = (await store.counts())["pending"]
        await store.close()
        return last, found

    assert asyncio.run(after()) == (3, 3)


async def test_two_apps_share_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "x.db")
    one, two = SQLiteStore(path, StoreOptions()), SQLiteStore(path, StoreOptions(name="billing"))
    await one.open()
    await two.open()
    try:
        await two.enqueue([NewTask(name="x")] * 3)
        assert await one.counts() == {}
        assert await two.counts() == {"pending": 3}
    finally:
        await one.close()
        await two.close()


async def test_a_file_is_opened_again_with_what_it_had(tmp_path: Path) -> None:
    path = str(tmp_path / "x.db")
    for expected in (1, 2):
        store = SQLiteStore(path, StoreOptions())
        await store.open()
        try:
            await store.enqueue([NewTask(name="x")])
            assert await store.counts() == {"pending": expected}
            assert await store.schema_revision() is not None
        finally:
            await store.close()


async def test_a_claim_of_a_few_new_tasks_goes_before_batches_that_wait_and_shares_with_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a storm of retries a finish stands in line for most of the time."""
    transactions: list[list[str]] = []
    write_together = Thread._write_together

    def noted(thread: Thread, connection: sqlite3.Connection, *, only_urgent: bool) -> Any:
        done, error = write_together(thread, connection, only_urgent=only_urgent)
        transactions.append([job.verb for job in done])
        return done, error

    store = SQLiteStore(str(tmp_path / "x.db"), StoreOptions())
    await store.open()
    try:
        await store.enqueue([NewTask(name="x")])
        monkeypatch.setattr(Thread, "_write_together", noted)
        begun, gate = threading.Event(), threading.Event()

        def long(_: Transaction) -> None:
            begun.set()
            gate.wait(10)
            time.sleep(0.02)  # nobody joins a transaction that has lasted so long

        writing = [asyncio.create_task(store.database.write(long, verb="long"))]
        await asyncio.to_thread(begun.wait, 10)
        writing += [asyncio.create_task(store.database.write(lambda _: None, verb="batch")) for _ in range(2)]
        await asyncio.sleep(0)
        few = Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)
        claiming = asyncio.create_task(store.claim("w", [few]))
        await asyncio.sleep(0)
        gate.set()
        assert len(await claiming) == 1
        await asyncio.gather(*writing)
    finally:
        await store.close()
    assert transactions == [["long"], ["claim"], ["batch", "batch"]]
