"""Stores for tests that work below the worker: with the schema, the guard's triggers, and closed afterwards."""

import asyncio
import contextlib
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import psycopg

from headrace.core.lanes import Lane
from headrace.core.task import ClaimedTask, NewTask, Ref, Want, WorkerRecord
from headrace.store.base import Store, StoreOptions
from headrace.store.checker import WARNINGS
from headrace.store.connect import connect, sqlite_path
from tests.guarantees import guard

BOTH_LANES = (Lane.PRIMARY, Lane.RETRY)


async def prepare(url: str, *, guarded: bool = True) -> None:
    """Make the schema, and install the triggers that refuse what the state machine does not allow."""
    store = connect(url)
    try:
        await store.upgrade()
    finally:
        await store.close()
    if guarded:
        await asyncio.to_thread(_install_guard, url)


def _install_guard(url: str) -> None:
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(sqlite_path(url))) as connection:
            connection.executescript(guard.SQLITE)
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(guard.POSTGRES)  # pyright: ignore[reportArgumentType]


@contextlib.asynccontextmanager
async def stores(url: str, count: int = 2, *, guarded: bool = True, **options: Any) -> AsyncIterator[list[Store]]:
    """Several stores on one new ledger, each as another process would have it. Proves the invariants at the end."""
    await prepare(url, guarded=guarded)
    async with contextlib.AsyncExitStack() as stack:
        opened: list[Store] = []
        for _ in range(count):
            store = connect(url, StoreOptions(**options))
            await store.open()
            stack.push_async_callback(store.close)
            opened.append(store)
        yield opened
        await sound(opened[0])


async def sound(store: Store) -> None:
    broken = [violation for violation in await store.check() if violation.rule not in WARNINGS]
    assert broken == [], broken


async def register(store: Store, *workers: str) -> None:
    now = await store.now()
    for worker in workers:
        await store.register(
            WorkerRecord(
                id=worker,
                kind="worker",
                hostname="host",
                pid=1,
                state="active",
                beat=0,
                lease=30.0,
                queues=("default",),
                version="0",
                started_at=now,
                last_heartbeat=now,
                stopped_at=None,
                tasks_completed=0,
                tasks_failed=0,
            )
        )


async def a_worker(store: Store) -> str:
    name = f"w-{uuid.uuid4().hex[:12]}"
    await register(store, name)
    return name


async def enqueue(store: Store, count: int = 1, **options: Any) -> list[int]:
    options.setdefault("name", "guarantee.work")
    return [answer.id for answer in await store.enqueue([NewTask(**options) for _ in range(count)])]


async def claim(store: Store, worker: str, n: int = 1, *, queue: str = "default") -> list[ClaimedTask]:
    return await store.claim(worker, [Want(queue=queue, pool="coroutine", lane=lane, n=n) for lane in BOTH_LANES])


async def claimed(store: Store, worker: str, **options: Any) -> ClaimedTask:
    """A task in the hands of `worker`."""
    (task,) = await enqueue(store, **options)
    (found,) = await claim(store, worker)
    assert found.id == task
    return found


def ref(task: ClaimedTask) -> Ref:
    return Ref(task.id, task.claim_no)


async def together(*acts: Callable[[], Coroutine[Any, Any, Any]]) -> Sequence[Any]:
    """Run the acts at once; what each returned, in order."""
    return await asyncio.gather(*(act() for act in acts))
