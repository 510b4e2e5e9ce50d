"""Wake-ups: datagrams between stores, the file's version for those who send none."""

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from headrace.core.lanes import Lane
from headrace.core.task import NewTask, Want
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.store.sqlite.wakeups import Listener, socket_folder
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


async def test_the_socket_of_a_dead_listener_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with opened(path) as store:
        folder = socket_folder(str(path))
        folder.mkdir(mode=0o700, exist_ok=True)
        dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        dead.bind(str(folder / "0-0.sock"))
        dead.close()
        await store.wake(["default"])
        assert list(folder.iterdir()) == []
        async with store.listen("w", ["default"]):
            assert len(list(folder.iterdir())) == 1
        assert list(folder.iterdir()) == []


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
