"""`headrace db move` from one store to the other: every table arrives as it was, once, in whatever state it was left.

The ledgers are made by the verbs that users' programs and workers call, and looked at with plain drivers.
"""

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from headrace.core.accounts import NewAudit, NewToken, Role, Scope
from headrace.core.errors import MoveError, SchemaError
from headrace.core.lanes import Lane
from headrace.core.limits import Gate
from headrace.core.schedule import Fire, Firing, NewSchedule
from headrace.core.subscription import NewSubscription
from headrace.core.task import After, Key, NewJob, NewTask, TaskFilter, Want
from headrace.scheduling.cadence import cadence_to_json
from headrace.scheduling.interval import Every
from headrace.store import migrations
from headrace.store.base import RELEASED_AT_ONCE, Store
from headrace.store.checker import WARNINGS
from headrace.store.connect import sqlite_path
from headrace.store.instants import FIRST_POSTGRES_ID
from headrace.store.moving.mover import Mover
from headrace.store.moving.opening import opened, shown_target, without_password
from headrace.store.moving.parcels import check
from headrace.store.moving.tables import OF_JOB, OF_TASK, STAYING, alone, layouts
from headrace.store.sqlite.store import SQLiteStore
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed,
    failed_for_good,
    ref,
    released,
    suspended,
    task,
)
from tests.support.moving import ledger_of, moved, mover_of
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually


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


def schedule(name: str, **options: Any) -> NewSchedule:
    cadence = cadence_to_json(Every(timedelta(seconds=1), anchor=datetime(2026, 1, 1, tzinfo=UTC)))
    return NewSchedule(name=name, cadence=cadence, task=task("scheduled", queue="scheduled"), **options)


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
        NewJob(name="over", tasks=(task(), task(critical=False)), metadata='{"k":1}', owner="ada")
    )
    for claim in await ledger.claim("a"):
        await store.append_logs([(ref(claim), 0, "stdout", "of a job")])
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
    await store.put_schedules([schedule("nightly", overlap="queue"), schedule("rests", paused=True, jitter=1.5)])
    run = await store.run_schedule("nightly")
    assert run.task is not None
    await store.cancel([run.task])
    await store.count_outcomes([("a", "default", "conformance.work", "completed", 4)])
    await store.keep_depths({"": {"primary": 4}, "default": {"primary": 4}}, kept=3600.0)
    await store.pause("mail")
    # What waits for others, for one that is being released to many, and for an event.
    many = [task("leaf", queue="graph", after=(After(task=0, local=True),)) for _ in range(RELEASED_AT_ONCE + 1)]
    ids["graph"], _ = await store.create_job(NewJob(name="graph", tasks=[task("root", queue="graph"), *many]))
    await ledger.finish("a", completed(await ledger.claim_one("a", queue="graph")))
    ids["waiting"] = await ledger.enqueue_one(queue="events")
    claim = await ledger.claim_one("a", queue="events")
    await store.receive("a", ref(claim), "paid", event="payment", key="7", timeout=None)
    await ledger.finish("a", suspended(claim, step="paid"))
    await store.send("payment", "8", '{"euros":3}')
    # Who may do what, and who did; what stands for a service; who is told of an event.
    await store.add_user("ada", Role.ADMIN, password="$argon2id$1")
    await store.login_failed("ada", most=5, lock=60.0)
    token = NewToken(user="ada", kind="api", label="ci", digest="d1", hint="hr_abcde", scopes=(Scope.READ,), ttl=3600.0)
    await store.touch_tokens([(await store.add_token(token)).id])
    await store.close_audit(
        await store.write_audit([NewAudit(actor="ada", act="tasks.retry", subject="task/1")]), "done"
    )
    await store.open_breaker("mail", by="w", timeout=60.0, calls=10, failures=9)
    with contextlib.closing(sqlite3.connect(sqlite_path(store.url), timeout=30)) as connection, connection:
        connection.execute(
            "INSERT INTO headrace_subscriptions (name, event, task, changed_at) VALUES ('s', 'paid', '{}', 1)"
        )
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
    waiting_on, state = layouts()["tasks"].place("waiting_on"), layouts()["tasks"].place("state")
    for table, rows in after.items():
        expected = before[table]
        if table == "tasks":  # who waited for a gate looks again
            looks = (
                [*row[:waiting_on], None, *row[waiting_on + 1 :]] if row[state] == "pending" else row
                for row in expected
            )
            expected = sorted(looks, key=repr)
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
        assert (await there.job(ids["over"])).owner == "ada"
        assert [job.id for job in await there.store.list_jobs(owner="ada")] == [ids["over"]]
        found = await there.store.find_token("d1")
        assert found is not None
        assert (found.user.name, found.user.failed_logins, found.token.scopes) == ("ada", 1, (Scope.READ,))
        assert [(entry.act, entry.outcome) for entry in await there.store.audit()] == [("tasks.retry", "done")]
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


@pytest.mark.postgres
async def test_what_the_source_says_of_a_user_stands(sqlite_url: str, postgres_url: str):
    """Whoever starts a server on the target before the move makes its first admin there."""
    token = NewToken(user="root", kind="api", label="", digest="d0", hint="hr_abcde", scopes=tuple(Scope))
    async with ledger_of(postgres_url) as there:
        assert await there.store.add_first_admin("root", token) is not None
    async with ledger_of(sqlite_url) as here:
        await here.store.add_user("ada", Role.ADMIN)
        await here.store.add_user("root", Role.USER, password="$argon2id$1")
        await here.store.change_user("root", disabled=True)
        before = await here.store.users()
    received = await moved(sqlite_url, postgres_url)
    assert received.merged == {"users": 1}
    async with ledger_of(postgres_url) as there:
        assert await there.store.users() == before
        assert await there.store.find_token("d0") is None
        assert await there.store.check() == []


def test_every_table_of_the_schema_has_a_way_to_go():
    """Where a table is added it goes row by row, unless it says otherwise here."""
    by_themselves = {layout.table for layout in alone()}
    assert {"queues", "workers", "outcomes", "gates"} <= by_themselves
    known = by_themselves | {*OF_TASK, *OF_JOB, *STAYING, "tasks", "history", "jobs"}
    assert known == {*layouts(), "ids"}
    assert not by_themselves & {*OF_TASK, *OF_JOB, *STAYING, "tasks", "history", "jobs"}


# While it is used.


@asynccontextmanager
async def following(sqlite_url: str, postgres_url: str) -> AsyncIterator[Mover]:
    """A mover that goes on in the background."""
    async with mover_of(sqlite_url, postgres_url, follow=True, until_idle=False) as mover:
        work = asyncio.create_task(mover.run())
        try:
            yield mover
            assert not work.done(), work
        finally:
            work.cancel()
            await asyncio.wait([work])


async def until_there(ledger: Ledger, *ids: int) -> None:
    async def there() -> bool:
        return len(await ledger.store.get(ids)) == len(ids)

    await eventually(there, message=f"{ids} are there")


@pytest.mark.postgres
async def test_after_the_flip_nobody_claims_and_what_is_held_ends(sqlite_url: str, postgres_url: str):
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        await here.register("a")
        ids = await here.enqueue(*(task() for _ in range(4)))
        ending, retrying, given_back = await here.claim("a", 3, lanes=[Lane.PRIMARY])
        async with following(sqlite_url, postgres_url):
            await until_there(there, ids[3])
            assert await here.claim("a") == []
            assert [await there.store.get([claim.id]) for claim in (ending, retrying, given_back)] == [{}, {}, {}]
            report = await here.store.finish(
                "a",
                [completed(ending), failed(retrying), released(given_back)],
                wants=[Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=10)],
            )
            assert (len(report.accepted), report.claimed) == (3, ())
            landed = await here.enqueue_one()
            await until_there(there, *ids, landed)
        assert [await there.state(id) for id in ids] == ["completed", "pending", "pending", "pending"]
        (tried,) = await there.attempts(retrying.id)
        assert (tried.state, tried.charged) == ("failed", True)
        await there.register("b")
        claims = {claim.id: claim for claim in await there.claim("b")}
        assert claims.keys() == {*ids[1:], landed}
        assert claims[retrying.id].claim_no == retrying.claim_no + 1, "the fence goes on where it was"
        assert await there.store.check() == await here.store.check() == []


@pytest.mark.postgres
async def test_a_job_goes_whole_once_nobody_holds_a_task_of_it(sqlite_url: str, postgres_url: str):
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        await here.register("a")
        job, tasks = await here.store.create_job(NewJob(name="j", tasks=(task(), task(critical=False), task())))
        claims = await here.claim("a", 2, lanes=[Lane.PRIMARY])
        alone_id = await here.enqueue_one()
        async with following(sqlite_url, postgres_url):
            await until_there(there, alone_id)
            await here.finish("a", failed_for_good(claims[1]))
            assert await there.store.get([answer.id for answer in tasks]) == {}
            assert (await here.job(job)).state == "running"
            late = in_a_users_transaction(here.store, [task(job=job)])
            await here.finish("a", completed(claims[0]))
            await until_there(there, *(answer.id for answer in (*tasks, *late)))
        found = await there.job(job)
        assert (found.state, found.total, found.completed, found.failed) == ("running", 4, 1, 1)
        assert await here.store.get_job(job) is None
        await there.register("b")
        for claim in await there.claim("b"):
            await there.finish("b", completed(claim))
        assert (await there.job(job)).state == "completed"
        assert await there.store.check() == await here.store.check() == []


@pytest.mark.postgres
async def test_a_subscriber_whose_key_has_moved_keeps_no_task_and_no_job_from_ending(
    sqlite_url: str, postgres_url: str
):
    """Nobody can ask the other database in the transaction of the end: the subscriber goes without its key."""
    key = (Key(scope="unique", key="k"),)
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        await here.register("a")
        job, _ = await here.store.create_job(NewJob(name="j", tasks=(task(),)))
        (claim,) = await here.claim("a")
        holder = await here.enqueue_one(keys=key)
        async with following(sqlite_url, postgres_url):
            await until_there(there, holder)
        # By a program that goes on with the old URL.
        await here.store.declare_subscriptions(
            "app",
            [
                NewSubscription(name=f"{event}@{name}", event=event, task=task(name, queue=event, keys=keys))
                for event in ("task.failed", "job.failed", "paid")
                for name, keys in (("keyed", key), ("plain", ()))
            ],
        )
        report = await here.store.finish("a", [failed_for_good(claim)])
        assert len(report.accepted) == 1
        await here.store.send("paid", "k", "1")
        assert (await here.job(job)).state == "failed"
        for event in ("task.failed", "job.failed", "paid"):
            found = await here.store.list(TaskFilter(queues=(event,)))
            assert sorted(record.name for record in found) == ["keyed", "plain"], event


@pytest.mark.postgres
async def test_a_users_transaction_that_was_open_while_its_job_went(sqlite_url: str, postgres_url: str):
    """The addition finds its job at the other end."""
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        job, _ = await here.store.create_job(NewJob(name="j", tasks=(task(),)))
        program = here.store.enqueue_program([task(job=job)])
        connection = sqlite3.connect(sqlite_path(sqlite_url), timeout=30)
        looked = next(program)  # at the job, before its first write
        rows = connection.execute(looked.sql, looked.parameters).fetchall()
        await moved(sqlite_url, postgres_url)
        answers: Any = None
        try:
            statement = program.send(rows)
            while True:
                statement = program.send(connection.execute(statement.sql, statement.parameters).fetchall())
        except StopIteration as end:
            answers = end.value
        connection.commit()
        connection.close()
        await moved(sqlite_url, postgres_url)
        assert (await there.get(answers[0].id)).job == job
        assert (await there.job(job)).total == 2
        await there.register("b")
        for claim in await there.claim("b"):
            await there.finish("b", completed(claim))
        assert (await there.job(job)).state == "completed"
        assert await there.store.check() == await here.store.check() == []


@pytest.mark.postgres
async def test_an_order_key_is_not_overtaken(sqlite_url: str, postgres_url: str):
    """While the first of a line is held here the others wait here; those behind them in the table go."""
    line = (Gate(kind="order", key="k"),)
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        await here.register("a")
        first = await here.enqueue_one(gates=line)
        claim = await here.claim_one("a")
        assert (await here.store.admit("a", [claim])).admitted == {ref(claim)}
        others = await here.enqueue(*(task(gates=line) for _ in range(600)))
        behind = await here.enqueue_one()
        async with following(sqlite_url, postgres_url):
            await until_there(there, behind)
            assert await there.store.get(others) == {}
            await here.finish("a", failed(claim, delay=0))
            await until_there(there, first, *others)
        await there.register("b")
        ran: list[int] = []
        for _ in range(3):
            claims = await there.claim("b", 700)
            admission = await there.store.admit("b", [claim for claim in claims if claim.gated])
            for claim in claims:
                if ref(claim) in admission.admitted:
                    ran.append(claim.id)
                    await there.finish("b", completed(claim))
        assert ran == [first, *others[:2]]


@pytest.mark.postgres
async def test_jobs_that_wait_for_each_others_order_keys_go_together(sqlite_url: str, postgres_url: str):
    one, two = (Gate(kind="order", key="one"),), (Gate(kind="order", key="two"),)
    async with ledger_of(sqlite_url) as here:
        first, _ = await here.store.create_job(NewJob(name="a", tasks=(task(gates=one),)))
        between = await here.enqueue_one(gates=one)
        await here.store.enqueue([task(gates=two, job=first), task(gates=one, job=first)])
    received = await moved(sqlite_url, postgres_url)
    assert received.found["tasks"].rows == 4
    async with ledger_of(postgres_url) as there:
        assert await there.state(between) == "pending"
        assert await there.store.check() == []


@pytest.mark.postgres
async def test_what_is_retried_at_either_end_while_it_goes_runs_once(sqlite_url: str, postgres_url: str):
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        await here.register("a")
        at_source, at_target, at_both = await here.enqueue(*(task() for _ in range(3)))
        for claim in await here.claim("a"):
            await here.finish("a", failed_for_good(claim))
        async with mover_of(sqlite_url, postgres_url, follow=True) as mover:
            await mover._begin()  # pyright: ignore[reportPrivateUsage]
            await mover._copy_history()  # pyright: ignore[reportPrivateUsage]
        assert (await there.store.get([at_source, at_target, at_both])).keys() == {at_source, at_target, at_both}
        assert await here.store.retry([at_source, at_both]) == [at_source, at_both]
        assert await there.store.retry([at_target, at_both]) == [at_target, at_both]
        await moved(sqlite_url, postgres_url, follow=True)
        for id in (at_source, at_target, at_both):
            found = await there.get(id)
            assert (found.state, found.run_no) == ("pending", 2)
        assert await there.store.check() == await here.store.check() == []
        assert await here.store.get([at_source, at_target, at_both]) == {}


@pytest.mark.postgres
async def test_a_copy_of_what_lives_here_again_cannot_be_retried_there(sqlite_url: str, postgres_url: str):
    """A dead letter was copied, then retried and claimed here; another one was purged here. Their copies go."""
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        await here.register("a")
        held, purged, kept = ids = await here.enqueue(*(task(dead_letter=True) for _ in range(3)))
        for claim in await here.claim("a"):
            await here.finish("a", failed_for_good(claim, dead_letter=True))
        async with mover_of(sqlite_url, postgres_url, follow=True) as mover:
            await mover._begin()  # pyright: ignore[reportPrivateUsage]
            await mover._copy_history()  # pyright: ignore[reportPrivateUsage]
            assert (await there.store.get(ids)).keys() == set(ids)
            assert await here.store.retry([held]) == [held]
            claim = await here.claim_one("a")
            assert await here.store.purge([purged]) == [purged]
            await mover.flip()
        # Killed here: the next one looks first.
        async with following(sqlite_url, postgres_url):

            async def arrived() -> bool:
                return not await here.store.get([kept])

            await eventually(arrived, message="history was handed over")
            assert (await there.store.get(ids)).keys() == {kept}
            assert await there.store.retry([held, purged]) == []
            await here.finish("a", completed(claim))
            await until_there(there, held)
        assert (await there.get(held)).state == "completed"
        assert await there.store.attempts(purged) == []
        assert await there.store.check() == await here.store.check() == []


@pytest.mark.postgres
async def test_a_parcel_that_comes_again_is_not_born_again(sqlite_url: str, postgres_url: str):
    """Its tasks have run there since and were pruned: no row tells of them any more, but its number does."""
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        ids = await here.enqueue(task(), task())
        async with mover_of(sqlite_url, postgres_url, follow=True) as mover:
            await mover._begin()  # pyright: ignore[reportPrivateUsage]
            await mover.flip()
            await mover._compare()  # pyright: ignore[reportPrivateUsage]
            assert await mover.source.pack_tasks(mover.move_id)
            found = await mover.source.outgoing(mover.move_id)
            assert found is not None
            number, keys = found
            parts = [lambda key=key: mover.source.part(key) for key in keys]
            await mover.target.receive(mover.move_id, number, parts)
        # Killed here. The parcel still lies in the source.
        await there.register("b")
        await there.finish("b", *(completed(claim) for claim in await there.claim("b")))
        await there.let_pass(0.05)
        assert (await there.store.prune(keep=0.01)).tasks == 2
        received = await moved(sqlite_url, postgres_url)
        assert received.found["tasks"].rows == 2
        assert await there.store.get(ids) == await here.store.get(ids) == {}
        assert await there.claim("b") == []


@pytest.mark.postgres
async def test_two_movers_at_once_move_each_row_once(sqlite_url: str, postgres_url: str):
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        ids = await here.enqueue(*(task(arguments=f'{{"n":{n}}}') for n in range(1500)))
        await asyncio.gather(*(moved(sqlite_url, postgres_url) for _ in range(2)))
        assert len(await there.store.get(ids)) == 1500
        assert await here.store.get(ids) == {}
        assert await there.store.check() == []


@pytest.mark.postgres
async def test_two_movers_to_different_targets_are_not_both_sent_a_parcel(
    sqlite_url: str, postgres_url: str, postgres_server: PostgresServer
):
    other = postgres_server.create_database("headrace_second")
    try:
        async with ledger_of(sqlite_url) as here:
            ids = await here.enqueue(task(), task())
        async with (
            mover_of(sqlite_url, postgres_url, follow=True) as first,
            mover_of(sqlite_url, other, follow=True) as second,
        ):
            await first._begin()  # pyright: ignore[reportPrivateUsage]
            await second._begin()  # pyright: ignore[reportPrivateUsage]
            with pytest.raises(MoveError, match="by another command"):
                await first.flip()
            await second.flip()
            await second._compare()  # pyright: ignore[reportPrivateUsage]
            with pytest.raises(MoveError, match="by another command"):
                await first.source.pack_tasks(first.move_id)
            assert await second.source.pack_tasks(second.move_id)
            with pytest.raises(MoveError, match="by another command"):
                await first._send()  # pyright: ignore[reportPrivateUsage]
            await second.run()
        assert postgres_rows(postgres_url, "tasks") == []
        assert len(postgres_rows(other, "tasks")) == len(ids)
    finally:
        postgres_server.drop_database("headrace_second")


async def fire_due(ledger: Ledger, name: str) -> list[int | None]:
    """As a scheduler that has read it as due, however long ago."""
    record = await ledger.store.get_schedule(name)
    if record is None:
        return []
    now = await ledger.store.now()
    firing = Firing(
        schedule=record.id, revision=record.revision, cursor=record.cursor, new_cursor=now,
        next_at=now + timedelta(seconds=1), fires=(Fire(tick=now),),
    )  # fmt: skip
    return [fired.task for fired in await ledger.store.fire([firing])]


@pytest.mark.postgres
async def test_a_schedule_fires_where_it_is(sqlite_url: str, postgres_url: str):
    """From the flip on nowhere here, and there only once what must not be overlapped has ended here."""
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        await here.register("a")
        names = ["beside", "exclusive"]
        await here.store.put_schedules([schedule("beside", overlap="allow"), schedule("exclusive")])
        fires = [await fire_due(here, name) for name in names]
        assert all(fires)
        claims = await here.claim("a", queue="scheduled")
        assert len(claims) == 2
        async with following(sqlite_url, postgres_url):

            async def arrived() -> bool:
                return [record.name for record in await there.store.schedules()] == ["beside"]

            await eventually(arrived, message="the one that may overlap has gone")
            assert [record.name for record in await here.store.schedules()] == ["exclusive"]
            assert (await here.store.due_schedules()).due == ()
            assert await fire_due(here, "exclusive") == []
            assert len(await fire_due(there, "beside")) == 1
            await here.finish("a", *(completed(claim) for claim in claims))

            async def both() -> bool:
                return len(await there.store.schedules()) == 2

            await eventually(both, message="the other one followed")
        assert await here.store.schedules() == []
        (fired,) = await fire_due(there, "exclusive")
        assert fired is not None
        assert await fire_due(there, "exclusive") == [None], "it knows of the one before"
        assert len(await there.store.schedule_runs("exclusive")) == 3
        assert await there.store.check() == await here.store.check() == []


@pytest.mark.postgres
async def test_an_interrupted_mover_leaves_no_schedule_that_could_go(sqlite_url: str, postgres_url: str):
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        await here.register("a")
        await here.store.put_schedules([schedule("exclusive")])
        (id,) = await fire_due(here, "exclusive")
        claim = await here.claim_one("a", queue="scheduled")
        async with mover_of(sqlite_url, postgres_url, follow=True) as mover:
            await mover._begin()  # pyright: ignore[reportPrivateUsage]
            await mover.flip()
            await mover.deliver()
            left = await mover.source.left()
            assert (left.schedules, left.schedule_runs) == (1, 1), "its task runs here"
            await here.finish("a", completed(claim))
            while await mover._hand_over():  # pyright: ignore[reportPrivateUsage]
                pass
            left = await mover.source.left()
            assert (left.tasks, left.history, left.schedules, left.nothing) == (0, 0, 1, False)
            await mover.deliver()
            assert (await mover.source.left()).nothing
        assert [record.name for record in await there.store.schedules()] == ["exclusive"]
        assert [run.task for run in await there.store.schedule_runs("exclusive")] == [id]


@pytest.mark.postgres
async def test_a_schedule_that_was_declared_there_anew_stays_as_operators_left_it(sqlite_url: str, postgres_url: str):
    """A worker with the new URL was faster than the source's row."""
    async with ledger_of(sqlite_url) as here, ledger_of(postgres_url) as there:
        await here.store.declare_schedules("shop", [schedule("same"), schedule("newer", grace=1.0), schedule("other")])
        await here.store.put_schedules([schedule("same", jitter=2.5)])
        (fired,) = await fire_due(here, "same")
        assert fired is not None
        for name in ("same", "newer"):
            await here.store.pause_schedule(name)
        async with mover_of(sqlite_url, postgres_url) as mover:
            await mover._begin()  # pyright: ignore[reportPrivateUsage]
        declared = [schedule("same"), schedule("newer", grace=5.0)]
        await there.store.declare_schedules("shop", declared)
        own = (await there.store.run_schedule("same")).task
        received = await moved(sqlite_url, postgres_url)
        assert received.merged["schedules"] == 2
        found = {record.name: record for record in await there.store.schedules()}
        assert {name: (record.paused, record.grace, record.jitter) for name, record in found.items()} == {
            "same": (True, schedule("same").grace, 2.5),
            "newer": (True, 5.0, 0.0),
            "other": (False, schedule("other").grace, 0.0),
        }
        assert {run.task for run in await there.store.schedule_runs("same")} == {fired, own}
        assert await there.store.check() == []
        # A worker that is started with the old URL declares it there again: that is no word of an operator.
        await here.store.declare_schedules("shop", declared)
        await moved(sqlite_url, postgres_url)
        assert {record.name: record for record in await there.store.schedules()} == found


# What arrives is what was sent.


@pytest.mark.postgres
async def test_a_row_that_does_not_arrive_as_it_was_stops_the_move(sqlite_url: str, postgres_url: str):
    """The target is rolled back, the source keeps it, and the same command goes on when the cause is gone."""
    async with ledger_of(sqlite_url) as here:
        id = await here.enqueue_one(arguments='{"n":1}')
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN NEW.arguments := '{\"n\":2}'; RETURN NEW; END $$"
        )
        connection.execute("CREATE TRIGGER spoil BEFORE INSERT ON headrace.tasks FOR EACH ROW EXECUTE FUNCTION spoil()")
        with pytest.raises(MoveError, match="does not have what was sent"):
            await moved(sqlite_url, postgres_url)
        assert postgres_rows(postgres_url, "tasks") == []
        async with ledger_of(sqlite_url) as here:
            trace = await cast("SQLiteStore", here.store).trace([id])
            assert trace.on_their_way[id].arguments == '{"n":1}'
        connection.execute("DROP TRIGGER spoil ON headrace.tasks")
    received = await moved(sqlite_url, postgres_url)
    assert received.sent == received.found
    async with ledger_of(postgres_url) as there:
        assert (await there.get(id)).arguments == '{"n":1}'


@pytest.mark.postgres
async def test_large_rows_go_in_parts(sqlite_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("headrace.store.moving.packing._BYTES", 5_000)
    async with ledger_of(sqlite_url) as here:
        long = [f'{{"text":"{n:04d}{"x" * 900}"}}' for n in range(40)]
        job, _ = await here.store.create_job(NewJob(name="big", tasks=tuple(task(arguments=text) for text in long)))
        ids = await here.enqueue(*(task(arguments=text) for text in long))
    await moved(sqlite_url, postgres_url)
    async with ledger_of(postgres_url) as there:
        assert (await there.job(job)).total == 40
        assert [(await there.get(id)).arguments for id in ids] == long
        assert await there.store.check() == []


# What is refused.


async def refusal(sqlite_url: str, postgres_url: str, **options: Any) -> str:
    with pytest.raises((MoveError, SchemaError)) as refused:
        await moved(sqlite_url, postgres_url, **options)
    return str(refused.value)


@pytest.mark.postgres
async def test_it_is_refused_while_workers_run(sqlite_url: str, postgres_url: str):
    async with ledger_of(sqlite_url) as here:
        await here.register("busy")
        id = await here.enqueue_one()
        assert "1 workers run" in await refusal(sqlite_url, postgres_url)
        assert "--follow" in await refusal(sqlite_url, postgres_url)
        assert (await here.claim_one("busy")).id == id, "nothing has changed for them"
    assert postgres_rows(postgres_url, "tasks") == []


@pytest.mark.postgres
async def test_a_target_with_tasks_of_its_own_is_refused(sqlite_url: str, postgres_url: str):
    async with ledger_of(postgres_url) as there:
        await there.enqueue_one()
    async with ledger_of(sqlite_url) as here:
        await here.enqueue_one()
        assert "has tasks of its own" in await refusal(sqlite_url, postgres_url)
        assert len(await here.claim()) == 1, "it has not moved"


@pytest.mark.postgres
async def test_a_target_of_another_ledger_is_refused(sqlite_url: str, postgres_url: str, tmp_path: Path):
    await moved(sqlite_url, postgres_url)
    another = tmp_path / "another.db"
    shutil.copy(sqlite_path(sqlite_url), another)
    with contextlib.closing(sqlite3.connect(another)) as connection:
        connection.execute("DELETE FROM headrace_meta WHERE key IN ('move', 'moved_to')")
        connection.commit()
    assert "already took in another ledger" in await refusal(f"sqlite:///{another}", postgres_url)


@pytest.mark.postgres
async def test_a_ledger_that_has_moved_goes_nowhere_else(
    sqlite_url: str, postgres_url: str, postgres_server: PostgresServer
):
    await moved(sqlite_url, postgres_url)
    other = postgres_server.create_database("headrace_elsewhere")
    try:
        assert "has moved to" in await refusal(sqlite_url, other)
    finally:
        postgres_server.drop_database("headrace_elsewhere")


@pytest.mark.postgres
async def test_after_the_flip_the_target_is_known_by_its_record(sqlite_url: str, postgres_url: str):
    await moved(sqlite_url, postgres_url)
    async with ledger_of(sqlite_url) as here:
        await here.enqueue_one()
    received = await moved(sqlite_url, postgres_url.replace("headrace@", "headrace:secret@"))
    assert received.found["tasks"].rows == 1


@pytest.mark.postgres
async def test_a_target_that_forgot_what_it_was_sent_is_refused(sqlite_url: str, postgres_url: str):
    async with ledger_of(sqlite_url) as here:
        await here.enqueue_one()
    await moved(sqlite_url, postgres_url)
    migrations.downgrade(postgres_url, "base", name="headrace")
    assert "0 of the 1 parcels" in await refusal(sqlite_url, postgres_url)


@pytest.mark.postgres
async def test_ids_that_postgresql_will_hand_out_are_refused(sqlite_url: str, postgres_url: str):
    with contextlib.closing(sqlite3.connect(sqlite_path(sqlite_url))) as connection:
        connection.execute("INSERT INTO headrace_ids VALUES ('tasks', ?)", (FIRST_POSTGRES_ID + 2,))
        connection.commit()
    assert "which PostgreSQL will hand out" in await refusal(sqlite_url, postgres_url)


@pytest.mark.postgres
async def test_schemas_must_be_the_same(sqlite_url: str, postgres_url: str):
    migrations.downgrade(postgres_url, "base", name="headrace")
    with pytest.raises(SchemaError, match="leave out --no-upgrade"):
        async with opened(sqlite_url, postgres_url, upgrade=False):
            pass
    await moved(sqlite_url, postgres_url)  # makes it
    with contextlib.closing(sqlite3.connect(sqlite_path(sqlite_url))) as connection:
        connection.execute("UPDATE headrace_alembic_version SET version_num = '0000'")
        connection.commit()
    assert "has the schema 0000" in await refusal(sqlite_url, postgres_url)


def test_the_password_can_be_left_out():
    assert without_password("postgresql://me:se:cret@host:5/db?a=1&password=x") == "postgresql://me@host:5/db?a=1"
    assert without_password("postgresql:///db?host=%2Ftmp") == "postgresql:///db?host=%2Ftmp"
    assert "se:cret" not in shown_target("postgresql+asyncpg://me:se:cret@host/db")
