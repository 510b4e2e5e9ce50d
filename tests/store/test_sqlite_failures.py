"""What goes wrong with a file: full disks, locks, foreign files, places where it cannot be."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.core.errors import DuplicateTask, SchemaError, StoreError, StoreUnavailable
from headrace.core.task import Key, NewTask
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore, thread
from headrace.store.sqlite.connection import Transaction
from headrace.store.sqlite.mounts import NETWORK, file_system
from tests.support.waiting import eventually


def store_at(path: Path, **extra: object) -> SQLiteStore:
    return SQLiteStore(str(path), StoreOptions(extra=dict(extra)))


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncGenerator[SQLiteStore]:
    store = store_at(tmp_path / "ledger.db")
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def test_a_full_disk_is_said_and_survived(tmp_path: Path) -> None:
    store = store_at(tmp_path / "full.db")
    await store.open()
    try:

        def fill(transaction: Transaction) -> None:
            transaction.connection.execute("PRAGMA max_page_count = 1").fetchall()  # the size it has now

        await store.database.alone(fill)
        big = NewTask(name="big", arguments='"' + "x" * 100_000 + '"')
        with pytest.raises(StoreUnavailable, match="is full"):
            await store.enqueue([big])
        assert await store.counts() == {}

        def make_room(transaction: Transaction) -> None:
            transaction.connection.execute("PRAGMA max_page_count = 1000000").fetchall()

        await store.database.alone(make_room)
        assert (await store.enqueue([big]))[0].created
        assert await store.counts() == {"pending": 1}
    finally:
        await store.close()


async def test_a_full_disk_undoes_the_whole_shared_transaction(tmp_path: Path) -> None:
    """Callers that shared the commit are all told, and nothing of them is there."""
    store = store_at(tmp_path / "full.db")
    await store.open()
    try:
        await store.database.alone(
            lambda transaction: transaction.connection.execute("PRAGMA max_page_count = 1").fetchall()
        )
        calls = [store.enqueue([NewTask(name="big", arguments='"' + "x" * 50_000 + '"')]) for _ in range(5)]
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(error) for error in errors] == [StoreUnavailable] * 5
        assert await store.counts() == {}
    finally:
        await store.close()


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_an_error_of_one_caller_leaves_the_others_alone(tmp_path: Path, place: int) -> None:
    """Wherever it stands among those who share a transaction."""
    store = store_at(tmp_path / "shared.db")
    await store.open()
    try:

        def broken(transaction: Transaction) -> None:
            transaction.run("set_paused", {"queue": "q", "paused": 1})
            raise ValueError("mine")

        calls: list[Coroutine[Any, Any, object]] = [store.enqueue([NewTask(name="good")]) for _ in range(2)]
        calls.insert(place, store.database.write(broken))
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(answers.pop(place), ValueError)
        assert not any(isinstance(answer, BaseException) for answer in answers)
        assert [queue.paused for queue in await store.queues()] == [False]
        assert await store.counts() == {"pending": 2}
    finally:
        await store.close()


class _BreaksOnce:
    """A connection on which the statement fails that starts like this, once."""

    def __init__(self, connection: sqlite3.Connection, *starts: str) -> None:
        self._connection = connection
        self._starts = list(starts)

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        for start in self._starts:
            if sql.startswith(start):
                self._starts.remove(start)
                raise sqlite3.OperationalError(f"disk I/O error at {start}")
        return self._connection.execute(sql, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.parametrize("breaking", [("COMMIT", "ROLLBACK"), ("RELEASE job", "ROLLBACK TO job", "ROLLBACK")])
async def test_where_even_the_rollback_fails_everyone_hears_of_the_first_error(
    tmp_path: Path, breaking: tuple[str, ...]
) -> None:
    """Nobody waits for ever, what failed is not there, and the store goes on: who was not in the broken transaction is
    written in the next.
    """
    store = store_at(tmp_path / "broken.db")
    await store.open()
    try:
        writer: Any = store.database._running()[0]
        writer._connection = _BreaksOnce(writer._connection, *breaking)
        async with asyncio.timeout(20):
            calls = [store.enqueue([NewTask(name="x")]) for _ in range(3)]
            answers = await asyncio.gather(*calls, return_exceptions=True)
            errors = [answer for answer in answers if isinstance(answer, BaseException)]
            assert errors[0] is answers[0]
            assert breaking[0] in str(errors[0])
            assert all(isinstance(error, StoreError) for error in errors)
            assert (await store.enqueue([NewTask(name="kept")]))[0].created
            assert await store.counts() == {"pending": 4 - len(errors)}
    finally:
        await store.close()


async def test_a_reader_whose_transaction_does_not_end_is_replaced(tmp_path: Path) -> None:
    store = store_at(tmp_path / "broken.db")
    await store.open()
    try:
        assert await store.counts() == {}
        reader: Any = store.database._running()[1]
        reader._connection = _BreaksOnce(reader._connection, "COMMIT", "ROLLBACK")
        with pytest.raises(StoreError, match="COMMIT"):
            await store.counts()
        await store.enqueue([NewTask(name="kept")])
        assert await store.counts() == {"pending": 1}
    finally:
        await store.close()


async def test_who_listens_hears_of_writes_after_the_reader_was_replaced(tmp_path: Path) -> None:
    """And until then the reader does not look at its watch without a pause."""
    store = store_at(tmp_path / "broken.db")
    await store.open()
    try:
        async with store.listen("w", ["default"]) as wakeups:
            reader: Any = store.database._running()[1]
            await eventually(lambda: reader._watch_at is not None)
            reader._connection = _BreaksOnce(reader._connection, "COMMIT", "ROLLBACK")
            with pytest.raises(StoreError, match="COMMIT"):
                await store.counts()
            await eventually(lambda: reader._connection is not None)
            stranger = SQLiteStore(str(tmp_path / "broken.db"), StoreOptions())
            await stranger.open()
            try:
                await stranger.enqueue([NewTask(name="x")])
            finally:
                await stranger.close()
            assert await asyncio.wait_for(anext(wakeups), 20)
    finally:
        await store.close()


async def test_a_locked_database_is_reported_by_name(tmp_path: Path) -> None:
    path = tmp_path / "locked.db"
    store = store_at(path, lock_timeout=0.2)
    await store.open()
    stranger = sqlite3.connect(path, isolation_level=None)
    try:
        stranger.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match=r"locked\.db"):
            await store.enqueue([NewTask(name="waits")])
        assert await store.counts() == {}, "a reader is not stopped by a writer"
        stranger.execute("ROLLBACK")
        assert (await store.enqueue([NewTask(name="goes")]))[0].created
        assert await store.counts() == {"pending": 1}
    finally:
        stranger.close()
        await store.close()


async def test_a_failed_wait_for_the_lock_fails_only_who_waited_for_it(tmp_path: Path) -> None:
    """The second call comes while the first waits in vain; the lock is free when it is the second's turn."""
    path = tmp_path / "locked.db"
    store = store_at(path)
    await store.open()
    stranger = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    waits, second_is_there = threading.Event(), threading.Event()
    begun = 0

    def trace(statement: str) -> None:
        # SQLite tells of a statement before it runs: the first BEGIN has not asked for the lock yet.
        nonlocal begun
        if statement == "BEGIN IMMEDIATE":
            begun += 1
            if begun == 1:
                waits.set()
                assert second_is_there.wait(20)
            else:
                stranger.execute("ROLLBACK")

    def watch(transaction: Transaction) -> None:
        transaction.connection.execute("PRAGMA busy_timeout = 50").fetchall()
        transaction.connection.set_trace_callback(trace)

    try:
        await store.database.alone(watch)
        stranger.execute("BEGIN IMMEDIATE")
        first = asyncio.create_task(store.enqueue([NewTask(name="waits in vain")]))
        assert await asyncio.to_thread(waits.wait, 20)
        second = asyncio.create_task(store.enqueue([NewTask(name="comes later")]))
        await asyncio.sleep(0)  # its job is in the queue now
        second_is_there.set()
        with pytest.raises(StoreUnavailable, match=r"locked\.db"):
            await first
        assert (await second)[0].created
        assert await store.counts() == {"pending": 1}
    finally:
        second_is_there.set()
        stranger.close()
        await store.close()


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 100)
    with pytest.raises(SchemaError, match="not an SQLite database"):
        await store_at(path).open()
    assert path.read_text() == "not a database, " * 100


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nowhere"):
        await store_at(tmp_path / "nowhere" / "x.db").open()


async def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        await store_at(tmp_path).open()


async def test_without_migrate_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="headrace db upgrade"):
        await SQLiteStore(str(tmp_path / "x.db"), StoreOptions(migrate=False)).open()


@pytest.mark.parametrize(("key", "value"), [("schema", "9999"), ("min_code", "99.0.0")])
async def test_a_newer_schema_is_refused(tmp_path: Path, key: str, value: str) -> None:
    path = tmp_path / "newer.db"
    store = store_at(path)
    await store.open()
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE headrace_meta SET value = ? WHERE key = ?", (value, key))
    connection.close()
    with pytest.raises(SchemaError, match=r"upgrade headrace|or newer"):
        await store_at(path).open()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = store_at(tmp_path / "x.db")
    with pytest.raises(StoreError, match="not open"):
        await store.counts()


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /home/me/my\\040scratch tmpfs rw 0 0
share /mnt/share cifs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib", "ext4"),
        ("/home/me", "nfs4"),
        ("/home/me/my scratch/x", "tmpfs"),
        ("/mnt/share", "cifs"),
        ("/mnt/shared", "ext4"),
    ],
)
def test_the_innermost_mount_decides(path: str, kind: str) -> None:
    assert file_system(Path(path), MOUNTS) == kind


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda1 / ext4 rw 0 0\nserver:/x {tmp_path.resolve()} nfs rw 0 0\n")
    monkeypatch.setattr("headrace.store.sqlite.mounts._MOUNTS", mounts)
    with pytest.raises(StoreError, match="network file system"):
        asyncio.run(store_at(tmp_path / "x.db").open())
    assert not (tmp_path / "x.db").exists()
    assert "ext4" not in NETWORK


async def test_a_hint_that_fails_keeps_no_answer_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is committed is answered, whatever happens to those who should be woken."""
    async with opened(tmp_path) as store:

        def fail(_: set[str]) -> None:
            raise OSError("no descriptor is left")

        monkeypatch.setattr(store.database, "committed", fail)
        [answer] = await asyncio.wait_for(store.enqueue([NewTask(name="t")]), 20)
        assert (await store.get([answer.id]))[answer.id].state == "pending"


async def test_a_refused_first_job_costs_the_others_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several that are refused and several that are not, all in line at once: one turn among the processes for all."""
    monkeypatch.setattr(thread, "_SHARED_SECONDS", 20.0)  # however slow the machine is
    key = (Key(scope="unique", key="k", on_conflict="reject"),)
    async with opened(tmp_path) as store:
        await store.enqueue([NewTask(name="t", keys=key)])
        writer = store.database._running()[0]
        turns: list[bool] = []
        held, busy, goes_on = writer._held, threading.Event(), threading.Event()

        def counted(*, urgent: bool) -> AbstractContextManager[None]:
            turns.append(urgent)
            return held(urgent=urgent)

        def block(_: Transaction) -> None:
            busy.set()
            assert goes_on.wait(20)

        blocking = asyncio.create_task(store.database.alone(block))
        assert await asyncio.to_thread(busy.wait, 20)
        monkeypatch.setattr(writer, "_held", counted)
        calls = [store.enqueue([NewTask(name="t", keys=key if n < 5 else ())]) for n in range(10)]
        together = asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(0)
        goes_on.set()
        await blocking
        answers = await asyncio.wait_for(together, 20)
        assert [isinstance(answer, DuplicateTask) for answer in answers] == [True] * 5 + [False] * 5
        assert len(turns) == 1
