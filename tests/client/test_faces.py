"""Two faces, one core: a blocking form is made from its async one, and takes the same."""

import asyncio
import inspect
import threading
import time

import pytest

from headrace import App, Handle, JobHandle, Signature, Task
from headrace.client.bridge import BRIDGE, on_store, run_blocking, sync_form
from headrace.client.commands import Commands
from headrace.client.inspection import Queues, Tasks, Workers
from headrace.client.jobs import Jobs
from headrace.client.schedules import Schedules
from headrace.core.errors import RunningLoop

OWNERS = [App, Task, Handle, JobHandle, Tasks, Queues, Workers, Jobs, Commands, Schedules]
ONLY_ASYNC = {("Handle", "__await__"), ("App", "lifespan_context")}


def pairs() -> list[tuple[type, str, str]]:
    found = []
    for owner in OWNERS:
        for name, member in vars(owner).items():
            form = getattr(member, "async_form", None)
            if form is not None:
                found.append((owner, name, form))
    return found


def test_both_forms_of_a_workflows_enqueue_have_one_signature():
    """Workflows are below the client, so theirs is not made from the other."""
    blocking, awaitable = Signature.enqueue, Signature.aenqueue
    assert inspect.signature(blocking) == inspect.signature(awaitable)
    assert blocking.__doc__ == awaitable.__doc__


@pytest.mark.parametrize(("owner", "name", "form"), pairs(), ids=lambda value: getattr(value, "__name__", value))
def test_both_forms_have_one_signature(owner: type, name: str, form: str):
    blocking, awaitable = getattr(owner, name), getattr(owner, form)
    assert not inspect.iscoroutinefunction(blocking)
    assert inspect.iscoroutinefunction(awaitable)
    assert inspect.signature(blocking) == inspect.signature(awaitable)
    assert blocking.__doc__ == awaitable.__doc__
    assert form == ("await_" if name == "wait" else f"a{name}")
    assert blocking.__name__ == name


def test_every_public_coroutine_has_its_blocking_form():
    with_form = {(owner.__name__, form) for owner, _, form in pairs()}
    for owner in OWNERS:
        for name, member in vars(owner).items():
            if inspect.iscoroutinefunction(member) and not name.startswith("_"):
                assert (owner.__name__, name) in with_form


def test_user_code_runs_on_the_callers_thread(sqlite_app: App):
    seen: list[int] = []

    def key(user_id: int) -> str:
        seen.append(threading.get_ident())
        return str(user_id)

    @sqlite_app.task(name="x", unique=key)
    def x(user_id: int) -> None: ...

    x.enqueue(1)
    asyncio.run(x.aenqueue(2))
    assert seen == [threading.get_ident()] * 2


def test_a_coroutine_that_really_waits_is_not_driven_by_a_blocking_call():
    class Thing:
        async def awalk(self) -> None:
            await asyncio.sleep(1)

        walk = sync_form(awalk)

    with pytest.raises((RunningLoop, RuntimeError)):
        Thing().walk()


def test_an_error_in_the_background_keeps_its_type_and_place():
    async def broken() -> None:
        raise LookupError("there")

    async def call() -> None:
        await on_store(broken)

    with pytest.raises(LookupError, match="there"):
        run_blocking("acall", call())
    with pytest.raises(LookupError, match="there"):
        asyncio.run(call())


def test_a_cancelled_caller_cancels_its_work_in_the_background():
    state: list[str] = []
    started = threading.Event()

    async def slow() -> None:
        state.append("started")
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            state.append("cancelled")
            raise

    async def main() -> None:
        waiting = asyncio.create_task(on_store(slow))
        assert await asyncio.to_thread(started.wait, 10)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    deadline = time.monotonic() + 10
    while state != ["started", "cancelled"]:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_one_background_thread_whatever_asks(sqlite_app: App):
    for _ in range(5):
        asyncio.run(sqlite_app.tasks.alist())
        sqlite_app.tasks.list()
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("headrace-client") == 1
    assert BRIDGE.loop.is_running()


def test_connections_do_not_grow_with_loops(postgres_url: str, postgres_server):
    """A loop per request, fifty times: the server sees one handful of connections."""
    app = App(postgres_url)
    for _ in range(50):
        asyncio.run(app.tasks.alist())
    name = postgres_url.rpartition("/")[2]
    with postgres_server.connect() as connection:
        row = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", (name,)).fetchone()
    app.close()
    assert row[0] <= 3
