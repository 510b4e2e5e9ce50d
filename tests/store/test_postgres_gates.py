"""Rows of gates do not pile up, however many keys there were."""

from typing import Any

import asyncpg

from headrace.core.limits import Gate
from headrace.core.task import NewTask
from headrace.store.postgres import PostgresStore
from tests.store.test_postgres_connection import WANTS, broken_rules, done, opened

_asyncpg: Any = asyncpg


async def _pass(store: PostgresStore, *gates: Gate) -> list[Any]:
    await store.enqueue([NewTask(name="t", gates=(gate,)) for gate in gates])
    claims = await store.claim("w", WANTS)
    assert len((await store.admit("w", claims)).admitted) == len(gates)
    return claims


async def test_gates_that_were_unused_for_a_day_are_pruned(postgres_url: str) -> None:
    """Not those with a taken slot, with a waiter, or whose bucket is not full since a day."""
    quick, slow = Gate(kind="rate", key="quick", n=5, per=1.0), Gate(kind="rate", key="slow", n=1, per=604_800.0)
    idle, busy = Gate(kind="limit", key="idle", n=1), Gate(kind="limit", key="busy", n=1)
    async with opened(postgres_url) as store:
        admin = await _asyncpg.connect(postgres_url)

        async def left() -> set[str]:
            await store.prune(keep=604_800.0)
            return {row["key"] for row in await admin.fetch("SELECT key FROM headrace.gates")}

        async def a_day_passes() -> None:
            await admin.execute(
                "UPDATE headrace.gates"
                " SET full_at = full_at - interval '25 h', updated_at = updated_at - interval '25 h'"
            )

        try:
            claims = await _pass(store, quick, slow, idle)
            await store.finish("w", [done(task) for task in claims])
            [held] = await _pass(store, busy)
            assert await left() == {"rate:quick", "rate:slow", "limit:idle", "limit:busy"}
            await a_day_passes()
            assert await left() == {"rate:slow", "limit:busy"}

            # Parked, and nobody holds the slot any more: whoever frees the gate must find its row.
            await store.enqueue([NewTask(name="t", gates=(busy,))])
            assert len((await store.admit("w", await store.claim("w", WANTS))).parked) == 1
            await admin.execute("DELETE FROM headrace.slots")
            assert await left() == {"rate:slow", "limit:busy"}
            await store.finish("w", [done(held)])
            [waiter] = await store.claim("w", WANTS)
            assert len((await store.admit("w", [waiter])).admitted) == 1
            await store.finish("w", [done(waiter)])
            assert await left() == {"rate:slow"}

            # What is gone is made anew.
            await store.finish("w", [done(task) for task in await _pass(store, idle)])
            assert await broken_rules(store) == []
        finally:
            await admin.close()
