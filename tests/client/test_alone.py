"""A caller that is alone goes straight to the SQLite store, from its own loop; who comes meanwhile comes after it."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from headrace import App
from headrace.client.bridge import BRIDGE
from headrace.client.task import Task
from headrace.core.task import Enqueued, NewTask
from headrace.store.base import StoreClosed
from tests.support.waiting import eventually


def define(app: App) -> Task[[int], None]:
    @app.task(name="note")
    async def note(number: int) -> None: ...

    return note


async def nobody_is_there(app: App) -> None:
    engine: Any = app.engine
    await eventually(lambda: engine._coalescer().idle)


def watch(app: App, monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, int]]:
    """On which loop the store was asked to write, and how many tasks."""
    engine: Any = app.engine
    store = engine._connected.store
    calls: list[tuple[object, int]] = []
    real = store.enqueue

    async def enqueue(tasks: Sequence[NewTask]) -> list[Enqueued]:
        calls.append((asyncio.get_running_loop(), len(tasks)))
        return await real(tasks)

    monkeypatch.setattr(store, "enqueue", enqueue)
    return calls


async def test_one_call_after_another_is_written_from_the_callers_loop(
    sqlite_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = define(sqlite_app)
    await note.aenqueue(0)  # opens the store, on the background loop
    await nobody_is_there(sqlite_app)
    calls = watch(sqlite_app, monkeypatch)
    handles = [await note.aenqueue(number) for number in range(3)]
    assert calls == [(asyncio.get_running_loop(), 1)] * 3
    assert [handle.id for handle in handles] == sorted(handle.id for handle in handles)
    await asyncio.to_thread(note.enqueue, 4)  # who blocks has no loop to be called back on
    assert calls[-1] == (BRIDGE.loop, 1)


async def test_those_who_come_together_still_share_a_commit_and_keep_their_order(
    sqlite_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = define(sqlite_app)
    await note.aenqueue(0)
    await nobody_is_there(sqlite_app)
    calls = watch(sqlite_app, monkeypatch)
    handles = await asyncio.gather(*[note.aenqueue(number) for number in range(50)])
    assert [handle.id for handle in handles] == sorted(handle.id for handle in handles)
    assert calls[0] == (asyncio.get_running_loop(), 1)
    assert sum(count for _, count in calls) == 50
    assert len(calls) < 25


async def test_a_store_that_another_thread_closes_at_that_moment_is_opened_again(
    sqlite_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = define(sqlite_app)
    await note.aenqueue(0)
    await nobody_is_there(sqlite_app)
    engine: Any = sqlite_app.engine
    old = engine._connected.store
    real = old.enqueue

    async def close_first(tasks: Sequence[NewTask]) -> list[Enqueued]:
        thread = threading.Thread(target=sqlite_app.close)
        thread.start()
        await asyncio.to_thread(thread.join)
        with pytest.raises(StoreClosed):
            await real(tasks)
        return await real(tasks)

    monkeypatch.setattr(old, "enqueue", close_first)
    handle = await note.aenqueue(1)
    assert engine._connected.store is not old
    assert (await handle.arecord()).state == "pending"
