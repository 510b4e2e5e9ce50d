"""`headrace db move` from one store to the other: every table arrives as it was, once, in whatever state it was left.

The ledgers are made by the verbs that users' programs and workers call, and looked at with plain drivers.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headrace.core.errors import MovedAway, MoveError, SchemaError
from headrace.core.lanes import Lane
from headrace.core.limits import Gate
from headrace.core.task import Key, NewJob, NewTask, Ref, Want
from headrace.store.base import Store, StoreOptions
from headrace.store.checker import WARNINGS
from headrace.store.connect import connect, sqlite_path
from headrace.store.instants import FIRST_POSTGRES_ID, to_micros
from headrace.store.moving.mover import Mover
from headrace.store.moving.opening import opened, shown_target
from headrace.store.moving.parcels import Received, check
from headrace.store.moving.source import Source
from headrace.store.moving.tables import OF_JOB, OF_TASK, STAYING, alone, layouts
from headrace.store.sqlite.store import SQLiteStore
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, failed_for_good, ref, released, task


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


def sqlite_rows(url: str, table: str) -> list[list[Any]]:
    layout = layouts()[table]
    with contextlib.closing(sqlite3.connect(sqlite_path(url))) as connection:
        columns = ", ".join(f'"{column}"' for column in layout.columns)
        return sorted(
            (layout.from_sqlite(row) for row in connection.execute(f"SELECT {columns} FROM headrace_{table}")), key=repr
        )


def postgres_rows(url: str, table: str) -> list[list[Any]]:
    layout = layouts()[table]
    with psycopg.connect(url) as connection:
        columns = ", ".join(f'"{column}"' for column in layout.columns)
        found = connection.execute(f"SELECT {columns} FROM headrace.{table}").fetchall()  # pyright: ignore[reportArgumentType]
        return sorted((layout.from_postgres(row) for row in found), key=repr)


def in_a_users_transaction(
    store: Store, tasks: list[NewTask], *, before_commit: Callable[[], None] | None = None
) -> Any:
    """What `using(connection=…)` does."""
    program = store.enqueue_program(tasks)
    connection = sqlite3.connect(sqlite_path(store.url), timeout=30)
    try:
        statement = next(program)
        while True:
            statement = program.send(connection.execute(statement.sql, statement.parameters).fetchall())
    except StopIteration as end:
        if before_commit is not None:
            before_commit()
        connection.commit()
        return end.value
    finally:
        connection.close()


async def fill(ledger: Ledger) -> dict[str, int]:
    """A ledger in which something stands in every table that moves; the ids by their story."""
    store = ledger.store
    await ledger.register("a", "gone")
    ids: dict[str, int] = {}
    ids["done"] = await ledger.enqueue_one(arguments='{"é":"\\u0000"}', keys=(Key(scope="idem", key="i", ttl=900.0),))
    ids["failed"] = await ledger.enqueue_one(dead_letter=True, keys=(Key(scope="unique", key="u-failed"),))
    for claim in await ledger.claim("a"):
        await store.start("a", [ref(claim)], executor="coroutine")
        await store.append_logs([(ref(claim), 0, "stdout", "one ‡ line"), (ref(claim), 1, "stderr", "two")])
        end = completed(claim, '"result"') if claim.id == ids["done"] else failed_for_good(claim, dead_letter=True)
        await ledger.finish("a", end)
    ids["retried"] = await ledger.enqueue_one(max_age=3600.5, priority=3)
    claim = await ledger.claim_one("a")
    await store.start("a", [ref(claim)])
    await store.save_checkpoint("a", ref(claim), "step", '{"n":1}')
    await ledger.finish("a", failed(claim, delay=3600))
    ids["cancelled"] = await ledger.enqueue_one()
    await store.cancel([ids["cancelled"]])
    # A job that is over, one that goes on, one with additions of a user's own transaction.
    ids["over"], _ = await store.create_job(
        NewJob(name="over", tasks=(task(), task(critical=False)), metadata='{"k":1}')
    )
    for claim in await ledger.claim("a"):
        await ledger.finish("a", completed(claim))
    hook = task("hook", queue="hooks")
    ids["open"], _ = await store.create_job(
        NewJob(name="open", tasks=(task(), task(), task()), timeout=600.0, on_success=hook, on_failure=hook)
    )
    await ledger.finish("a", completed(await ledger.claim_one("a")))
    added = in_a_users_transaction(store, [task(job=ids["open"])])
    ids["added"] = added[0].id
    # What waits: for a time, for a gate, for an approval, its turn, and what holds a key.
    ids["later"] = await ledger.enqueue_one(delay=3600, queue="mail")
    ids["approval"] = await ledger.enqueue_one(approval=True)
    ids["unique"] = await ledger.enqueue_one(keys=(Key(scope="unique", key="u", ttl=5.0),), delay=3600)
    rate = (Gate(kind="rate", key="r", n=1, per=3600.0, burst=1),)
    limit = (Gate(kind="limit", key="l", n=1),)
    for story, gates in (("in", limit), ("parked", limit), ("rated", rate)):
        ids[story] = await ledger.enqueue_one(gates=gates, queue="gated")
    claims = await ledger.claim("gone", queue="gated")
    await store.admit("gone", claims)
    await store.count_outcomes([("a", "default", "conformance.work", "completed", 4)])
    await store.pause("mail")
    await store.deregister("gone")  # gives back what it held
    await store.deregister("a")
    return ids


@pytest.mark.postgres
async def test_every_table_arrives_as_it_was(sqlite_url: str, postgres_url: str):
    async with ledger_of(sqlite_url) as ledger:
        ids = await fill(ledger)
        assert [found for found in await ledger.store.check() if found.rule not in WARNINGS] == []
    before = {table: sqlite_rows(sqlite_url, table) for table in layouts()}
    assert [table for table, rows in before.items() if not rows and table not in STAYING] == []

    received = await moved(sqlite_url, postgres_url)

    after = {table: postgres_rows(postgres_url, table) for table in layouts() if table not in STAYING}
    waiting_on = layouts()["tasks"].place("waiting_on")
    for table, rows in after.items():
        expected = before[table]
        if table == "tasks":  # who waited for a gate looks again
            expected = sorted(([*row[:waiting_on], None] for row in expected), key=repr)
        assert rows == expected, table
        assert received.sent[table] == received.found[table] == check(rows), table
    assert received.merged == {}
    for table in layouts():
        left = sqlite_rows(sqlite_url, table)
        if table == "keys":  # names by which they are still known
            assert {row[0] for row in left} == {"idem", "unique"}
        elif table != "meta":
            assert left == [], table
    async with ledger_of(postgres_url) as there:
        assert await there.store.check() == []
        assert min(ids.values()) > 0
        assert max(ids.values()) < FIRST_POSTGRES_ID
        (new,) = await there.enqueue(task())
        assert new >= FIRST_POSTGRES_ID
        done = await there.get(ids["done"])
        assert (done.state, done.result, done.arguments) == ("completed", '"result"', '{"é":"\\u0000"}')
        assert [line.line for line in await there.store.logs(ids["done"])] == ["one ‡ line", "two"]
        assert await there.store.checkpoints(ids["retried"]) == {"step": '{"n":1}'}
        assert (await there.job(ids["open"])).total == 4
    async with ledger_of(sqlite_url) as here:
        assert await here.store.check() == []


@pytest.mark.postgres
async def test_what_arrived_runs_to_its_end(sqlite_url: str, postgres_url: str):
    """Parked tasks find their gate, the job ends and calls its hook, failed tasks can be retried with their key."""
    async with ledger_of(sqlite_url) as ledger:
        ids = await fill(ledger)
    await moved(sqlite_url, postgres_url)
    async with ledger_of(postgres_url) as there:
        store = there.store
        await there.register("b")
        assert await store.retry([ids["failed"]]) == [ids["failed"]]
        for _ in range(10):
            for queue in ("default", "gated", "hooks"):
                claims = await there.claim("b", queue=queue)
                gated = [claim for claim in claims if claim.gated]
                admission = await store.admit("b", gated) if gated else None
                for claim in claims:
                    if not claim.gated or (admission and ref(claim) in admission.admitted):
                        await there.finish("b", completed(claim))
        for story in ("failed", "in", "parked"):
            assert await there.state(ids[story]) == "completed", story
        assert await there.state(ids["rated"]) == "pending", "its bucket was empty, and came along"
        job = await there.job(ids["open"])
        assert (job.state, job.completed, job.total) == ("completed", 4, 4)
        assert [row[1] for row in postgres_rows(postgres_url, "history") if row[1] == "hook"] == ["hook"]
        assert await there.state(ids["later"]) == "pending"
        assert [queue.paused for queue in await store.queues() if queue.name == "mail"] == [True]
        assert await store.check() == []


def test_every_table_of_the_schema_has_a_way_to_go():
    """Where a table is added it goes row by row, unless it says otherwise here."""
    by_themselves = {layout.table for layout in alone()}
    assert {"queues", "workers", "outcomes", "gates"} <= by_themselves
    known = by_themselves | {*OF_TASK, *OF_JOB, *STAYING, "tasks", "history", "jobs"}
    assert known == {*layouts(), "ids"}
    assert not by_themselves & {*OF_TASK, *OF_JOB, *STAYING, "tasks", "history", "jobs"}
