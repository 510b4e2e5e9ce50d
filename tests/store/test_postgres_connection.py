"""What a PostgreSQL server does to a store: cut lines, deadlocks, missing schemas, busy keys."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from headrace.core.errors import SchemaError, StoreUnavailable, UniqueBusy
from headrace.core.lanes import Lane
from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import ClaimedTask, Key, NewJob, NewTask, Ref, Want
from headrace.store import migrations
from headrace.store.base import CancelAnswer, StoreOptions, Violation
from headrace.store.checker import WARNINGS
from headrace.store.postgres import PostgresStore
from tests.support.postgres import PostgresServer, PrivatePostgres

WANTS = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=10)]


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresStore]:
    migrations.upgrade(url, name="headrace")
    store = PostgresStore(url, StoreOptions())
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def done(claim: ClaimedTask) -> Settlement:
    return Settlement(
        task=claim.id, claim_no=claim.claim_no, state=TaskState.COMPLETED, charged=True, attempt=AttemptState.SUCCEEDED,
        result="1", ran_for=0.1,
    )  # fmt: skip


async def broken_rules(store: PostgresStore) -> list[Violation]:
    return [violation for violation in await store.check() if violation.rule not in WARNINGS]


def database_of(url: str) -> str:
    return url.rpartition("/")[2]


async def execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def cut(server: PostgresServer, url: str) -> None:
    await asyncio.to_thread(server.kill_backends, database_of(url))


async def test_idle_connections_that_were_cut_are_replaced(postgres_server: PostgresServer, postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        await cut(postgres_server, postgres_url)
        [answer] = await store.enqueue([NewTask(name="t")])
        await cut(postgres_server, postgres_url)
        assert (await store.get([answer.id]))[answer.id].state is TaskState.PENDING


async def test_a_server_that_became_read_only_is_an_outage_and_its_lines_are_left(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    """As a failover looks while the name still leads to the old primary. Sessions keep what they began with: only new
    lines see that it is over."""
    async with opened(postgres_url) as store:
        read_only = f'ALTER DATABASE "{database_of(postgres_url)}" SET default_transaction_read_only'
        await execute(postgres_url, f"{read_only} = on")
        await cut(postgres_server, postgres_url)
        await store.get([1])  # on a new line
        with pytest.raises(StoreUnavailable, match="read-only"):
            await store.claim("w", WANTS)
        await execute(postgres_url, "SET default_transaction_read_only = off", f"{read_only} = off")
        [answer] = await store.enqueue([NewTask(name="t")])
        assert [claim.id for claim in await store.claim("w", WANTS)] == [answer.id]


async def test_verbs_that_are_never_repeated_survive_a_cut_before_them(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    """The connection that is kept for the next use was cut meanwhile: nothing has been sent, and nobody is troubled."""
    async with opened(postgres_url) as store:
        for _ in range(3):
            [answer] = await store.enqueue([NewTask(name="t")])
            await cut(postgres_server, postgres_url)
            await asyncio.sleep(0.05)  # the driver hears of it
            [claim] = await store.claim("w", WANTS)
            await cut(postgres_server, postgres_url)
            await asyncio.sleep(0.05)
            assert (await store.cancel([answer.id]))[answer.id] is CancelAnswer.CANCELLING
            await store.finish("w", [done(claim)])


async def test_a_finish_whose_commit_was_heard_by_nobody_is_repeated(
    postgres_server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line breaks after the server did it all: the replay finds it, and what came with it is given back."""
    async with opened(postgres_url) as store:
        await store.enqueue([NewTask(name="t"), NewTask(name="u")])
        [claim] = await store.claim("w", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)])
        plain = asyncpg.Connection.fetch
        broken: list[str] = []

        async def breaking(self: asyncpg.Connection, query: str, *arguments: object, **options: object) -> object:
            rows = await plain(self, query, *arguments, **options)
            if "finish_v1" in query and not broken:
                broken.append(query)
                raise ConnectionResetError("the answer was lost")
            return rows

        monkeypatch.setattr(asyncpg.Connection, "fetch", breaking)
        report = await store.finish("w", [done(claim)], wants=WANTS)
        assert broken
        assert report.repeated == {Ref(claim.id, claim.claim_no)}
        assert report.refused == frozenset()
        assert report.claimed == ()
        # The other task was claimed by the try that nobody heard of; it comes back under a new number.
        [other] = await store.claim("w", WANTS)
        assert (other.name, other.claim_no) == ("u", 2)
        assert await broken_rules(store) == []


async def test_an_enqueue_whose_commit_was_heard_by_nobody_is_there_once(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_url) as store:
        plain = asyncpg.Connection.fetch
        broken: list[str] = []

        async def breaking(self: asyncpg.Connection, query: str, *arguments: object, **options: object) -> object:
            rows = await plain(self, query, *arguments, **options)
            if "enqueue_v1" in query and not broken:
                broken.append(query)
                raise ConnectionResetError("the answer was lost")
            return rows

        monkeypatch.setattr(asyncpg.Connection, "fetch", breaking)
        keyed = NewTask(name="k", keys=(Key(scope="unique", key="k"),))
        answers = await store.enqueue([NewTask(name="t"), keyed, keyed])
        assert broken
        assert [answer.created for answer in answers] == [True, True, False]
        assert answers[1].id == answers[2].id
        assert sorted(claim.id for claim in await store.claim("w", WANTS)) == [answers[0].id, answers[1].id]


async def test_deadlocks_are_tried_again(postgres_url: str) -> None:
    """Two finishers fail critical tasks of the same two jobs in opposite order, again and again."""
    async with opened(postgres_url) as store:
        for _ in range(5):
            jobs = [await store.create_job(NewJob(name="j", tasks=(NewTask(name="t"),) * 6)) for _ in range(2)]
            claims = await store.claim("w", [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=12)])
            assert len(claims) == 12
            failures = [
                Settlement(
                    task=c.id, claim_no=c.claim_no, state=TaskState.FAILED, charged=True, attempt=AttemptState.FAILED
                )
                for c in claims
            ]
            reports = await asyncio.gather(*(store.finish("w", failures[i::4]) for i in range(4)))
            assert sum(len(report.accepted) for report in reports) == 12
            for job, _ in jobs:
                record = await store.get_job(job)
                assert record is not None
                assert (record.state, record.failed) == ("failed", 6)
        assert await broken_rules(store) == []


async def test_an_open_transaction_holds_a_key_for_two_seconds_at_most(postgres_url: str) -> None:
    keyed = NewTask(name="k", keys=(Key(scope="unique", key="k"),))
    async with opened(postgres_url) as store:
        program = store.enqueue_program([keyed])
        statement = next(program)
        mine = await asyncpg.connect(postgres_url)
        transaction = mine.transaction()
        await transaction.start()
        rows = await mine.fetch(statement.sql, *statement.parameters)
        with pytest.raises(StopIteration) as stop:
            program.send(rows)
        [answer] = stop.value.value
        with pytest.raises(UniqueBusy):
            await store.enqueue([keyed])
        await transaction.rollback()
        await mine.close()
        [other] = await store.enqueue([keyed])
        assert other.created
        assert other.id != answer.id


async def test_a_users_transaction_that_comes_too_late_for_its_job(postgres_url: str) -> None:
    """The addition commits after the job ended: the sweeper cancels the task and counts it."""
    async with opened(postgres_url) as store:
        job, _ = await store.create_job(NewJob(name="j", tasks=(NewTask(name="t"),)))
        statement = next(store.enqueue_program([NewTask(name="late", job=job, queue="other")]))
        mine = await asyncpg.connect(postgres_url)
        transaction = mine.transaction()
        await transaction.start()
        [row] = await mine.fetch(statement.sql, *statement.parameters)
        [claim] = await store.claim("w", WANTS)
        await asyncio.wait_for(store.finish("w", [done(claim)]), timeout=5)
        await transaction.commit()
        await mine.close()
        assert await store.expire() == 1
        assert (await store.cancel([row["id"]]))[row["id"]] is CancelAnswer.TOO_LATE
        record = await store.get_job(job)
        assert record is not None
        assert (record.state, record.total, record.completed, record.cancelled) == ("completed", 2, 1, 1)


@pytest.mark.parametrize("postgres_template", [None], ids=["empty"])
async def test_no_schema_says_what_to_run(postgres_url: str) -> None:
    with pytest.raises(SchemaError, match="headrace db upgrade"):
        await PostgresStore(postgres_url, StoreOptions()).open()


async def test_a_newer_schema_is_refused(postgres_url: str) -> None:
    async with opened(postgres_url):
        pass
    raw = await asyncpg.connect(postgres_url)
    await raw.execute("UPDATE headrace.meta SET value = '9999' WHERE key = 'schema'")
    await raw.close()
    with pytest.raises(SchemaError, match="newer"):
        await PostgresStore(postgres_url, StoreOptions()).open()


async def test_an_unreachable_server_is_named_without_its_password() -> None:
    store = PostgresStore("postgresql://me:secret@127.0.0.1:1/none", StoreOptions())
    with pytest.raises(StoreUnavailable, match=r"me:\*\*\*@127") as raised:
        await store.open()
    assert "secret" not in str(raised.value)


async def test_a_restart_of_the_server_is_survived(private_postgres: PrivatePostgres, postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        [answer] = await store.enqueue([NewTask(name="t")])
        await asyncio.to_thread(private_postgres.restart)
        assert (await store.get([answer.id]))[answer.id].state is TaskState.PENDING


async def test_another_app_in_the_same_database(postgres_url: str) -> None:
    migrations.upgrade(postgres_url, name="billing")
    async with opened(postgres_url) as store:
        other = PostgresStore(postgres_url, StoreOptions(name="billing"))
        await other.open()
        [answer] = await other.enqueue([NewTask(name="t")])
        assert await store.claim("w", WANTS) == []
        assert [claim.id for claim in await other.claim("w", WANTS)] == [answer.id]
        await other.close()
