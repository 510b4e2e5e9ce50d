"""A claim begins to read where the last one ended, and still finds what comes back below."""

import asyncio
import json
import time
from typing import Any

import asyncpg
import pytest

from headrace.core.lanes import Lane
from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import ClaimedTask, Want
from headrace.store.base import StoreOptions
from headrace.store.postgres import PostgresStore
from headrace.store.postgres.low_water import LowWater
from headrace.store.queries import load_queries
from headrace.testing.store_conformance.ledger import Ledger
from tests.store.test_postgres_connection import broken_rules, done, opened

_asyncpg: Any = asyncpg
LOWEST, HIGHEST = -(2**31), 2**31 - 1


def want(n: int, *, lane: Lane = Lane.PRIMARY) -> Want:
    return Want(queue="default", pool="coroutine", lane=lane, n=n)


def claimed(number: int, *, priority: int = 0, lane: int = 0) -> ClaimedTask:
    return ClaimedTask(
        id=number, claim_no=1, name="t", kind="function", queue="default", pool="coroutine", lane=lane,
        priority=priority, arguments="{}", codec="json/1", version=1, options="{}", attempt=0, losses=0, max_attempts=4,
        run_no=1, job=None, gated=False, expired=False, state="claimed", order_at=number, waited=0.0,
    )  # fmt: skip


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def claim(water: LowWater, clock: Clock, n: int, *found: ClaimedTask, took: float = 0.001) -> list[tuple[Any, ...]]:
    """One claim of the worker; the ranges it read."""
    look = water.begin("w", [want(n)])
    clock.now += took
    water.end("w", look, [want(n)], found)
    return [tuple(part) for part in look.ranges]


WHOLE = [(1, HIGHEST, LOWEST, None)]


def test_what_is_put_back_while_a_claim_is_on_its_way_is_not_passed_over() -> None:
    clock = Clock()
    water = LowWater(clock)
    look = water.begin("w", [want(2)])
    water.lower()
    water.end("w", look, [want(2)], [claimed(5), claimed(6)])
    assert claim(water, clock, 2) == WHOLE


def test_a_claim_reads_on_where_the_last_one_ended() -> None:
    clock = Clock()
    water = LowWater(clock)
    assert claim(water, clock, 2, claimed(1), claimed(2)) == WHOLE
    assert claim(water, clock, 2, claimed(3), claimed(4)) == [
        (1, HIGHEST, 1, None), (1, 0, 0, (2, 2)), (1, -1, LOWEST, None)
    ]  # fmt: skip
    assert claim(water, clock, 2)[1] == (1, 0, 0, (4, 4))


def test_every_priority_has_a_mark_of_its_own() -> None:
    clock = Clock()
    water = LowWater(clock)
    claim(water, clock, 3, claimed(8, priority=HIGHEST), claimed(5, priority=1), claimed(2))
    assert claim(water, clock, 3) == [
        (1, HIGHEST, HIGHEST, (8, 8)), (1, HIGHEST - 1, 2, None), (1, 1, 1, (5, 5)), (1, 0, 0, (2, 2)),
        (1, -1, LOWEST, None),
    ]  # fmt: skip


def test_the_front_is_read_once_a_second_while_there_is_enough_to_do() -> None:
    clock = Clock()
    water = LowWater(clock)
    fronts = [claim(water, clock, 1, claimed(n), took=0.01) == WHOLE for n in range(1, 301)]
    assert 3 <= sum(fronts) <= 4, "in three seconds"


def test_pools_and_lanes_without_a_task_do_not_send_the_others_to_the_front() -> None:
    """A worker asks for all of them at once: what it has in abundance it goes on reading where it stood."""
    clock = Clock()
    water = LowWater(clock)
    wants = [want(2), want(1, lane=Lane.RETRY), Want(queue="default", pool="thread", lane=Lane.PRIMARY, n=4)]

    def begins_in_front(*found: ClaimedTask) -> bool:
        look = water.begin("w", wants)
        clock.now += 0.001
        water.end("w", look, wants, found)
        return look.front

    assert begins_in_front(claimed(1), claimed(2))
    assert not begins_in_front(claimed(3), claimed(4))
    assert not begins_in_front(claimed(5))
    assert begins_in_front(), "there was less than it asked for, so it looks for what came back below"


def test_the_front_takes_a_fiftieth_of_the_time() -> None:
    """Half a second from the front, a hundredth above the mark."""
    clock = Clock()
    water = LowWater(clock)
    spent = 0.0
    begin = clock.now
    for n in range(1, 60_001):
        look = water.begin("w", [want(1)])
        took = 0.5 if look.front else 0.01
        spent += took if look.front else 0.0
        clock.now += took
        water.end("w", look, [want(1)], [claimed(n)])
    assert 0.01 < spent / (clock.now - begin) < 0.025


def test_what_is_found_below_lowers_the_mark() -> None:
    """There may be more of it behind the last one that was taken."""
    clock = Clock()
    water = LowWater(clock)
    claim(water, clock, 1, claimed(50))
    clock.now += 1
    assert claim(water, clock, 2, claimed(3), claimed(4)) == WHOLE
    assert claim(water, clock, 1, claimed(5))[1] == (1, 0, 0, (4, 4))
    # A claim that was not filled took all there was: the old mark stands.
    clock.now += 1
    claim(water, clock, 1, claimed(60), took=0.01)
    clock.now += 1
    assert claim(water, clock, 2, claimed(7), took=0.01) == WHOLE
    assert claim(water, clock, 2)[1] == (1, 0, 0, (60, 60))


def test_what_this_process_gives_back_is_looked_for_at_once() -> None:
    clock = Clock()
    water = LowWater(clock)
    claim(water, clock, 1, claimed(50))
    water.lower()
    assert claim(water, clock, 1) == WHOLE


def test_one_slow_answer_does_not_keep_it_from_the_front() -> None:
    """An outage, or a process that was stopped for minutes: only what is slow again and again is the front's fault."""
    clock = Clock()
    water = LowWater(clock)
    for n in range(1, 11):
        claim(water, clock, 1, claimed(n), took=0.01)
    clock.now += 1
    assert claim(water, clock, 1, claimed(11), took=300.0) == WHOLE
    claim(water, clock, 1, claimed(12), took=0.01)
    clock.now += 1
    assert claim(water, clock, 1, claimed(13), took=0.01) == WHOLE


def test_where_tasks_wait_for_limits_there_is_no_mark() -> None:
    """They are parked, and come back to their old places as soon as there is room."""
    clock = Clock()
    water = LowWater(clock)
    claim(water, clock, 1, claimed(1))
    claim(water, clock, 1, claimed(2)._replace(gated=True))
    assert [claim(water, clock, 1, claimed(n)) for n in (3, 4)] == [WHOLE, WHOLE]


async def _fill(connection: Any, n: int, *, age: str = "1 hour") -> None:
    """Tasks that wait since long: a mark of the last second is not believed."""
    await connection.execute(
        f"""INSERT INTO headrace.tasks (id, name, kind, queue, pool, state, arguments, codec, version, options,
                                        created_at, enqueued_at, eligible_at, order_at, ready_at)
            SELECT nextval('headrace.ids'), 't', 'function', 'default', 'coroutine', 'pending', '{{}}', 'json/1', 1,
                   '{{}}', at, at, at, at + i * interval '1 ms', at
            FROM generate_series(1, {n}) AS i, (SELECT now() - interval '{age}' AS at) AS past"""
    )


async def _drain(store: PostgresStore, n: int) -> None:
    tasks: list[ClaimedTask] = await store.claim("w", [want(500)])
    taken = len(tasks)
    while taken < n:
        report = await store.finish("w", [done(task) for task in tasks], wants=[want(500)])
        tasks = list(report.claimed)
        taken += len(tasks)
        assert tasks, taken
    await store.finish("w", [done(task) for task in tasks])


async def test_an_old_snapshot_does_not_make_claims_dearer(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was claimed since the snapshot stays in the index; a claim from the front would walk over 20,000 of it."""
    pages: list[int] = []
    original = _asyncpg.Connection.fetch

    async def total(connection: Any) -> int:
        await original(connection, "SELECT pg_stat_force_next_flush()")
        [row] = await original(
            connection,
            "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()",
        )
        return row[0]

    async def counting(self: Any, query: str, *arguments: Any, **options: Any) -> Any:
        if "claim_v1" not in query:
            return await original(self, query, *arguments, **options)
        before = await total(self)
        rows = await original(self, query, *arguments, **options)
        pages.append(await total(self) - before)
        return rows

    async def cost(store: PostgresStore) -> int:
        """Of the cheapest of four claims: one in a second may be from the front."""
        pages.clear()
        for _ in range(4):
            tasks = await store.claim("w", [want(20)])
            assert len(tasks) == 20
            await store.finish("w", [done(task) for task in tasks])
        return min(pages)

    async with opened(postgres_url) as store:
        user, admin = await _asyncpg.connect(postgres_url), await _asyncpg.connect(postgres_url)
        try:
            for table in ("tasks", "history", "attempts"):
                await admin.execute(f"ALTER TABLE headrace.{table} SET (autovacuum_enabled = off)")
            await _fill(admin, 22_000)
            await admin.execute("VACUUM ANALYZE headrace.tasks")
            await _drain(store, 500)
            monkeypatch.setattr(_asyncpg.Connection, "fetch", counting)
            before = await cost(store)
            await user.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            await user.fetch("SELECT count(*) FROM headrace.queues")
            await _drain(store, 20_000)
            after = await cost(store)
            assert after <= 1.5 * before, f"pages per claim: {before} before, {after} after 20,000 were drained"
        finally:
            await user.close()
            await admin.close()


async def test_looks_for_a_workers_tasks_do_not_walk_over_what_it_held_before(postgres_url: str) -> None:
    """Those that are asked for all the time: what is to be cancelled, and who is gone. An old snapshot keeps whatever
    the worker held since in the index of workers."""
    ledger = Ledger(lambda: PostgresStore(postgres_url, StoreOptions()), None)
    queries = load_queries("headrace.store.postgres.sql", "headrace")
    async with opened(postgres_url) as store:
        user, admin = await _asyncpg.connect(postgres_url), await _asyncpg.connect(postgres_url)
        try:
            await ledger.open()
            await ledger.register("w")
            await admin.execute("ALTER TABLE headrace.tasks SET (autovacuum_enabled = off)")
            await _fill(admin, 10_000)
            await user.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            await user.fetch("SELECT count(*) FROM headrace.queues")
            await _drain(store, 10_000)
            for query, *arguments in (("cancelling", "w"), ("stopped_holders", 100), ("unanswered", 1.0, 100)):
                await _pages(admin, queries[query], arguments)  # with the plans that it makes
                pages = await _pages(admin, queries[query], arguments)
                assert pages < 60, f"{query}: {pages} pages"
        finally:
            await user.close()
            await admin.close()
            await ledger.close()


async def _pages(connection: Any, query: str, arguments: list[Any]) -> int:
    rows = await connection.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}", *arguments)
    plan = json.loads(rows[0][0])[0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


@pytest.mark.parametrize("how", ["given back by another process", "retried"])
async def test_what_goes_back_below_the_mark_is_found(postgres_url: str, how: str) -> None:
    """Within a second and the claim that is then due: it keeps its place, so it lies below what was taken since."""
    async with opened(postgres_url) as store:
        other = PostgresStore(postgres_url, StoreOptions())
        await other.open()
        admin = await _asyncpg.connect(postgres_url)
        try:
            await _fill(admin, 3000)
            first = await store.claim("w", [want(10)])
            for _ in range(3):
                assert len(await store.claim("w", [want(10)])) == 10
            retried = how == "retried"
            back = [
                Settlement(
                    task=task.id, claim_no=task.claim_no, state=TaskState.PENDING, charged=retried,
                    attempt=AttemptState.FAILED if retried else None, ran_for=0.1 if retried else None,
                    lane=Lane.RETRY if retried else None,
                )
                for task in first
            ]  # fmt: skip
            assert len((await other.finish("w", back)).accepted) == 10
            missing, begin, slowest = {task.id for task in first}, time.monotonic(), 0.0
            while missing and time.monotonic() - begin < 30:
                began = time.monotonic()
                wants = [want(10), want(10, lane=Lane.RETRY)]
                missing -= {task.id for task in await store.claim("w", wants)}
                slowest = max(slowest, time.monotonic() - began)
                await asyncio.sleep(0.02)
            assert not missing
            assert time.monotonic() - begin < 1.5 + 22 * slowest
            assert await broken_rules(store) == []
        finally:
            await admin.close()
            await other.close()
