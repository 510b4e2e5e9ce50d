"""Every rule of the checker: a healthy ledger passes, and breaking the rule by hand in the database is seen."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, text

from headrace.core.accounts import NewToken, Role, Scope
from headrace.core.limits import Gate
from headrace.core.schedule import NewSchedule
from headrace.core.task import EdgeKind, Key, NewJob
from headrace.store import migrations
from headrace.store.base import Violation
from headrace.store.checker import RULES, WARNINGS, check_rows, check_sqlite, statements
from headrace.store.connect import connect, sqlite_path
from headrace.testing.store_conformance.drawing import Wait, draw, failure, node
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed,
    failed_for_good,
    ref,
    suspended,
    task,
)
from tests.migrations.shape import engine_for

LIMITED = (Gate(kind="limit", key="k", n=1),)


async def _live_a_little(url: str) -> dict[str, int]:
    """One of everything; the ids by what they are."""
    ledger = Ledger(lambda: connect(url), None)
    await ledger.open()
    try:
        await ledger.register("a")
        await ledger.store.add_user("ada", Role.USER)
        token = NewToken(user="ada", kind="api", label="", digest="d", hint="hr_abcde", scopes=(Scope.READ,))
        await ledger.store.add_token(token)
        done = await ledger.enqueue_one()
        await ledger.finish("a", failed(await ledger.claim_one()))
        await ledger.finish("a", completed(await ledger.claim_due()))
        started = await ledger.enqueue_one()
        claim = await ledger.claim_one()
        await ledger.store.start("a", [ref(claim)])
        await ledger.finish("a", completed(claim))
        broken = await ledger.enqueue_one()
        await ledger.finish("a", failed_for_good(await ledger.claim_one()))
        running = await ledger.enqueue_one(gates=LIMITED)
        claim = await ledger.claim_one()
        await ledger.store.admit("a", [claim])
        await ledger.store.start("a", [ref(claim)])
        parked = await ledger.enqueue_one(gates=LIMITED)
        await ledger.store.admit("a", await ledger.claim())
        pending = await ledger.enqueue_one(keys=(Key(scope="unique", key="u"),), delay=600)
        hook = task("hook", delay=600)
        job, _ = await ledger.store.create_job(NewJob(name="over", tasks=(task(),), on_success=hook))
        await ledger.finish("a", completed(await ledger.claim_one()))
        open_job, answers = await ledger.store.create_job(
            NewJob(name="open", tasks=(task(delay=600),), on_success=hook)
        )
        # A graph: what failed and was handled, what it closed, what it freed, what waits.
        graph = await draw(
            ledger,
            bad=node(priority=9),
            needs=node("bad"),
            handler=node(failure("bad")),
            freed=node(Wait("bad", EdgeKind.ON_DONE), delay=600.0),
            skipped=node(failure("handler")),
            waits=node("freed"),
        )
        await graph.fail("bad")
        await graph.complete("handler")
        left = await draw(ledger, gone=node(), gone_too=node("gone"))
        await left.cancel("gone")
        caller = await ledger.enqueue_one(queue="durable")
        claim = await ledger.claim_one(queue="durable")
        await ledger.store.send("e", "k", "1")
        await ledger.store.receive("a", ref(claim), "first", event="e", key="k", timeout=None)
        await ledger.store.receive("a", ref(claim), "second", event="e", key="k", timeout=None)
        await ledger.finish("a", suspended(claim, step="second"))
        await ledger.claim(queue="hooks")
        await ledger.store.put_schedules([NewSchedule(name="s", cadence="c", task=task(delay=600))])
        await ledger.store.run_schedule("s")
        assert await ledger.store.check() == []
        return {
            "done": done, "started": started, "broken": broken, "running": running, "parked": parked,
            "pending": pending, "job": job, "open_job": open_job, "in_open_job": answers[0].id,
            **graph.ids, "graph": graph.job, "left": left.job, "caller": caller,
        }  # fmt: skip
    finally:
        await ledger.close()


# By rule: what to do to a healthy ledger. Names in braces are tables, names after a colon ids of `_live_a_little`.
BREAKS: dict[str, list[str]] = {
    "live-or-done": ["UPDATE {history} SET id = :pending WHERE id = :broken"],
    "holder": [
        "UPDATE {tasks} SET worker = NULL WHERE id = :running",
        "UPDATE {tasks} SET worker = 'a' WHERE id = :pending",
        "UPDATE {tasks} SET claim_no = 0 WHERE id = :running",
    ],
    "ready-is-pending": [
        "UPDATE {tasks} SET ready_at = created_at WHERE id = :running",
        "UPDATE {tasks} SET ready_at = created_at WHERE id = :parked",
        "UPDATE {tasks} SET waiting_on = 'limit:k' WHERE id = :waits",
    ],
    "budget": [
        "UPDATE {history} SET max_attempts = 1 WHERE id = :done",
        "UPDATE {tasks} SET attempt = max_attempts WHERE id = :pending",
    ],
    "task-instants": [
        "UPDATE {history} SET finished_at = created_at, started_at = finished_at WHERE id = :done",
        "UPDATE {tasks} SET claimed_at = {epoch} WHERE id = :running",
    ],
    "order-key": ["UPDATE {tasks} SET order_key = 'o', state = 'running', worker = 'a', ready_at = NULL"],
    "attempt-of-a-task": [
        "DELETE FROM {history} WHERE id = :done",
        "UPDATE {attempts} SET claim_no = 99 WHERE task = :done AND claim_no = 1",
        "UPDATE {attempts} SET run_no = 2 WHERE task = :done",
    ],
    "charged-attempts": [
        "DELETE FROM {attempts} WHERE task = :done AND claim_no = 1",
        "UPDATE {attempts} SET attempt = 3 WHERE task = :done",
        "UPDATE {attempts} SET attempt = 3 WHERE task = :started",
        "UPDATE {attempts} SET charged = false WHERE task = :done AND claim_no = 1",
        "UPDATE {history} SET attempt = 1 WHERE id = :done",
    ],
    "one-outcome": [
        "UPDATE {attempts} SET state = 'succeeded' WHERE task = :done",
        "UPDATE {history} SET state = 'failed' WHERE id = :done",
        "UPDATE {history} SET claim_no = 7 WHERE id = :started",
        "UPDATE {attempts} SET state = 'released' WHERE task = :started",
        "DELETE FROM {attempts} WHERE task = :broken",
        "UPDATE {attempts} SET state = 'succeeded' WHERE task = :running",
    ],
    "running-attempt": [
        "UPDATE {attempts} SET state = 'running' WHERE task = :done",
        "UPDATE {tasks} SET state = 'claimed' WHERE id = :running",
        "UPDATE {tasks} SET claim_no = claim_no + 1 WHERE id = :running",
    ],
    "attempt-instants": [
        "UPDATE {attempts} SET started_at = {epoch} WHERE task = :done",
        "UPDATE {history} SET started_at = {epoch} WHERE id = :done",
    ],
    "late-reports": [
        "UPDATE {attempts} SET late_state = 'succeeded', late_at = NULL WHERE task = :done",
        "INSERT INTO {attempts} (task, claim_no, run_no, state, late_state) VALUES (:done, 2, 1, 'refused', 'failed')",
        "UPDATE {attempts} SET state = 'refused' WHERE task = :broken",
    ],
    "keys": [
        "UPDATE {keys} SET task = :done",
        "UPDATE {tasks} SET keyed = false WHERE id = :pending",
    ],
    "slots": [
        "UPDATE {slots} SET task = :done",
        "UPDATE {slots} SET claim_no = 99",
        "INSERT INTO {slots} (key, slot, task, claim_no) SELECT key, 1, task, claim_no FROM {slots}",
    ],
    "job-of-a-task": ["DELETE FROM {jobs} WHERE id = :job", "DELETE FROM {job_counts} WHERE job = :job"],
    "job-counters": [
        "UPDATE {job_counts} SET completed = 0 WHERE job = :job",
        "UPDATE {job_counts} SET total = 2 WHERE job = :job",
        "UPDATE {job_counts} SET completed = 0, failed = 1 WHERE job = :job",
        "INSERT INTO {job_additions} (id, job, n) VALUES (1, :job, 1)",
    ],
    "job-events": [
        "DELETE FROM {job_events} WHERE job = :job AND seq = 1",
        "UPDATE {job_counts} SET seq = seq + 1 WHERE job = :job",
        "UPDATE {job_events} SET completed = 0 WHERE job = :job",
        "UPDATE {jobs} SET state = 'cancelled' WHERE id = :job",
    ],
    "job-fate": [
        "UPDATE {jobs} SET state = 'running' WHERE id = :job",
        "UPDATE {jobs} SET completed_at = NULL WHERE id = :job",
        "UPDATE {jobs} SET state = 'cancelled', completed_at = created_at WHERE id = :open_job",
        "UPDATE {jobs} SET completed_at = {epoch} WHERE id = :job",
    ],
    "job-verdict": [
        "UPDATE {history} SET state = 'failed' WHERE job = :job",
        "UPDATE {history} SET state = 'cancelled' WHERE job = :job",
        "UPDATE {jobs} SET state = 'failed' WHERE id = :job",
        "UPDATE {jobs} SET state = 'completed' WHERE id = :left",
        "DELETE FROM {dependencies} WHERE upstream = :bad",
        "UPDATE {history} SET state = 'rejected' WHERE job = :job",
    ],
    "edge-of-a-task": [
        "UPDATE {dependencies} SET task = 987654321 WHERE task = :waits",
        "UPDATE {dependencies} SET upstream = task WHERE task = :waits",
        "UPDATE {barriers} SET task = 987654321 WHERE task = :waits",
        "INSERT INTO {releases} (upstream, state, after) VALUES (:freed, 'completed', 0)",
        "INSERT INTO {releases} (upstream, state, after) VALUES (:handler, 'failed', 0)",
    ],
    "barrier": [
        "UPDATE {barriers} SET remaining = 2 WHERE task = :waits",
        "UPDATE {barriers} SET remaining = 0 WHERE task = :waits",
        "DELETE FROM {barriers} WHERE task = :waits",
        "UPDATE {dependencies} SET upstream = :handler WHERE task = :waits",
    ],
    "blocked-for-ever": [
        "UPDATE {dependencies} SET upstream = :handler WHERE task = :waits",
        "UPDATE {dependencies} SET upstream = :bad WHERE task = :waits",
        "DELETE FROM {dependencies} WHERE task = :waits",
        "UPDATE {waits} SET over = true WHERE task = :caller",
        "UPDATE {waits} SET key = 'other' WHERE task = :caller",
    ],
    "freed": [
        "UPDATE {tasks} SET state = 'pending' WHERE id = :waits",
        "UPDATE {dependencies} SET kind = 0 WHERE task = :freed",
        "UPDATE {dependencies} SET kind = 0 WHERE task = :handler",
    ],
    "closed-by-an-edge": [
        "UPDATE {history} SET reason = 'skipped' WHERE id = :needs",
        "UPDATE {history} SET reason = 'upstream_failed' WHERE id = :skipped",
        "UPDATE {dependencies} SET kind = 1 WHERE task = :needs",
        "DELETE FROM {dependencies} WHERE task = :skipped",
    ],
    "waits": [
        "UPDATE {waits} SET task = 987654321 WHERE task = :caller",
        "UPDATE {waits} SET over = false WHERE step = 'first'",
        "UPDATE {waits} SET taken = (SELECT max(taken) FROM {waits}), over = true",
        "DELETE FROM {checkpoints} WHERE task = :caller",
    ],
    "checkpoint-of-a-task": ["UPDATE {checkpoints} SET task = 987654321 WHERE task = :caller"],
    "job-hooks": [
        "UPDATE {jobs} SET hooked_run = 0 WHERE id = :job",
        "UPDATE {jobs} SET hooked_run = 1 WHERE id = :open_job",
        "UPDATE {jobs} SET hooked_run = 2 WHERE id = :job",
    ],
    "run-open": ["UPDATE {schedule_runs} SET open = false"],
    "token-user": ["DELETE FROM {users}"],
    "rescue-pending": ["UPDATE {workers} SET state = 'stopped'", "DELETE FROM {workers}"],
}  # fmt: skip


@contextmanager
def _scratch(url: str) -> Iterator[Connection]:
    """A transaction in which nothing protects the rows and of which nothing stays."""
    engine = engine_for(url)
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
            connection.exec_driver_sql("BEGIN")
        else:
            connection.exec_driver_sql("ALTER TABLE headrace.tasks DROP CONSTRAINT headrace_tasks_state")
        yield connection
        connection.rollback()
    engine.dispose()


def _check(connection: Connection) -> list[Violation]:
    queries = statements(connection.dialect.name, "headrace")
    return check_rows({table: [tuple(row) for row in connection.execute(text(sql))] for table, sql in queries.items()})


def _written(statement: str, dialect: str) -> str:
    separator = "_" if dialect == "sqlite" else "."
    tables = {table: f"headrace{separator}{table}" for table in statements(dialect, "headrace")}
    epoch = "1" if dialect == "sqlite" else "timestamptz '1970-01-01 00:00:00+00'"
    return statement.format(**tables, epoch=epoch)


def test_each_rule_sees_what_breaks_it(store_url: str) -> None:
    migrations.upgrade(store_url, name="headrace")
    ids = asyncio.run(_live_a_little(store_url))
    for rule, breaks in BREAKS.items():
        for statement in breaks:
            with _scratch(store_url) as connection:
                sql = _written(statement, connection.dialect.name)
                wanted = {name: value for name, value in ids.items() if f":{name}" in sql}
                changed = connection.execute(text(sql), wanted).rowcount
                assert changed > 0, f"{rule}: {statement} changed nothing"
                found = {violation.rule for violation in _check(connection)}
            assert rule in found, f"{rule}: {statement} went unseen (found: {found})"
    with _scratch(store_url) as connection:
        assert _check(connection) == [], "a break was not rolled back"


def test_every_rule_is_broken_once() -> None:
    assert BREAKS.keys() == RULES.keys()
    assert RULES.keys() > WARNINGS


def test_a_check_leaves_an_sqlite_connection_as_it_was(sqlite_url: str) -> None:
    migrations.upgrade(sqlite_url, name="headrace")
    connection = sqlite3.connect(sqlite_path(sqlite_url))
    assert check_sqlite(connection, "headrace") == []
    assert not connection.in_transaction
    connection.execute("BEGIN")
    assert check_sqlite(connection, "headrace") == []
    assert connection.in_transaction
    connection.close()


def test_history_that_was_pruned_is_not_missing(sqlite_url: str) -> None:
    """A job's old tasks may be gone where `prune` left its note; the rest must still agree."""
    migrations.upgrade(sqlite_url, name="headrace")
    ids = asyncio.run(_live_a_little(sqlite_url))
    connection = sqlite3.connect(sqlite_path(sqlite_url))
    of_job = (ids["job"],)
    attempts = "DELETE FROM headrace_attempts WHERE task IN (SELECT id FROM headrace_history WHERE job = ?)"
    connection.execute(attempts, of_job)
    connection.execute("DELETE FROM headrace_history WHERE job = ?", of_job)
    assert {violation.rule for violation in check_sqlite(connection, "headrace")} == {"job-counters"}
    note = "INSERT INTO headrace_meta (key, value) VALUES (?, '')"
    connection.execute(note, (f"pruned job {ids['open_job']}",))
    assert {violation.rule for violation in check_sqlite(connection, "headrace")} == {"job-counters"}
    connection.execute(note, (f"pruned job {ids['job']}",))
    assert check_sqlite(connection, "headrace") == []
    connection.execute("UPDATE headrace_job_counts SET total = total + 1")
    found = {violation.rule for violation in check_sqlite(connection, "headrace")}
    assert found == {"job-counters", "job-events"}
    connection.rollback()
    connection.close()


@pytest.mark.parametrize("name", ["headrace", "billing"])
def test_the_store_checks_its_own_app(store_url: str, name: str) -> None:
    """`Store.check` reads the tables of its app alone."""
    from headrace.store.base import StoreOptions

    for app in ("headrace", "billing"):
        migrations.upgrade(store_url, name=app)

    async def work() -> list[Violation]:
        store = connect(store_url, StoreOptions(name=name))
        await store.open()
        try:
            await store.enqueue([task()])
            return await store.check()
        finally:
            await store.close()

    assert asyncio.run(work()) == []
