"""A task's record is its place in the queue: made at once, dispatched by one way, moved by nobody twice."""

import asyncio
import sqlite3
import time
from collections import Counter
from contextlib import closing
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from headrace import App
from headrace.core.lanes import Lane
from headrace.core.task import Want
from headrace.store.base import Store
from headrace.store.connect import sqlite_path
from headrace.store.queries import load_queries
from tests.client.draining import drain

BOTH = (Lane.PRIMARY, Lane.RETRY)


def define(app: App) -> Any:
    @app.task(name="work")
    async def work(n: int) -> int:
        return n

    return work


def own_connection(app: App) -> Any:
    """Of a user, with a transaction that has begun."""
    if app.url.startswith("sqlite"):
        connection: Any = sqlite3.connect(sqlite_path(app.url))
        connection.execute("BEGIN IMMEDIATE")
        return connection
    return psycopg.connect(app.url)


async def claim_all(store: Store, worker: str) -> list[int]:
    wants = [Want(queue="default", pool="coroutine", lane=lane, n=7) for lane in BOTH]
    found: list[int] = []
    while claims := await store.claim(worker, wants):
        found += [claim.id for claim in claims]
    return found


@pytest.mark.requirement("F45")
@pytest.mark.parametrize("commits", [True, False])
def test_record_and_place_in_the_queue_come_together(app: App, commits: bool):
    """F45: while the transaction that enqueues is open there is neither a record nor something to claim; when it is
    rolled back neither comes, when it is committed both do, of the same tasks."""
    work = define(app)
    app.tasks.counts()  # open, so that on SQLite only reads follow while the user holds the lock
    with closing(own_connection(app)) as connection:
        with app.transaction(connection):
            ids = {work.enqueue(n).id for n in range(3)}
        assert app.tasks.list() == []
        connection.commit() if commits else connection.rollback()
    listed = {record.id for record in app.tasks.list()}
    claimed = set(asyncio.run(_claimed(app)))
    assert listed == claimed == (ids if commits else set())


async def _claimed(app: App) -> list[int]:
    store = app.new_store()
    await store.open()
    try:
        return await claim_all(store, "w")
    finally:
        await store.close()


@pytest.mark.requirement("F46")
async def test_a_task_is_dispatched_by_one_way_only(app: App):
    """F46: of four workers that claim at once each task is in the hands of one; when it has run there is nothing left
    of it to dispatch, and it ran once."""
    work = define(app)
    handles = await work.aenqueue_many({"n": number} for number in range(60))
    stores = [app.new_store() for _ in range(4)]
    try:
        for store in stores:
            await store.open()
        claims = await asyncio.gather(*(claim_all(store, f"w{place}") for place, store in enumerate(stores)))
        counted = Counter(id for found in claims for id in found)
        assert counted == Counter(handle.id for handle in handles)
        for place, store in enumerate(stores):
            assert await store.deregister(f"w{place}") == len(claims[place])
    finally:
        for store in stores:
            await store.close()
    assert await drain(app) == 60
    assert await drain(app) == 0
    assert {record.attempt for record in await app.tasks.alist(limit=100)} == {1}


@pytest.mark.requirement("F61")
async def test_nobody_moves_a_due_task_twice(app: App):
    """F61: a mover dies after it made due tasks ready and before its commit; then three move at once, while workers
    claim: each task is claimed once, and none is lost."""
    work = define(app)
    handles = await work.using(run_after=timedelta(seconds=0.3)).aenqueue_many({"n": number} for number in range(40))
    started = await app.engine.run(lambda store: store.now())
    async with asyncio.timeout(30):
        while await app.engine.run(lambda store: store.now()) - started < timedelta(seconds=0.5):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await asyncio.to_thread(die_while_moving, app)
    stores = [app.new_store() for _ in range(3)]
    try:
        for store in stores:
            await store.open()

        async def move_and_claim(place: int) -> list[int]:
            found: list[int] = []
            for _ in range(5):
                await stores[place].promote(limit=10)
                found += await claim_all(stores[place], f"w{place}")
            return found

        claims = await asyncio.gather(*map(move_and_claim, range(3)))
    finally:
        for store in stores:
            await store.close()
    assert Counter(id for found in claims for id in found) == Counter(handle.id for handle in handles)


def die_while_moving(app: App) -> None:
    """The very statements of the store, and then the connection is gone."""
    with closing(own_connection(app)) as connection:
        if app.url.startswith("sqlite"):
            queries, now = load_queries("headrace.store.sqlite.sql"), int(time.time() * 1e6)
            ids, _, _ = connection.execute(queries["due_tasks"], {"now": now, "limit": 25}).fetchone()
            moved = connection.execute(queries["promote_due"], {"now": now, "ids": ids}).rowcount
        else:
            query = load_queries("headrace.store.postgres.sql")["promote"].replace("$1", "%s")
            moved = connection.execute(query, (25,)).fetchone()[0]
        assert moved == 25
