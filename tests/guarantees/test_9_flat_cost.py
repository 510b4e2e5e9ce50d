"""Promise 9: cost does not grow with history. Claim, finish and count cost the same with many finished rows or none.

Time is noise on a busy machine, so work is counted: on PostgreSQL the buffers that the database touched, on SQLite the
instructions of its virtual machine, whatever statements the store chooses to send.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from headrace.store.base import Store
from headrace.store.connect import connect, sqlite_path
from headrace.testing.store_conformance.ledger import completed
from tests.guarantees.ledgers import a_worker, claim, enqueue, prepare
from tests.support.postgres import PostgresServer
from tests.support.sizes import sized

FINISHED = sized(small=20_000, full=1_000_000)
PENDING = sized(small=5_000, full=1_000_000)
ROUNDS = 30
BATCH = 10
# A finished task goes into the indexes of history, each of which is a level deeper when it is a hundred times larger.
FLAT = {"claim": 1.2, "idle": 1.2, "look": 1.2, "claim and finish": 1.4}

type Act = Callable[[Store, str], Awaitable[None]]


async def _claims(store: Store, worker: str) -> None:
    """Claim, each time a batch, and give nothing back."""
    for _ in range(ROUNDS):
        assert len(await claim(store, worker, BATCH)) == BATCH


async def _cycles(store: Store, worker: str) -> None:
    """Claim and finish."""
    for _ in range(ROUNDS):
        tasks = await claim(store, worker, BATCH)
        assert len(tasks) == BATCH
        report = await store.finish(worker, [completed(task) for task in tasks])
        assert len(report.accepted) == BATCH


async def _empty_claims(store: Store, worker: str) -> None:
    """What an idle worker does all day."""
    for _ in range(ROUNDS):
        assert await claim(store, worker, BATCH, queue="nothing-here") == []


async def _looks(store: Store, worker: str) -> None:
    """The counts that services and lists need."""
    for _ in range(ROUNDS):
        await store.queues()
        await store.retry_depth("default")
        await store.dead_letter_depth()
        await store.promote()


async def _nothing(store: Store, worker: str) -> None:
    """The cost of opening, registering and closing, which is taken off."""


ACTS: dict[str, Act] = {"claim": _claims, "claim and finish": _cycles, "idle": _empty_claims, "look": _looks}


async def _perform(url: str, act: Act) -> None:
    store = connect(url)
    await store.open()
    try:
        await act(store, await a_worker(store))
    finally:
        await store.close()


async def _seed(url: str) -> None:
    """A ledger as it is on the first day: one task that ended, and enough to do for every act."""
    prepare(url, guarded=False)
    store = connect(url)
    await store.open()
    try:
        worker = await a_worker(store)
        await enqueue(store)
        (found,) = await claim(store, worker)
        await store.finish(worker, [completed(found)])
        await enqueue(store, 8 * ROUNDS * BATCH)
    finally:
        await store.close()


def _add_years(url: str, *, finished: int, pending: int, first: int) -> None:
    """Copies of the rows that are there: what counts is how many there are."""
    if url.startswith("postgresql"):
        _add_to_postgres(url, finished, pending, first)
    else:
        _add_to_sqlite(url, finished, pending, first)


def _add_to_postgres(url: str, finished: int, pending: int, first: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:

        def ask(sql: str) -> list[Any]:
            return [row[0] for row in connection.execute(sql)]  # pyright: ignore[reportArgumentType]

        def copy(table: str, key: str, row: int, count: int, **changed: str) -> None:
            columns = ask(
                "SELECT column_name FROM information_schema.columns"
                f" WHERE table_schema = 'headrace' AND table_name = '{table}'"
            )
            values = [f"{first} + i" if name == key else changed.get(name, name) for name in columns]
            connection.execute(  # pyright: ignore[reportCallIssue]
                f"INSERT INTO headrace.{table} ({', '.join(columns)}) SELECT {', '.join(values)}"  # pyright: ignore[reportArgumentType]
                f" FROM headrace.{table}, generate_series(1, {count}) AS i WHERE {key} = {row}"
            )

        (done,) = ask("SELECT min(id) FROM headrace.history")
        (ready,) = ask("SELECT max(id) FROM headrace.tasks")
        for table in ("tasks", "history", "attempts"):
            # A vacuum in the middle of a measurement would be counted.
            connection.execute(f"ALTER TABLE headrace.{table} SET (autovacuum_enabled = off)")  # pyright: ignore[reportArgumentType]
        copy("history", "id", done, finished, finished_at="finished_at - i * interval '1 ms'")
        copy("attempts", "task", done, finished)
        copy("tasks", "id", ready, pending, order_at="order_at + i * interval '1 us'")
        connection.execute("VACUUM ANALYZE")


def _add_to_sqlite(url: str, finished: int, pending: int, first: int) -> None:
    with closing(sqlite3.connect(sqlite_path(url), isolation_level=None)) as connection:

        def copy(table: str, key: str, row: int, count: int, **changed: str) -> None:
            columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
            values = [f"{first} + i" if name == key else changed.get(name, name) for name in columns]
            connection.execute(
                f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
                f" INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)}"
                f" FROM {table}, n WHERE {key} = {row}"
            )

        connection.execute("BEGIN IMMEDIATE")
        (done,) = connection.execute("SELECT min(id) FROM headrace_history").fetchone()
        (ready,) = connection.execute("SELECT max(id) FROM headrace_tasks").fetchone()
        copy("headrace_history", "id", done, finished, finished_at="finished_at - i * 1000")
        copy("headrace_attempts", "task", done, finished)
        copy("headrace_tasks", "id", ready, pending, order_at="order_at + i")
        connection.execute("COMMIT")


# --- counting ---------------------------------------------------------------------------------------------------------


class _Buffers:
    """Buffers touched in one database, as PostgreSQL's own statistics say after the connections have ended."""

    def __init__(self, server: PostgresServer, url: str) -> None:
        self._server = server
        self._database = url.rsplit("/", 1)[1]

    def __call__(self, url: str, act: Act) -> int:
        before = self._total()
        asyncio.run(_perform(url, act))
        return self._total() - before

    def _total(self) -> int:
        """Asked from another database, so that the question is not counted."""
        with self._server.connect() as connection:
            busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
            for _ in range(2000):
                found = connection.execute(busy, (self._database,)).fetchone()
                if found == (0,):
                    break
            else:
                raise AssertionError("connections to the database did not end")
            total = connection.execute(
                "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = %s", (self._database,)
            ).fetchone()
        assert total is not None
        return int(total[0])


class _Instructions:
    """Steps of SQLite's virtual machine, in hundreds, on every connection that the store opens."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, url: str, act: Act) -> int:
        before = self.count
        asyncio.run(_perform(url, act))
        return self.count - before

    def step(self) -> int:
        self.count += 1
        return 0


@pytest.fixture
def instructions(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Instructions]:
    counter = _Instructions()
    original = sqlite3.connect

    def counting(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = original(*arguments, **options)
        connection.set_progress_handler(counter.step, 10)
        return connection

    monkeypatch.setattr(sqlite3, "connect", counting)
    return counter


def _costs(url: str, measure: Callable[[str, Act], int]) -> dict[str, float]:
    """Of one round of each act, without what opening and closing cost."""
    asyncio.run(_perform(url, _nothing))  # the first connection fills caches
    idle = min(measure(url, _nothing) for _ in range(2))
    return {name: (measure(url, act) - idle) / ROUNDS for name, act in ACTS.items()}


def _compare(before: dict[str, float], after: dict[str, float], why: str) -> None:
    figures = {name: (round(before[name], 1), round(cost, 1)) for name, cost in after.items()}
    print(why, figures)
    grown = {name: pair for name, pair in figures.items() if pair[1] > pair[0] * FLAT[name]}
    assert grown == {}, f"per round of {BATCH}, {why}: {grown}"


def _prove(url: str, measure: Callable[[str, Act], int], unit: str) -> None:
    asyncio.run(_seed(url))
    _add_years(url, finished=100, pending=1, first=10_000_000)
    young = _costs(url, measure)
    assert sum(young.values()) > 100, "nothing was counted"
    _add_years(url, finished=FINISHED, pending=1, first=20_000_000)
    old = _costs(url, measure)
    _compare(young, old, f"{unit} after {FINISHED} finished tasks")
    _add_years(url, finished=1, pending=PENDING, first=50_000_000)
    busy = _costs(url, measure)
    # To look at a backlog costs what it is long; to take from it does not.
    _compare(old, {name: cost for name, cost in busy.items() if name != "look"}, f"{unit} with {PENDING} pending")


@pytest.mark.chaos
@pytest.mark.timeout(400)
def test_claim_finish_and_count_cost_the_same_with_a_long_history_on_postgres(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    """Buffers per claim, per idle claim and per look at the queues, with hardly a history and with a long one, and
    with a long backlog: at most a fifth more. A finish pays one more level of each index of history.
    """
    _prove(postgres_url, _Buffers(postgres_server, postgres_url), "buffers")


@pytest.mark.chaos
@pytest.mark.timeout(400)
def test_claim_finish_and_count_cost_the_same_with_a_long_history_on_sqlite(
    sqlite_url: str, instructions: _Instructions
) -> None:
    """The same in instructions of SQLite's virtual machine."""
    _prove(sqlite_url, instructions, "tens of instructions")
