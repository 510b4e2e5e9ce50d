"""On PostgreSQL, awaited enqueues go from the caller's own loop, and leave nothing behind when it ends."""

import asyncio
import threading

import pytest

from headrace import App, Task
from headrace.client import counting, nearby
from tests.support.postgres import PostgresServer
from tests.support.waiting import wait_until


def noop_of(app: App) -> Task[[int], None]:
    @app.task(name="noop")
    async def noop(n: int) -> None: ...

    return noop


def backends(server: PostgresServer, url: str) -> int:
    with server.connect(url.rpartition("/")[2]) as connection:
        [count] = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ).fetchone() or (0,)
    return count


def wait_for_none(server: PostgresServer, url: str) -> None:
    """A backend is gone a moment after its connection."""
    wait_until(lambda: backends(server, url) == 0, 10)


def headrace_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("headrace")}


def test_the_connection_ends_with_the_loop(postgres_server: PostgresServer, postgres_url: str) -> None:
    """One connection and no other thread, however many calls; and the next loop gets one of its own."""
    app = App(postgres_url)
    noop, threads = noop_of(app), headrace_threads()

    async def enqueue() -> list[int]:
        found = [(await noop.aenqueue(n)).id for n in range(3)]
        found += [handle.id for handle in await asyncio.gather(*(noop.aenqueue(n) for n in range(20)))]
        wait_until(lambda: backends(postgres_server, postgres_url) == 1, 10)
        return found

    ids = asyncio.run(enqueue())
    assert headrace_threads() <= threads
    wait_for_none(postgres_server, postgres_url)
    ids += asyncio.run(enqueue())
    wait_for_none(postgres_server, postgres_url)
    assert len(set(ids)) == 46
    assert sorted(record.id for record in app.tasks.list(limit=100)) == sorted(ids)
    app.close()


def test_a_closed_app_opens_its_line_anew(postgres_server: PostgresServer, postgres_url: str) -> None:
    """What had begun is written first."""
    app = App(postgres_url)
    noop = noop_of(app)

    async def enqueue() -> None:
        await noop.aenqueue(0)
        begun = [asyncio.ensure_future(noop.aenqueue(n)) for n in range(10)]
        await asyncio.sleep(0)
        await app.aclose()
        assert all(call.done() for call in begun)
        wait_for_none(postgres_server, postgres_url)
        await noop.aenqueue(99)
        wait_until(lambda: backends(postgres_server, postgres_url) == 1, 10)

    asyncio.run(enqueue())
    assert len(app.tasks.list(limit=100)) == 12
    app.close()
    wait_for_none(postgres_server, postgres_url)


def test_loops_of_several_threads_each_have_their_own(postgres_server: PostgresServer, postgres_url: str) -> None:
    """A blocking `close` elsewhere closes those of running loops too, once what they began is written."""
    app = App(postgres_url)
    noop = noop_of(app)
    enqueued, may_end, at_work = threading.Barrier(3), threading.Event(), []

    async def enqueue() -> None:
        await asyncio.gather(*(noop.aenqueue(n) for n in range(10)))
        enqueued.wait(30)
        await asyncio.to_thread(may_end.wait, 30)  # the loop goes on turning

    def run() -> None:
        asyncio.run(enqueue())
        at_work.append(threading.current_thread())

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    enqueued.wait(30)
    try:
        wait_until(lambda: backends(postgres_server, postgres_url) == 2, 10)
        app.close()
        wait_for_none(postgres_server, postgres_url)
    finally:
        may_end.set()
        for thread in threads:
            thread.join(30)
    assert len(at_work) == 2
    assert len(app.tasks.list(limit=100)) == 20
    app.close()


def test_a_loop_that_is_blocked_does_not_hold_up_a_close(
    postgres_server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be asked. What it has is closed when it ends."""
    monkeypatch.setattr(nearby, "_LONGEST_CLOSE", 0.2)
    app = App(postgres_url)
    noop = noop_of(app)
    blocked, closed = threading.Event(), threading.Event()

    async def enqueue() -> None:
        await noop.aenqueue(1)
        blocked.set()
        assert closed.wait(30)

    thread = threading.Thread(target=lambda: asyncio.run(enqueue()))
    thread.start()
    assert blocked.wait(30)
    app.close()
    closed.set()
    thread.join(30)
    assert not thread.is_alive()
    wait_for_none(postgres_server, postgres_url)


async def test_what_is_counted_goes_by_the_background_loop(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which sends it to the supervisor; a line of the caller's own would count for nobody."""
    app = App(postgres_url)
    noop = noop_of(app)
    await noop.aenqueue(1)
    assert app.engine._connected is None
    monkeypatch.setattr(counting, "relay_address", lambda: "@headrace-nobody-listens")
    await noop.aenqueue(2)
    assert app.engine._connected is not None
    assert len(await app.tasks.alist()) == 2
    await app.aclose()
