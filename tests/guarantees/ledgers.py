"""Stores for tests that work below the worker: with the schema, the triggers of the guard, and closed afterwards."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

from headrace.core.lanes import Lane
from headrace.core.task import ClaimedTask, NewTask, Ref, Want, WorkerRecord
from headrace.store.base import Store, StoreOptions
from headrace.store.checker import WARNINGS
from headrace.store.connect import connect
from tests.guarantees.ledger import Ledger

BOTH_LANES = (Lane.PRIMARY, Lane.RETRY)


def prepare(url: str, *, guarded: bool = True) -> None:
    """Make the schema, and install the triggers that refuse what the state machine does not allow."""
    ledger = Ledger(url, guarded=guarded)
    ledger.prepare()
    ledger.close()


def empty(url: str) -> None:
    """Leave nothing in a ledger but its schema: far cheaper than a new one."""
    ledger = Ledger(url)
    if ledger.sqlite:
        tables = ledger.query("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    else:
        tables = ledger.query(
            "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname IN ('headrace', 'public')"
        )
    kept = ("meta", "ids", "alembic_version", "guard_steps")
    ledger.query("BEGIN")
    for (table,) in tables:
        if not table.endswith(kept):
            ledger.query(f"DELETE FROM {table}")
    ledger.query("COMMIT")
    ledger.close()


@contextlib.asynccontextmanager
async def stores(url: str, count: int = 2, **options: Any) -> AsyncIterator[list[Store]]:
    """Several stores on one ledger, each as another process would have it. Proves the invariants at the end."""
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
