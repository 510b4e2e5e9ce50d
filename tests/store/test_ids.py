"""Where the ids of the two databases lie, so that an SQLite ledger can move to PostgreSQL with its ids."""

import asyncio
from collections import deque
from typing import Any

from headrace.core.task import NewJob, NewTask
from headrace.store import migrations
from headrace.store.connect import connect

BORDER = 2**48


def test_the_ids_of_the_two_databases_never_meet(store_url: str) -> None:
    """Neither those of tasks nor those of jobs."""
    migrations.upgrade(store_url, name="headrace")

    async def work() -> list[int]:
        store = connect(store_url)
        await store.open()
        try:
            job, tasks = await store.create_job(NewJob(name="j", tasks=(NewTask(name="t"),)))
            plain = await store.enqueue([NewTask(name="t") for _ in range(250)])
            return [job, *(answer.id for answer in (*tasks, *plain))]
        finally:
            await store.close()

    ids = asyncio.run(work())
    assert len(set(ids)) == 252
    if store_url.startswith("sqlite:"):
        assert max(ids) < BORDER
    else:
        assert min(ids) >= BORDER


def test_blocks_that_arrive_out_of_order_leave_the_tasks_of_a_call_in_order(postgres_url: str) -> None:
    """Two calls fetched ids at once, and the later block came first."""
    migrations.upgrade(postgres_url, name="headrace")

    async def work() -> list[int]:
        store: Any = connect(postgres_url)
        await store.open()
        try:
            store.enqueue.__self__._ids = deque([*range(BORDER + 1000, BORDER + 1050), *range(BORDER, BORDER + 50)])
            return [answer.id for answer in await store.enqueue([NewTask(name="t") for _ in range(100)])]
        finally:
            await store.close()

    ids = asyncio.run(work())
    assert ids == sorted(ids)
    assert len(ids) == 100
