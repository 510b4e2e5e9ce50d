"""The plans of the hot path at a million waiting tasks, guarded by what they touch: time would measure the machine."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from headrace.core.states import TERMINAL, TaskState
from headrace.core.task import ClaimedTask, TaskFilter
from headrace.store import migrations
from headrace.store.connect import connect, sqlite_path
from headrace.store.queries import load_queries
from headrace.store.schema import build
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, ref, task
from tests.migrations.shape import engine_for
from tests.support.postgres import PrivatePostgres
from tests.support.sizes import sized

READY = sized(small=2_000, full=1_000_000)
FUTURE = DONE = READY // 5
BATCH = 100

# Every index of the live table is written by every transition; one more must be worth it.
LIVE_INDEXES = {"ready", "due", "waiting", "order", "worker", "job", "expires", "owner"}

_FILL = """
INSERT INTO {table} (id, name, kind, queue, pool, state, arguments, codec, options, priority,
                     created_at, enqueued_at, eligible_at, order_at, owner, {last})
SELECT {first} + n, 'bulk.work', 'function', 'default', 'coroutine', '{state}', '{{}}', 'json/1', '{{}}', n % 3,
       {past}, {past}, {eligible}, {eligible}, CASE WHEN n % 4 = 0 THEN 'ada' END, {value}
FROM {series}
"""


def _fill(url: str) -> None:
    """Ready tasks, others that are not due yet, and a past."""
    engine = engine_for(url)
    sqlite = engine.dialect.name == "sqlite"
    separator = "_" if sqlite else "."

    def statement(table: str, n: int, **values: object) -> str:
        series = f"generate_series(1, {n}) AS s(n)"
        if sqlite:
            series = f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {n}) SELECT n FROM s)"
        past = "1000000 + n" if sqlite else "timestamptz '2020-01-01 00:00+00' + n * interval '1 microsecond'"
        future = (
            "4000000000000000 + n" if sqlite else "timestamptz '2096-01-01 00:00+00' + n * interval '1 microsecond'"
        )
        times = {"past": past, "eligible": future if table == "tasks" and values["value"] == "NULL" else past}
        values["value"] = past if values["value"] == "past" else values["value"]
        return _FILL.format(table=f"headrace{separator}{table}", series=series, **times, **values)

    with engine.begin() as connection:
        base = 10_000_000
        connection.execute(text(statement("tasks", READY, first=base, state="pending", last="ready_at", value="past")))
        connection.execute(
            text(statement("tasks", FUTURE, first=2 * base, state="pending", last="ready_at", value="NULL"))
        )
        connection.execute(
            text(statement("history", DONE, first=3 * base, state="completed", last="finished_at", value="past"))
        )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    engine.dispose()


async def _open(url: str) -> Ledger:
    ledger = Ledger(lambda: connect(url), None)
    await ledger.open()
    return ledger


async def _claim_start_finish(ledger: Ledger) -> list[ClaimedTask]:
    """The whole hot path of plain tasks, retry and success, once."""
    claims = await ledger.claim("a", BATCH)
    await ledger.store.start("a", [ref(claim) for claim in claims])
    half = len(claims) // 2
    await ledger.finish(
        "a", *[completed(claim) for claim in claims[:half]], *[failed(claim) for claim in claims[half:]]
    )
    return claims


def test_the_live_table_has_no_more_indexes(store_url: str) -> None:
    """Counted in the database, not in the metadata."""
    migrations.upgrade(store_url, name="headrace")
    engine = engine_for(store_url)
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            sql = "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'headrace_tasks' AND sql > ''"
        else:
            sql = "SELECT indexname FROM pg_indexes WHERE schemaname = 'headrace' AND tablename = 'tasks'"
        found = set(connection.scalars(text(sql))) - {"tasks_pkey"}
    engine.dispose()
    # Only PostgreSQL keeps what is gone in an index, so only there what is to be cancelled has one of its own.
    wanted = LIVE_INDEXES if engine.dialect.name == "sqlite" else LIVE_INDEXES | {"cancelling"}
    assert found == {f"headrace_tasks_{suffix}" for suffix in wanted}


def test_what_ends_is_written_into_three_indexes(store_url: str) -> None:
    """And into partial ones only where their predicate says so: the key, and one for each way to list."""
    migrations.upgrade(store_url, name="headrace")
    engine = engine_for(store_url)
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            sql = "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'headrace_history' AND sql > ''"
            sql += " AND sql NOT LIKE '% WHERE %'"
        else:
            sql = "SELECT indexname FROM pg_indexes WHERE schemaname = 'headrace' AND tablename = 'history'"
            sql += " AND indexdef NOT LIKE '% WHERE %'"
        found = set(connection.scalars(text(sql))) - {"history_pkey"}
    engine.dispose()
    assert found == {"headrace_history_state", "headrace_history_queue_name"}


def test_no_index_of_the_live_table_has_the_state_as_a_column() -> None:
    """It may be in a predicate; as a column it would make each transition rewrite the index."""
    for dialect in ("sqlite", "postgresql"):
        table = next(t for t in build(dialect).tables.values() if t.name.removeprefix("headrace_") == "tasks")
        for index in table.indexes:
            assert "state" not in [str(expression) for expression in index.expressions], index.name


def test_a_task_without_limits_touches_neither_gates_nor_slots(store_url: str) -> None:
    """The tables are gone: whatever read or wrote them would fail."""
    migrations.upgrade(store_url, name="headrace")
    engine = engine_for(store_url)
    separator = "_" if engine.dialect.name == "sqlite" else "."
    with engine.begin() as connection:
        for table in ("gates", "slots"):
            connection.execute(text(f"DROP TABLE headrace{separator}{table}"))
    engine.dispose()

    async def work() -> int:
        ledger = await _open(store_url)
        try:
            await ledger.enqueue(*[task() for _ in range(10)])
            done = len(await _claim_start_finish(ledger))
            cancelled = await ledger.enqueue_one()
            await ledger.store.cancel([cancelled])
            return done
        finally:
            await ledger.close()

    assert asyncio.run(work()) == 10


# SQLite.


@pytest.fixture
def full_sqlite(sqlite_url: str) -> Iterator[sqlite3.Connection]:
    migrations.upgrade(sqlite_url, name="headrace")
    _fill(sqlite_url)
    connection = sqlite3.connect(sqlite_path(sqlite_url))
    yield connection
    connection.close()


def _plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    names = set(re.findall(r":([a-z_]+)", sql))
    parameters: Any = dict.fromkeys(names) if names else (None,) * sql.count("?")
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]


# In the order of the page.
_BY_OWNER = {
    "list_live_of_owner": "headrace_tasks_owner",
    "list_done_of_owner": "headrace_history_owner",
    "list_job_ids_of_owner": "headrace_jobs_owner",
    "audit_of_actor": "headrace_audit_actor",
    "audit_of_act": "headrace_audit_act",
    "audit_of_subject": "headrace_audit_subject",
}
# Looks at all of a table that grows, or sorts it.
_SCAN = re.compile(r"SCAN (headrace_)?(tasks|history|attempts|t|h|a)\b(?!.*USING.*INDEX)")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sqlite_reads_indexes_in_order(full_sqlite: sqlite3.Connection) -> None:
    queries = load_queries("headrace.store.sqlite.sql", "headrace")
    for making in [sql for sql in queries.values() if "CREATE TEMP TABLE" in sql]:
        full_sqlite.execute(making)
    plans = {query: _plan(full_sqlite, sql) for query, sql in queries.items()}

    claim = plans["claim"]
    assert any("headrace_tasks_ready" in line for line in claim), claim
    assert not any("TEMP B-TREE FOR ORDER BY" in line for line in claim), claim
    due = plans["due_tasks"]
    assert any("headrace_tasks_due" in line for line in due), due
    assert not any("TEMP B-TREE" in line for line in due), due
    for query, index in _BY_OWNER.items():
        assert any(index in line for line in plans[query]), plans[query]
        assert not any("TEMP B-TREE" in line for line in plans[query]), plans[query]
    scans = {query: [line for line in plan if _SCAN.search(line)] for query, plan in plans.items()}
    # The table is kept in the order of ids: reading it from its end until there is enough needs no other index.
    newest = plans["list_live"]
    assert scans.pop("list_live") == ["SCAN headrace_tasks"]
    assert scans.pop("live_names") == ["SCAN headrace_tasks"]  # a page too: in the same order, up to its limit
    assert not any("TEMP B-TREE" in line for line in newest), newest
    assert {query: lines for query, lines in scans.items() if lines} == {}


# PostgreSQL: the server writes the plan of every statement, also of those inside functions, to its log.

_WATCH = (
    "session_preload_libraries = 'auto_explain'",
    "auto_explain.log_min_duration = 0",
    "auto_explain.log_nested_statements = on",
    "auto_explain.log_analyze = on",
    "auto_explain.log_buffers = on",
    "auto_explain.log_timing = off",
    "auto_explain.log_format = json",
)


class PlanLog:
    """The plans that were logged since the last look."""

    def __init__(self, server: PrivatePostgres) -> None:
        self._log = server.log
        self._seen = 0
        self.take()

    def take(self) -> list[dict[str, Any]]:
        with self._log.open(errors="replace") as log:
            log.seek(self._seen)
            new = log.read()
            self._seen = log.tell()
        decoder = json.JSONDecoder()
        return [decoder.raw_decode(part.replace("\n\t", "\n").lstrip())[0] for part in new.split("plan:\n")[1:]]


def _nodes(plan: dict[str, Any], *, initial: bool = True) -> Iterator[dict[str, Any]]:
    """The nodes that ran. Without `initial` those of the node's own input, not of the CTEs that hang below it."""
    if plan.get("Actual Loops", 1) == 0:
        return
    yield plan
    for child in plan.get("Plans", ()):
        if initial or child.get("Parent Relationship") != "InitPlan":
            yield from _nodes(child, initial=initial)


def _blocks(plans: list[dict[str, Any]]) -> int:
    """Of the outermost statement, which is logged last and counts the inner ones."""
    top = plans[-1]["Plan"]
    return top["Shared Hit Blocks"] + top["Shared Read Blocks"]


def _touched(plans: list[dict[str, Any]]) -> set[str]:
    nodes = [node for plan in plans for node in _nodes(plan["Plan"]) if "Relation Name" in node]
    return {node["Relation Name"] for node in nodes if _has_worked(node)}


def _has_worked(node: dict[str, Any]) -> bool:
    """A part of a statement that found nothing to do stands in its plan, too."""
    if node["Node Type"] == "ModifyTable":
        return any(below["Actual Rows"] for below in node["Plans"])
    return node["Actual Loops"] > 0


def _check_plans(plans: list[dict[str, Any]]) -> None:
    for plan in plans:
        for node in _nodes(plan["Plan"]):
            kind, relation = node["Node Type"], node.get("Relation Name")
            assert not (kind == "Seq Scan" and relation in ("tasks", "history", "attempts")), plan["Query Text"]
            if "Sort" in kind:
                below = {n.get("Index Name") for n in _nodes(node, initial=False)}
                assert "headrace_tasks_ready" not in below, f"the backlog is sorted: {plan['Query Text']}"
                assert node["Actual Rows"] <= 10 * BATCH


def _scans(plans: list[dict[str, Any]], relation: str) -> list[dict[str, Any]]:
    """Of a table itself, or of one of its indexes."""
    scans = [node for plan in plans for node in _nodes(plan["Plan"]) if "Scan" in node["Node Type"]]
    return [n for n in scans if n.get("Relation Name") == relation or f"{relation}_" in n.get("Index Name", "")]


_ENDED = tuple(sorted(TERMINAL))
_COMPLETED = (TaskState.COMPLETED,)
_LISTS = (
    (TaskFilter(states=_ENDED, limit=BATCH), "headrace_history_state"),
    (TaskFilter(states=_COMPLETED, limit=BATCH), "headrace_history_state"),
    (TaskFilter(states=_ENDED, queues=("default",), limit=BATCH), "headrace_history_queue_name"),
    (TaskFilter(states=_ENDED, names=("bulk.work",), limit=BATCH), "headrace_history_queue_name"),
    (
        TaskFilter(states=_COMPLETED, queues=("default",), names=("bulk.work",), limit=BATCH),
        "headrace_history_queue_name",
    ),
    (TaskFilter(states=_ENDED, queues=("rare",), limit=BATCH), "headrace_history_queue_name"),
    (TaskFilter(states=_ENDED, names=("rare",), limit=BATCH), "headrace_history_queue_name"),
    (TaskFilter(states=_ENDED, owner="ada", limit=BATCH), "headrace_history_owner"),
    (TaskFilter(states=_COMPLETED, owner="ada", queues=("default",), limit=BATCH), "headrace_history_owner"),
    (TaskFilter(states=_ENDED, owner="rare", limit=BATCH), "headrace_history_owner"),
)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_postgres_touches_little(postgres_url: str, private_postgres: PrivatePostgres) -> None:
    migrations.upgrade(postgres_url, name="headrace")
    _fill(postgres_url)
    database = postgres_url.rsplit("/", 1)[1]
    with private_postgres.connect() as connection:
        for setting in _WATCH:
            connection.execute(f"ALTER DATABASE {database} SET {setting}".encode())
    log = PlanLog(private_postgres)

    async def work() -> None:
        ledger = await _open(postgres_url)
        try:
            log.take()
            claims = await ledger.claim("a", BATCH)
            plans = log.take()
            assert len(claims) == BATCH
            _check_plans(plans)
            used = {n.get("Index Name") for plan in plans for n in _nodes(plan["Plan"])}
            assert "headrace_tasks_ready" in used
            assert not _touched(plans) & {"gates", "slots", "keys", "history", "job_counts", "attempts"}
            assert _blocks(plans) < 60 * BATCH, "a claim costs blocks per task, not per backlog"

            await ledger.store.start("a", [ref(claim) for claim in claims])
            _check_plans(log.take())

            half = BATCH // 2
            await ledger.finish("a", *[completed(c) for c in claims[:half]], *[failed(c) for c in claims[half:]])
            plans = log.take()
            _check_plans(plans)
            assert not _touched(plans) & {"gates", "slots", "keys", "jobs", "job_counts", "job_additions"}
            reads = _scans(plans, "history")
            assert all(n.get("Index Name") == "history_pkey" for n in reads), reads
            assert _blocks(plans) < 120 * BATCH

            for criteria, index in _LISTS:
                found = await ledger.store.list(criteria)
                plans = log.take()
                assert len(found) == (0 if "rare" in (*criteria.queues, *criteria.names, criteria.owner) else BATCH)
                _check_plans(plans)
                scanned = {n.get("Index Name", n["Node Type"]) for n in _scans(plans, "history")}
                assert scanned - {"history_pkey"} == {index}, criteria
                assert _blocks(plans) < 20 * BATCH, f"{criteria} costs blocks per row of the page, not per history"

            found = await ledger.store.list(TaskFilter(states=(TaskState.PENDING,), owner="rare", limit=BATCH))
            plans = log.take()
            assert found == []
            scanned = {n.get("Index Name", n["Node Type"]) for n in _scans(plans, "tasks")}
            assert scanned == {"headrace_tasks_owner"}
            assert _blocks(plans) < 100, "whoever has nothing costs nothing, whatever the others have"

            assert (await ledger.store.prune(keep=0, limit=BATCH)).tasks == BATCH
            plans = [plan for plan in log.take() if "some of its tasks" in plan["Query Text"]]
            assert len(plans) == 1
            assert {n.get("Index Name", n["Node Type"]) for n in _scans(plans, "history")} == {
                "headrace_history_state",
                "history_pkey",
            }
            assert _blocks(plans) < 60 * BATCH

            nothing = await ledger.claim("a", BATCH, queue="empty")
            plans = log.take()
            assert nothing == []
            assert _blocks(plans) < 100, "asking an empty queue looks at the index, not at the backlog"
        finally:
            await ledger.close()

    asyncio.run(work())
