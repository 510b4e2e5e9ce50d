"""Lists of ended tasks, put together from a probe per state, or per queue, name and state: the same rows in the same
order as a sort of everything, page by page, at a cost that knows nothing of what does not match."""

import asyncio
import itertools
import random
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text

from headrace.core.states import TERMINAL, TaskState
from headrace.core.task import TaskFilter, TaskRecord
from headrace.store.base import Store
from headrace.store.connect import connect, sqlite_path
from headrace.store.instants import to_micros
from headrace.store.sqlite.listing import list_ids
from tests.migrations.shape import engine_for
from tests.store.test_postgres_plans import buffers

START = datetime(2026, 1, 1, tzinfo=UTC)
QUEUES = ("a", "a-b", "b", "Übung", "z")
NAMES = ("send", "send.all", "Send", "fetch", "größe")
STATES = tuple(sorted(TERMINAL))

_INSERT = """
INSERT INTO {table} (id, name, kind, queue, pool, state, worker, dead_letter, arguments, codec, options, created_at,
                     enqueued_at, eligible_at, order_at, finished_at)
VALUES (:id, :name, 'function', :queue, 'coroutine', :state, :worker, :dead_letter, '{{}}', 'json/1', '{{}}', :at, :at,
        :at, :at, :at)
"""

type Row = dict[str, Any]


def _past(n: int) -> list[Row]:
    """Many end at the same instant; the ids do not rise with the ends."""
    rng = random.Random(7)
    return [
        {
            "id": id,
            "queue": rng.choice(QUEUES),
            "name": rng.choice(NAMES),
            "state": rng.choices(STATES, weights=(5, 20, 3, 2))[0].value,
            "worker": rng.choice(("w1", "w2")),
            "dead_letter": rng.random() < 0.5,
            "at": START + timedelta(seconds=rng.randrange(n // 10)),
        }
        for id in rng.sample(range(1, 10 * n), n)
    ]


def _write(url: str, rows: list[Row]) -> None:
    engine = engine_for(url)
    sqlite = engine.dialect.name == "sqlite"
    table = "headrace_history" if sqlite else "headrace.history"
    with engine.begin() as connection:
        values = [row | {"at": to_micros(row["at"])} for row in rows] if sqlite else rows
        connection.execute(text(_INSERT.format(table=table)), values)
    engine.dispose()


def _criteria() -> Iterator[TaskFilter]:
    states = ((), (TaskState.COMPLETED,), (TaskState.FAILED, TaskState.REJECTED, TaskState.FAILED))
    queues = ((), ("a",), ("b", "Übung", "b"), ("nowhere",), ("z", "nowhere"))
    names = ((), ("send",), ("Send", "größe", "send.all", "Send"), ("nothing",))
    for some_states, some_queues, some_names in itertools.product(states, queues, names):
        yield TaskFilter(states=some_states, queues=some_queues, names=some_names)
    for some_queues, some_names in (((), ()), (("a",), ()), ((), ("send",))):
        yield TaskFilter(queues=some_queues, names=some_names, worker="w1")
        yield TaskFilter(queues=some_queues, names=some_names, dead_letter=False)
        yield TaskFilter(queues=some_queues, names=some_names, dead_letter=True)


def _expected(rows: list[Row], criteria: TaskFilter) -> list[int]:
    def matches(row: Row) -> bool:
        dead = row["dead_letter"] and row["state"] == "failed"
        return (
            (not criteria.states or row["state"] in criteria.states)
            and (not criteria.queues or row["queue"] in criteria.queues)
            and (not criteria.names or row["name"] in criteria.names)
            and criteria.worker in (None, row["worker"])
            and criteria.dead_letter in (None, dead)
        )

    return [row["id"] for row in sorted(rows, key=lambda row: (row["at"], row["id"]), reverse=True) if matches(row)]


async def _all_pages(store: Store, criteria: TaskFilter, limit: int) -> list[int]:
    seen: list[int] = []
    before = None
    while True:
        page: list[TaskRecord] = await store.list(
            TaskFilter(
                states=criteria.states, queues=criteria.queues, names=criteria.names, worker=criteria.worker,
                dead_letter=criteria.dead_letter, limit=limit, before=before,
            )
        )  # fmt: skip
        seen += [record.id for record in page]
        if len(page) < limit:
            return seen
        last = page[-1]
        assert last.finished_at is not None
        before = last.finished_at, last.id


@pytest.mark.timeout(300)
def test_pages_of_every_filter_are_a_sort_of_all_that_match(store_url: str) -> None:
    rows = _past(300)
    _write(store_url, rows)

    async def compare() -> None:
        store = connect(store_url)
        await store.open()
        try:
            for criteria in _criteria():
                expected = _expected(rows, criteria)
                for limit in (17, 300):
                    assert await _all_pages(store, criteria, limit) == expected, (criteria, limit)
        finally:
            await store.close()

    asyncio.run(compare())


def test_retention_takes_the_oldest_of_all_states_first(store_url: str) -> None:
    rows = _past(60)
    _write(store_url, rows)
    oldest_first = _expected(rows, TaskFilter())[::-1]
    ends = {row["id"]: row["at"] for row in rows}

    async def prune() -> None:
        store = connect(store_url)
        await store.open()
        try:
            for n in (10, 20, 30):
                assert (await store.prune(keep=0, limit=10)).tasks == 10
                left = {record.id for record in await store.list(TaskFilter(limit=100))}
                assert len(left) == len(rows) - n
                gone = ends.keys() - left
                # Those that ended at one instant may go in any order.
                assert sorted(ends[id] for id in gone) == [ends[id] for id in oldest_first[:n]]
        finally:
            await store.close()

    asyncio.run(prune())


# One rare name, older than all the rest, in the queue of the common ones; and one alone in its queue.
_RARE = [
    {"id": 1, "queue": "default", "name": "rare", "state": "completed", "worker": None, "dead_letter": False},
    {"id": 2, "queue": "rare", "name": "work", "state": "failed", "worker": None, "dead_letter": False},
]
_LONG = 30_000
_ASKED: dict[str, TaskFilter] = {
    "all": TaskFilter(states=STATES),
    "a state": TaskFilter(states=(TaskState.COMPLETED,)),
    "a rare state": TaskFilter(states=(TaskState.FAILED,)),
    "a state that nothing has": TaskFilter(states=(TaskState.REJECTED,)),
    "a queue": TaskFilter(states=STATES, queues=("default",)),
    "a rare queue": TaskFilter(states=STATES, queues=("rare",)),
    "a name": TaskFilter(states=STATES, names=("work",)),
    "a rare name": TaskFilter(states=STATES, names=("rare",)),
    "a name that nothing has": TaskFilter(states=STATES, names=("nothing",)),
    "a queue and a name": TaskFilter(states=STATES, queues=("default",), names=("rare",)),
    "a queue, a name and a state": TaskFilter(states=(TaskState.FAILED,), queues=("default",), names=("work",)),
    "a late page": TaskFilter(states=STATES, before=(START + timedelta(seconds=1), 0)),
    "a late page of a queue": TaskFilter(states=STATES, queues=("default",), before=(START + timedelta(seconds=1), 0)),
}


async def test_a_list_costs_the_same_behind_any_history_on_postgres(postgres_url: str) -> None:
    """In pages touched, also with statistics that were made before there was a history."""
    _write(postgres_url, [row | {"at": START} for row in _RARE])
    store = connect(postgres_url)
    await store.open()
    connection = await asyncpg.connect(postgres_url)

    async def costs() -> dict[str, int]:
        found: dict[str, int] = {}
        for asked, criteria in _ASKED.items():
            before_at, before_id = criteria.before or (None, None)
            found[asked] = await buffers(
                connection,
                "SELECT * FROM headrace.history WHERE id = ANY (ARRAY(SELECT headrace.list_ended_v1("
                "$1, $2, $3, NULL, NULL, $4, $5, 10)))",
                [state.value for state in criteria.states],
                criteria.queues,
                criteria.names,
                before_at,
                before_id,
            )
        return found

    try:
        await connection.execute("ANALYZE headrace.history")
        few = [await costs() for _ in range(2)][-1]
        await connection.execute(
            """INSERT INTO headrace.history (id, name, kind, queue, pool, state, arguments, codec, options, created_at,
                                             enqueued_at, eligible_at, order_at, finished_at)
               SELECT 100 + n, 'work', 'function', 'default', 'coroutine', 'completed', '{}', 'json/1', '{}',
                      t, t, t, t, t
               FROM generate_series(1, $1::integer) AS n,
                    LATERAL (SELECT $2::timestamptz + n * interval '1 s') AS s(t)""",
            _LONG,
            START,
        )
        for statistics in ("VACUUM headrace.history", "VACUUM ANALYZE headrace.history"):
            many = [await costs() for _ in range(2)][-1]
            assert {a: n for a, n in many.items() if n > few[a] + 80} == {}, (few, many)
            await connection.execute(statistics)
        many = [await costs() for _ in range(2)][-1]
        assert {a: n for a, n in many.items() if n > few[a] + 80} == {}, (few, many)
        [rare] = await store.list(TaskFilter(states=STATES, names=("rare",)))
        assert rare.id == 1
    finally:
        await connection.close()
        await store.close()


def test_a_list_costs_the_same_behind_any_history_on_sqlite(sqlite_url: str) -> None:
    """In steps of SQLite's machine, also after ANALYZE."""
    _write(sqlite_url, [row | {"at": START} for row in _RARE])

    async def costs() -> dict[str, int]:
        store = connect(sqlite_url)
        await store.open()
        found: dict[str, int] = {}
        try:
            for asked, criteria in _ASKED.items():
                found[asked] = await _steps(store, criteria)
        finally:
            await store.close()
        return found

    few = asyncio.run(costs())
    connection = sqlite3.connect(sqlite_path(sqlite_url))
    with connection:
        connection.execute(
            """WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < :n)
               INSERT INTO headrace_history (id, name, kind, queue, pool, state, arguments, codec, options, created_at,
                                             enqueued_at, eligible_at, order_at, finished_at)
               SELECT 100 + n, 'work', 'function', 'default', 'coroutine', 'completed', '{}', 'json/1', '{}',
                      t, t, t, t, t
               FROM (SELECT n, :start + n * 1000000 AS t FROM s)""",
            {"n": _LONG, "start": to_micros(START)},
        )
    many = asyncio.run(costs())
    connection.execute("ANALYZE")
    connection.commit()
    connection.close()
    analysed = asyncio.run(costs())
    for found in (many, analysed):
        assert {a: n for a, n in found.items() if n > few[a] + 20} == {}, (few, found)


async def _steps(store: Any, criteria: TaskFilter) -> int:
    """Hundreds of instructions that a page of ten takes."""

    def count(transaction: Any) -> int:
        steps = 0

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        transaction.connection.set_progress_handler(step, 100)
        try:
            list_ids(transaction, TaskFilter(
                states=criteria.states, queues=criteria.queues, names=criteria.names, before=criteria.before, limit=10,
            ))  # fmt: skip
        finally:
            transaction.connection.set_progress_handler(None, 100)
        return steps

    return await store.database.read(count)
