"""`headrace db move` in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from headrace.store.base import StoreOptions
from headrace.store.connect import connect
from headrace.store.moving.mover import Mover
from headrace.store.moving.opening import opened, shown_target
from headrace.store.moving.parcels import Received
from headrace.testing.store_conformance.ledger import Ledger


@asynccontextmanager
async def ledger_of(url: str) -> AsyncIterator[Ledger]:
    ledger = Ledger(lambda: connect(url, StoreOptions()), None)
    await ledger.open()
    try:
        yield ledger
    finally:
        await ledger.close()


@asynccontextmanager
async def mover_of(sqlite_url: str, postgres_url: str, **options: Any) -> AsyncIterator[Mover]:
    async with opened(sqlite_url, postgres_url) as (source, target):
        yield Mover(
            source=source,
            target=target,
            url=postgres_url,
            shown=shown_target(postgres_url),
            source_shown=sqlite_url,
            **options,
        )


async def moved(sqlite_url: str, postgres_url: str, **options: Any) -> Received:
    async with mover_of(sqlite_url, postgres_url, **options) as mover:
        return await asyncio.wait_for(mover.run(), 60)
