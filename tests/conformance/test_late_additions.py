"""A user's transaction adds tasks to a job, and the job ends before the transaction does.

On PostgreSQL the transaction is open while the job ends. On SQLite it would hold the only write lock; there the user's
connection commits each statement by itself, and the job ends between the first one, which asks for its state, and the
rest.
"""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from headrace.core.states import JobState
from headrace.core.task import Enqueued, NewJob, NewTask
from headrace.store.base import Program, Statement, StoreOptions
from headrace.store.connect import connect, postgres_dsn, sqlite_path
from headrace.testing.store_conformance.jobs import HOOKS, counters, hooks_of
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, failed_for_good, ref, stopped, task

type Run = Callable[[Statement], Awaitable[Any]]


class UserTransaction:
    """The program of an enqueue, stopped at the last point before it takes effect."""

    def __init__(self, program: Program[list[Enqueued]], run: Run, commit: Callable[[], Awaitable[None]]) -> None:
        self._program = program
        self._run = run
        self._commit = commit
        self._statement = next(program)
        self._ids: list[int] | None = None

    async def step(self) -> None:
        try:
            self._statement = self._program.send(await self._run(self._statement))
        except StopIteration as end:
            self._ids = [answer.id for answer in end.value]

    async def commit(self) -> list[int]:
        while self._ids is None:
            await self.step()
        await self._commit()
        return self._ids


@asynccontextmanager
async def user_transaction(ledger: Ledger, url: str, *tasks: NewTask):
    program = ledger.store.enqueue_program(tasks)
    if url.startswith("sqlite:"):
        file = sqlite3.connect(sqlite_path(url), isolation_level=None)

        async def execute(statement: Statement) -> Any:
            return file.execute(statement.sql, statement.parameters).fetchall()

        async def nothing() -> None: ...

        transaction = UserTransaction(program, execute, nothing)
        await transaction.step()
        yield transaction
        file.close()
    else:
        connection = await asyncpg.connect(postgres_dsn(url))
        own = connection.transaction()
        await own.start()

        async def fetch(statement: Statement) -> Any:
            return await connection.fetch(statement.sql, *statement.parameters)

        transaction = UserTransaction(program, fetch, own.commit)
        await transaction.step()
        yield transaction
        await connection.close()


async def _complete(ledger: Ledger, job: int) -> None:
    await ledger.finish("a", completed(await ledger.claim_one()))


async def _fail(ledger: Ledger, job: int) -> None:
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))


async def _cancel(ledger: Ledger, job: int) -> None:
    await ledger.store.cancel_job(job)


async def _time_out(ledger: Ledger, job: int) -> None:
    await ledger.let_pass(0.3)
    await ledger.store.expire()


ENDINGS = {
    "completed": (_complete, JobState.COMPLETED, "job_cancelled", "hook.success"),
    "failed": (_fail, JobState.FAILED, "job_failed", "hook.failure"),
    "cancelled": (_cancel, JobState.CANCELLED, "job_cancelled", "hook.failure"),
    "timed out": (_time_out, JobState.FAILED, "job_failed", "hook.failure"),
}


@asynccontextmanager
async def late(url: str, ending: str, n: int = 1):
    """A job of one task that ended, and `n` tasks that were added to it too late."""
    ledger = Ledger(lambda: connect(url, StoreOptions()), None)
    await ledger.open()
    try:
        job, _ = await ledger.store.create_job(
            NewJob(
                name="j",
                tasks=(task(),),
                timeout=0.2 if ending == "timed out" else 600.0,
                on_success=task("hook.success", queue=HOOKS),
                on_failure=task("hook.failure", queue=HOOKS),
            )
        )
        end, state, _, hook = ENDINGS[ending]
        async with user_transaction(ledger, url, *[task("late", job=job) for _ in range(n)]) as transaction:
            await end(ledger, job)
            assert (await ledger.job(job)).state is state
            assert await hooks_of(ledger) == [hook]
            ids = await transaction.commit()
        over = await ledger.job(job)
        yield ledger, job, ids
        after = await ledger.job(job)
        assert (after.state, after.completed_at, after.run_no) == (over.state, over.completed_at, over.run_no)
        assert (after.total, after.open) == (n + 1, 0)
        assert await hooks_of(ledger) == []
        assert await ledger.store.expire() == 0
        assert await ledger.store.check() == []
    finally:
        await ledger.close()


@pytest.mark.parametrize("ending", ENDINGS)
async def test_what_nobody_claimed_is_cancelled(store_url: str, ending: str) -> None:
    async with late(store_url, ending, n=2) as (ledger, job, ids):
        before = counters(await ledger.job(job))
        assert before[0] == 3, "counted from the commit on"
        assert await ledger.store.expire() == 2
        for task_id in ids:
            record = await ledger.get(task_id)
            assert (record.state.value, record.reason) == ("cancelled", ENDINGS[ending][2])
        assert counters(await ledger.job(job)) == (*before[:3], before[3] + 2)
        assert await ledger.claim() == []


@pytest.mark.parametrize("ending", ENDINGS)
async def test_what_a_worker_claimed_first_may_complete_and_the_others_are_cancelled(
    store_url: str, ending: str
) -> None:
    """Also when its outcome comes before the sweeper: the finish must not hide the other from it."""
    async with late(store_url, ending, n=2) as (ledger, job, ids):
        before = counters(await ledger.job(job))
        claim = await ledger.claim_one("b")
        await ledger.finish("b", completed(claim))
        assert counters(await ledger.job(job)) == (3, before[1] + 1, *before[2:])
        assert await ledger.store.expire() == 1
        (other,) = set(ids) - {claim.id}
        assert await ledger.state(other) == "cancelled"
        assert await ledger.state(claim.id) == "completed"


@pytest.mark.parametrize("ending", ENDINGS)
async def test_the_worker_that_holds_one_is_told_to_stop(store_url: str, ending: str) -> None:
    async with late(store_url, ending, n=2) as (ledger, job, _):
        one, two = await ledger.claim("b")
        await ledger.store.start("b", [ref(one), ref(two)])
        await ledger.store.expire()
        assert set(await ledger.store.cancelling("b")) == {ref(one), ref(two)}
        # One obeys, one would rather be tried again.
        await ledger.finish("b", stopped(one), failed(two))
        for claim in (one, two):
            record = await ledger.get(claim.id)
            assert (record.state.value, record.reason) == ("cancelled", ENDINGS[ending][2])
        assert counters(await ledger.job(job))[0] == 3


async def test_one_that_fails_and_waits_for_its_retry_is_cancelled(store_url: str) -> None:
    async with late(store_url, "completed") as (ledger, _, ids):
        await ledger.finish("b", failed(await ledger.claim_one("b"), delay=60))
        assert await ledger.state(ids[0]) == "pending"
        assert await ledger.store.expire() == 1
        assert await ledger.state(ids[0]) == "cancelled"


async def test_one_that_fails_for_good_does_not_change_how_the_job_ended(store_url: str) -> None:
    """It is critical, but the job was over."""
    async with late(store_url, "cancelled") as (ledger, job, _):
        await ledger.finish("b", failed_for_good(await ledger.claim_one("b")))
        await ledger.store.expire()
        assert counters(await ledger.job(job)) == (2, 0, 1, 1)


async def test_a_retry_of_the_job_takes_them_in(store_url: str) -> None:
    """Opened again before the sweeper came: they are tasks of the new run."""
    async with late_and_reopened(store_url) as (ledger, job):
        await ledger.let_pass(0.01)
        assert await ledger.store.expire() == 0
        claims = await ledger.claim("b")
        await ledger.finish("b", *[completed(claim) for claim in claims])
        done = await ledger.job(job)
        assert (done.state, done.run_no, counters(done)) == (JobState.COMPLETED, 2, (2, 2, 0, 0))
        assert await ledger.store.check() == []


@asynccontextmanager
async def late_and_reopened(url: str):
    ledger = Ledger(lambda: connect(url, StoreOptions()), None)
    await ledger.open()
    try:
        job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(),)))
        async with user_transaction(ledger, url, task("late", job=job)) as transaction:
            await _fail(ledger, job)
            await transaction.commit()
        assert len(await ledger.store.retry_failed(job)) == 1
        yield ledger, job
    finally:
        await ledger.close()
