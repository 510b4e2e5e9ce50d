"""The connections: in memory, across a fork, shared commits, several apps in one file."""

import asyncio
import os
from pathlib import Path

import pytest

from headrace.core.task import NewTask
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore


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
