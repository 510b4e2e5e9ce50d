"""Wake-ups: datagrams between stores, the file's version for those who send none."""

import asyncio
import os
import socket
import sqlite3
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from headrace.core.clock import FakeClock
from headrace.core.lanes import Lane
from headrace.core.task import NewTask, Want
from headrace.store.base import RETRIES, StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.store.sqlite.sockets import bound, remove_forgotten, send, socket_folder, unbound
from headrace.store.sqlite.wakeups import Listener
from headrace.testing.store_conformance.ledger import Ledger, failed, task
from tests.support.waiting import eventually

CEILING = 10.0


@asynccontextmanager
async def opened(path: Path | str) -> AsyncIterator[SQLiteStore]:
    store = SQLiteStore(str(path), StoreOptions())
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def heard(hints: AsyncIterator[str]) -> str:
    async with asyncio.timeout(CEILING):
        return await anext(hints)


async def test_an_enqueue_elsewhere_wakes_a_listener_by_datagram(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with opened(path) as here, opened(path) as there, here.listen("w", ["mail", "default"]) as hints:
        assert isinstance(hints, Listener)
        # Nobody looks at the file, so what is noted came by datagram.
        here.database.watch = lambda _: None
        await here.counts()
        await there.enqueue([NewTask(name="x", queue="mail"), NewTask(name="y", queue="other")])
        await eventually(lambda: hints.pending == ("mail",), CEILING)
        assert await heard(hints) == "mail"


async def test_a_cancellation_is_heard(tmp_path: Path) -> None:
    async with opened(tmp_path / "x.db") as here, opened(tmp_path / "x.db") as there:
        (task,) = await here.enqueue([NewTask(name="x")])
        await here.claim("w", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)])
        async with here.listen("w", ["default"]) as hints:
            await there.cancel([task.id])
            while await heard(hints) != "cancel":
                pass
            assert [ref.id for ref in await here.cancelling("w")] == [task.id]


async def test_a_foreign_transaction_is_noticed_by_the_files_version(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with opened(path) as store, store.listen("w", ["mail"]) as hints:
        waiting = asyncio.create_task(heard(hints))
        connection = sqlite3.connect(path)
        program = store.enqueue_program([NewTask(name="x", queue="mail")])
        statement = next(program)
        with suppress(StopIteration):
            while True:
                rows = connection.execute(statement.sql, statement.parameters).fetchall()
                statement = program.send(rows)
        connection.commit()
        connection.close()
        assert await waiting == "mail"


async def test_a_database_in_memory_wakes_its_own_listeners() -> None:
    async with opened(":memory:") as store, store.listen("w", ["default"]) as hints:
        await store.enqueue([NewTask(name="x")])
        assert await heard(hints) == "default"


def leave_a_dead_socket(folder: Path) -> None:
    """What a listener leaves that was killed."""
    folder.mkdir(mode=0o700, exist_ok=True)
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    dead.bind(str(folder / "0-0.sock"))
    dead.close()


async def test_the_socket_of_a_dead_listener_is_removed_by_who_writes(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    folder = socket_folder(str(path))
    async with opened(path) as store:
        leave_a_dead_socket(folder)
        await store.wake(["default"])
        assert not folder.exists()
        async with store.listen("w", ["default"]):
            leave_a_dead_socket(folder)
            await store.wake(["default"])
            assert len(list(folder.iterdir())) == 1, "the living one"


async def test_the_last_listener_takes_the_folder_along(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    folder = socket_folder(str(path))
    async with opened(path) as here, opened(path) as there:
        async with here.listen("w1", ["default"]):
            async with there.listen("w2", ["default"]):
                assert len(list(folder.iterdir())) == 2
            assert len(list(folder.iterdir())) == 1
        assert not folder.exists()


async def test_what_a_killed_listener_left_goes_when_another_begins_at_any_file(tmp_path: Path) -> None:
    """Its database may be gone, so that nobody ever writes there again."""
    forgotten, empty = socket_folder(str(tmp_path / "gone.db")), socket_folder(str(tmp_path / "older.db"))
    leave_a_dead_socket(forgotten)
    empty.mkdir(mode=0o700)
    async with opened(tmp_path / "x.db") as store, store.listen("w", ["default"]):
        assert not forgotten.exists()
        assert not empty.exists()
        remove_forgotten()
        assert len(list(socket_folder(str(tmp_path / "x.db")).iterdir())) == 1, "the living are let be"


def test_many_threads_tell_at_once_and_keep_nothing_open(tmp_path: Path) -> None:
    """The writing thread tells of a commit while the event loop announces something else."""
    folder = socket_folder(str(tmp_path / "x.db"))
    receiver = bound(folder)
    assert receiver is not None
    open_before = len(os.listdir("/dev/fd"))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: send(folder, [str(number)]), range(8)))
    assert {receiver.recv(16) for _ in range(8)} == {str(number).encode() for number in range(8)}
    assert len(os.listdir("/dev/fd")) == open_before
    unbound(receiver)


def test_who_comes_while_the_last_one_leaves_makes_the_folder_again(tmp_path: Path) -> None:
    """Listeners that come and go: the folder disappears at any moment between its making and the socket in it."""
    folder = socket_folder(str(tmp_path / "x.db"))

    def come_and_go(_: int) -> int:
        got = 0
        for _ in range(500):
            if (receiver := bound(folder)) is not None:
                got += 1
                unbound(receiver)
        return got

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(come_and_go, range(4))) == [500] * 4
    assert not folder.exists()


async def test_a_folder_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with opened(path) as store:
        folder = socket_folder(str(path))
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
        async with store.listen("w", ["default"]) as hints:
            assert list(folder.iterdir()) == []
            await store.enqueue([NewTask(name="x")])
            assert await heard(hints) == "default"
        folder.rmdir()


async def test_retries_that_become_ready_are_told_apart_from_new_work(tmp_path: Path) -> None:
    """In a storm of retries every claim readies some; who has retries already need not look for new work each time."""
    path, clock = tmp_path / "x.db", FakeClock()
    ledger = Ledger(lambda: SQLiteStore(str(path), StoreOptions(extra={"clock": clock})), clock)
    await ledger.open()
    try:
        there = await ledger.another_store()
        await ledger.enqueue(task(queue="mail"), task(queue="mail", delay=60.0))
        (retry,) = await ledger.claim(queue="mail")
        await ledger.finish("a", failed(retry, delay=30.0))
        assert isinstance(ledger.store, SQLiteStore)
        async with ledger.store.listen("w", ["mail"]) as hints:
            assert isinstance(hints, Listener)
            ledger.store.database.watch = lambda _: None
            await ledger.store.counts()
            await ledger.let_pass(40.0)
            await there.promote()
            assert await heard(hints) == f"{RETRIES}mail"
            await ledger.let_pass(40.0)
            await there.promote()
            assert await heard(hints) == "mail"
    finally:
        await ledger.close()


async def test_a_look_at_the_file_tells_retries_apart_from_new_work(tmp_path: Path) -> None:
    async with opened(tmp_path / "x.db") as store:
        await store.enqueue([NewTask(name="x", queue="mail"), NewTask(name="y", queue="default", pool="thread")])
        wants = [Want(queue="mail", pool="coroutine", lane=Lane.PRIMARY, n=1)]
        await store.finish("w", [failed(claim) for claim in await store.claim("w", wants)])
        async with store.listen("w", ["default", "mail", "none"]) as hints:
            assert {await heard(hints), await heard(hints)} == {"default", f"{RETRIES}mail"}
