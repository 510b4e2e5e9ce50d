"""A repeat of an enqueue, while the first try is about to commit."""

import asyncio
from typing import Any

import asyncpg
import pytest

from headrace.core.task import Key, NewTask
from headrace.store.postgres.enqueueing import document
from tests.store.test_postgres_connection import opened
from tests.support.waiting import eventually

_asyncpg: Any = asyncpg
_ID = 4711
_ENQUEUE = "SELECT id FROM headrace.enqueue_v1($1)"


@pytest.mark.parametrize("keys", [(), (Key(scope="unique", key="k"),)], ids=["plain", "keyed"])
async def test_a_task_that_ended_while_its_repeat_waited_is_not_born_again(
    postgres_url: str, keys: tuple[Key, ...]
) -> None:
    """The first try's connection was lost, not its statement: it commits, and its task is over, in the very moment for
    which the repeat waits.
    """
    task = NewTask(name="once", keys=keys)
    async with opened(postgres_url) as store:
        first, second, watcher = [await _asyncpg.connect(postgres_url) for _ in range(3)]
        try:
            await first.execute("BEGIN")
            await first.fetch(_ENQUEUE, document([task], own=True, ids=[_ID]))
            await first.fetch("SELECT * FROM headrace.cancel_v1($1, 'user')", [_ID])
            repeat = asyncio.create_task(second.fetch(_ENQUEUE, document([task], own=True, ids=[_ID], repeated=True)))
            waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'"
            await eventually(lambda: watcher.fetchval(waits, second.get_server_pid()))
            await first.execute("COMMIT")
            assert [row["id"] for row in await repeat] == [_ID]
            assert await watcher.fetchval("SELECT count(*) FROM headrace.tasks") == 0
            assert await watcher.fetchval("SELECT count(*) FROM headrace.history") == 1
            assert await store.check() == []
        finally:
            for connection in (first, second, watcher):
                await connection.close()
