"""A fire that is interrupted is there as a whole or not at all, and nothing of it happens twice."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import asyncpg
import orjson
import pytest
from sqlalchemy import text

from headrace.core.errors import WrongState
from headrace.core.lanes import Lane
from headrace.core.limits import Gate
from headrace.core.schedule import Fire, Firing, NewSchedule, Overlap, ScheduleRecord
from headrace.core.task import Key, NewTask, Want
from headrace.store.base import Store
from headrace.store.checker import WARNINGS
from headrace.store.connect import connect
from tests.guarantees.proxy import Moment, Proxy
from tests.migrations.shape import engine_for
from tests.store.test_postgres_connection import opened as opened_postgres
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Store]:
    store = connect(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def put(
    store: Store, name: str = "s", *, overlap: Overlap = "allow", task: NewTask | None = None
) -> ScheduleRecord:
    new = NewSchedule(name=name, cadence="c", task=task or NewTask(name="t"), overlap=overlap)
    (record,) = await store.put_schedules([new])
    return record


async def decided(store: Store, record: ScheduleRecord) -> Firing:
    """About one tick, now."""
    now = await store.now()
    return Firing(
        schedule=record.id,
        revision=record.revision,
        cursor=record.cursor,
        new_cursor=now,
        next_at=now + timedelta(hours=1),
        fires=(Fire(tick=now),),
    )


def run_firer(url: str, fault: str = "") -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "HEADRACE_FAULT": fault} if fault else dict(os.environ)
    command = [sys.executable, "-m", "tests.store.schedule_firer", url]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


async def tasks_of(store: Store) -> list[int]:
    want = Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=100)
    return sorted(claim.id for claim in await store.claim("w", [want]))


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("overlap", ["allow", "replace"])
async def test_a_scheduler_that_is_killed_leaves_a_whole_fire_or_none(
    store_url: str, point: str, overlap: Overlap
) -> None:
    """Killed when all is written and nothing committed: the next one fires the ticks. Killed after the commit, before
    it could say so: the next one finds nothing to do."""
    async with opened(store_url) as store:
        await put(store, overlap=overlap)
        killed = await asyncio.to_thread(run_firer, store_url, f"store.fire.{point}:kill9")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        runs = await store.schedule_runs("s")
        due = (await store.due_schedules()).due
        if point == "before_commit":
            assert runs == []
            assert await store.counts() == {}
            assert [record.cursor for record in due] == [due[0].created_at]
            again = await asyncio.to_thread(run_firer, store_url)
            assert (again.returncode, again.stdout.split()) == (0, ["3"]), again.stderr
            runs = await store.schedule_runs("s")
        else:
            assert due == ()
        assert len(runs) == 3
        alive = [run.task for run in runs if run.status == "pending"]
        assert len(alive) == (3 if overlap == "allow" else 1)
        assert await tasks_of(store) == sorted(task for task in alive if task is not None)
        assert [violation for violation in await store.check() if violation.rule not in WARNINGS] == []


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("overlap", ["allow", "skip"])
async def test_a_connection_lost_at_the_commit_fires_once(postgres_url: str, moment: Moment, overlap: Overlap) -> None:
    """Before: the repeat fires. After: the repeat finds the cursor moved, and the answer lacks what happened."""
    async with opened(postgres_url) as straight:
        record = await put(straight, overlap=overlap)
        with Proxy(postgres_url) as proxy:
            async with opened(proxy.url) as store:
                firing = await decided(store, record)
                proxy.arm(r"UPDATE headrace\.schedules SET cursor", moment)
                fired = await store.fire([firing])
                assert len(proxy.cuts) == 1
        assert len(fired) == (1 if moment == "before" else 0)
        runs = await straight.schedule_runs("s")
        assert [run.tick for run in runs] == [firing.fires[0].tick]
        assert await tasks_of(straight) == [run.task for run in runs]


async def test_a_key_that_an_open_transaction_holds_leaves_the_schedule_due(postgres_url: str) -> None:
    """Nobody knows yet whether it will be held: the next look decides. Others are not kept from firing."""
    key = Key(scope="unique", key="k", on_conflict="reject")
    async with opened_postgres(postgres_url) as store:
        busy = await put(store, "busy", task=NewTask(name="t", keys=(key,)))
        free = await put(store, "free")
        user = await asyncpg.connect(postgres_url)
        try:
            transaction = user.transaction()
            await transaction.start()
            program = store.enqueue_program([NewTask(name="t", keys=(key,))])
            statement = next(program)
            await user.fetch(statement.sql, *statement.parameters)
            firings = [await decided(store, busy), await decided(store, free)]
            assert [fired.schedule for fired in await store.fire(firings)] == [free.id]
            assert (await store.due_schedules()).due == (busy,)
            await transaction.rollback()
        finally:
            await user.close()
        assert [fired.verdict for fired in await store.fire([firings[0]])] == ["enqueue"]


def templates(url: str) -> list[tuple[str, str]]:
    engine = engine_for(url)
    table = "headrace_schedules" if engine.dialect.name == "sqlite" else "headrace.schedules"
    with engine.begin() as connection:
        rows = [(row[0], row[1]) for row in connection.execute(text(f"SELECT name, task FROM {table}"))]
    engine.dispose()
    return rows


def spoil(url: str, name: str) -> None:
    """As a newer version might write it."""
    engine = engine_for(url)
    table = "headrace_schedules" if engine.dialect.name == "sqlite" else "headrace.schedules"
    with engine.begin() as connection:
        sql = text(f"UPDATE {table} SET task = :task WHERE name = :name")
        connection.execute(sql, {"task": '{"name":"t","colour":"blue"}', "name": name})
    engine.dispose()


async def test_a_template_of_a_newer_version_stands_in_nobodys_way(store_url: str) -> None:
    async with opened(store_url) as store:
        new = await put(store, "new")
        old = await put(store, "old")
        spoil(store_url, "new")
        firing = await decided(store, new)
        unread, read = (await store.due_schedules()).due
        assert (unread.name, read) == ("new", old)
        assert (await store.due_schedules(limit=1, without=[(new.id, new.revision)])).due == (old,)
        listed = {record.name: record for record in await store.schedules()}
        assert listed["new"].problem is not None
        assert "colour" in listed["new"].problem
        assert await store.fire([firing]) == []
        with pytest.raises(WrongState, match="colour"):
            await store.run_schedule("new")
        assert await store.schedule_runs("new") == []
        assert (await put(store, "new")).problem is None
        assert {record.name for record in (await store.due_schedules()).due} == {"new", "old"}


async def test_a_stored_template_says_what_is_no_default_and_is_read_back_whole(store_url: str) -> None:
    """An option that a later version adds is then no word to an older one until somebody uses it."""
    gate, key = Gate(kind="order", key="k"), Key(scope="unique", key="u")
    full = NewTask(name="t", queue="mail", delay=3.0, gates=(gate,), keys=(key,), max_age=60.0)
    async with opened(store_url) as store:
        assert (await put(store, "plain", task=NewTask(name="t"))).task == NewTask(name="t")
        assert (await put(store, "full", task=full)).task == full
        written = {name: orjson.loads(task) for name, task in templates(store_url)}
        assert written["plain"] == {"name": "t"}
        assert written["full"] == {
            "name": "t", "queue": "mail", "delay": 3.0, "max_age": 60.0,
            "gates": [{"kind": "order", "key": "k"}], "keys": [{"scope": "unique", "key": "u"}],
        }  # fmt: skip


async def test_a_restart_of_an_older_version_does_not_write_what_it_cannot_read(store_url: str) -> None:
    new = NewSchedule(name="s", cadence='{"every":60}', task=NewTask(name="t"))
    async with opened(store_url) as store:
        await store.declare_schedules("shop", [new])
        spoil(store_url, "s")
        await store.declare_schedules("shop", [new])
        record = await store.get_schedule("s")
        assert record is not None
        assert "colour" in (record.problem or ""), "it is still what the newer version wrote"


async def test_a_template_that_became_unreadable_after_the_look_stays_due(store_url: str) -> None:
    async with opened(store_url) as store:
        first, second = await put(store, "first"), await put(store, "second")
        firings = [await decided(store, first), await decided(store, second)]
        spoil(store_url, "first")
        assert [fired.schedule for fired in await store.fire(firings)] == [second.id]
        record = await store.get_schedule("first")
        assert record is not None
        assert record.problem is not None
        assert "colour" in record.problem
        assert record.cursor == first.cursor
        assert [each.name for each in (await store.due_schedules()).due] == ["first"], "for whoever can read it"


async def test_a_fire_wakes_those_who_wait_for_its_queue(store_url: str) -> None:
    async with opened(store_url) as store, opened(store_url) as listener:
        record = await put(store, task=NewTask(name="t", queue="mail"))
        async with listener.listen("w", ["mail", "other"]) as hints:
            heard: list[str] = []

            async def hear() -> None:
                async for hint in hints:
                    heard.append(hint)  # noqa: PERF401 -- each as it comes

            hearing = asyncio.create_task(hear())
            # A listener that has just connected looks at everything once.
            await listener.wake(["other"])
            await eventually(lambda: "other" in heard)
            heard.clear()
            cursor = record.cursor

            async def fire_again() -> bool:
                """A hint may be lost: fire until one is heard."""
                nonlocal cursor
                firing = await decided(store, record)
                cursor, before = firing.new_cursor, cursor
                fired = await store.fire(
                    [Firing(schedule=record.id, revision=1, cursor=before, new_cursor=cursor, next_at=None,
                            fires=firing.fires)]
                )  # fmt: skip
                assert len(fired) == 1
                return "mail" in heard

            await eventually(fire_again)
            hearing.cancel()
