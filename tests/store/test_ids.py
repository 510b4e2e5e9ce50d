"""Where the ids of the two databases lie, so that an SQLite ledger can move to PostgreSQL with its ids."""

import asyncio

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
