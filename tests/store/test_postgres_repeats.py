"""A repeat of an enqueue, while the first try is about to commit, or stands still."""

import asyncio
from typing import Any

import asyncpg
import pytest

from headrace.core.task import Key, NewTask
from headrace.store.postgres.enqueueing import columns, document
from headrace.store.queries import load_queries
from tests.store.test_postgres_connection import opened
from tests.support.waiting import eventually

_asyncpg: Any = asyncpg
_ID = 4711
_ENQUEUE = "SELECT id FROM headrace.enqueue_v1($1)"


@pytest.mark.parametrize("keys", [(), (Key(scope="unique", key="k"),)], ids=["plain", "keyed"])
async def test_a_task_that_ended_while_its_repeat_waited_is_not_born_again(
    postgres_url: str, keys: tuple[Key, ...]
) -> None:
    """The first try's connection was lost, not its statement: it commits, and its task is over, in the very moment for
    which the repeat waits.
    """
    task = NewTask(name="once", keys=keys)
    async with opened(postgres_url) as store:
        first, second, watcher = [await _asyncpg.connect(postgres_url) for _ in range(3)]
        try:
            await first.execute("BEGIN")
            await first.fetch(_ENQUEUE, document([task], own=True, ids=[_ID]))
            await first.fetch("SELECT * FROM headrace.cancel_v1($1, 'user')", [_ID])
            repeat = asyncio.create_task(second.fetch(_ENQUEUE, document([task], own=True, ids=[_ID], repeated=True)))
            waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'"
            await eventually(lambda: watcher.fetchval(waits, second.get_server_pid()))
            await first.execute("COMMIT")
            assert [row["id"] for row in await repeat] == [_ID]
            assert await watcher.fetchval("SELECT count(*) FROM headrace.tasks") == 0
            assert await watcher.fetchval("SELECT count(*) FROM headrace.history") == 1
            assert await store.check() == []
        finally:
            for connection in (first, second, watcher):
                await connection.close()


# Only the session called «frozen» stops, right before the row of tasks or keys that its place names.
_FREEZER = """
CREATE SEQUENCE public.writes;
CREATE FUNCTION public.stand_still() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('application_name') = 'frozen'
        AND nextval('public.writes') = current_setting('test.place')::bigint
    THEN
        PERFORM pg_advisory_xact_lock(1);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER stand_still BEFORE INSERT ON headrace.tasks FOR EACH ROW EXECUTE FUNCTION public.stand_still();
CREATE TRIGGER stand_still BEFORE INSERT ON headrace.keys FOR EACH ROW EXECUTE FUNCTION public.stand_still();
"""


@pytest.mark.parametrize(
    ("kind", "place", "refused"),
    [
        ("plain", 1, asyncpg.UniqueViolationError),
        ("keyed", 1, asyncpg.UniqueViolationError),
        # It has waited for earlier tries, undone that, and looked; its caller tries once more and finds what ended.
        ("repeat", 3, asyncpg.SerializationError),
    ],
)
async def test_a_try_that_stood_still_until_its_repeat_had_ended_is_refused(
    postgres_url: str, kind: str, place: int, refused: type[Exception]
) -> None:
    """It stands still behind its snapshot and before its insert: nothing in the table stops it when it goes on."""
    tasks = [NewTask(name=name, keys=(Key(scope="unique", key="k"),) if kind == "keyed" else ()) for name in "ab"]
    ids = [_ID, _ID + 1]
    async with opened(postgres_url) as store:
        queries = load_queries("headrace.store.postgres.sql", "headrace")
        frozen, other, holder = [await _asyncpg.connect(postgres_url) for _ in range(3)]
        try:
            await other.execute(_FREEZER)
            await frozen.execute(f"SET application_name = 'frozen'; SET test.place = {place}")
            await holder.execute("SELECT pg_advisory_lock(1)")
            [[_, repeats]] = await other.fetch(queries["take_id_blocks"], 1)
            if kind == "plain":
                parameters = (f"{ids[0]},{ids[1]}", *columns(tasks), [], repeats)
                first = asyncio.create_task(frozen.fetch(queries["insert_plain"], *parameters))
            else:
                text = document(tasks, own=True, ids=ids, repeats=repeats, repeated=kind == "repeat")
                first = asyncio.create_task(frozen.fetch(_ENQUEUE, text))
            waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'advisory'"
            await eventually(lambda: other.fetchval(waits, frozen.get_server_pid()))
            text = document(tasks, own=True, ids=ids, repeats=repeats, repeated=True)
            written = {row["id"] for row in await other.fetch(_ENQUEUE, text)}
            await other.fetch("SELECT * FROM headrace.cancel_v1($1, 'user')", list(written))
            await holder.execute("SELECT pg_advisory_unlock(1)")
            with pytest.raises(refused):
                await first
            assert await other.fetchval("SELECT count(*) FROM headrace.tasks") == 0
            assert await other.fetchval("SELECT count(*) FROM headrace.history") == len(written)
            assert await store.check() == []
        finally:
            for connection in (frozen, other, holder):
                await connection.close()


async def test_after_a_repeat_new_enqueues_go_on(postgres_url: str) -> None:
    """Those that took their ids before it ask history once more, and are written."""
    async with opened(postgres_url) as store:
        await store.enqueue([NewTask(name="before")])
        connection = await _asyncpg.connect(postgres_url)
        try:
            await connection.fetch(_ENQUEUE, document([NewTask(name="r")], own=True, ids=[_ID], repeated=True))
        finally:
            await connection.close()
        for keys in ((), (Key(scope="unique", key="k"),)):
            assert (await store.enqueue([NewTask(name="after", keys=keys)]))[0].created
        assert await store.counts() == {"pending": 4}
