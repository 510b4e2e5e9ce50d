"""A worker's lines have their plans before its first task comes, on PostgreSQL."""

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from headrace.core.errors import StoreUnavailable
from headrace.core.states import TaskState
from headrace.core.task import ClaimedTask
from tests.worker.bench import Bench, opened

pytestmark = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)

_LINES = """SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%finish_v1%claim_v1%'"""


async def test_as_many_lines_as_it_writes_at_once(bench: Bench) -> None:
    async with opened(bench), await psycopg.AsyncConnection.connect(bench.store.url) as connection:
        store: Any = bench.store
        await store.warm("worker")
        lines = await (await connection.execute(_LINES)).fetchone()
        assert lines == (2,)


@pytest.mark.parametrize("away", [False, True])
async def test_before_its_first_claim_and_not_at_any_price(bench: Bench, away: bool) -> None:
    calls: list[str] = []

    async def note() -> None: ...

    bench.app.add(note)
    async with opened(bench):
        store: Any = bench.store
        warm, claim = store.warm, store.claim

        async def warmed(worker: str) -> None:
            calls.append("warm")
            if away:
                raise StoreUnavailable("away")
            await warm(worker)

        async def claimed(worker: str, wants: Sequence[Any]) -> list[ClaimedTask]:
            calls.append("claim")
            return await claim(worker, wants)

        store.warm, store.claim = warmed, claimed
        task = await bench.enqueue("note")
        await bench.burst()
        assert calls[:2] == ["warm", "claim"]
        assert calls.count("warm") == 1
        assert await bench.state(task) == TaskState.COMPLETED
