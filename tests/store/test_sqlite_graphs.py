"""Graphs on SQLite, beside what every store must do: how they are written, and what stays out of the way."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from headrace.core.clock import FakeClock
from headrace.core.errors import EnqueueError, GraphError
from headrace.core.outcome import Suspended
from headrace.core.states import JobState, TaskState
from headrace.core.task import After, EdgeKind, Key, NewJob, NewTask, Received
from headrace.store.base import Program, StoreOptions
from headrace.store.checker import WARNINGS
from headrace.store.sqlite import SQLiteStore
from headrace.store.sqlite.transaction import Transaction
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, ref, settled, task


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Ledger]:
    clock = FakeClock()
    ledger = Ledger(lambda: SQLiteStore(str(path), StoreOptions(extra={"clock": clock})), clock)
    await ledger.open()
    try:
        yield ledger
        assert [found for found in await ledger.store.check() if found.rule not in WARNINGS] == []
    finally:
        await ledger.close()


class Spool:
    """Tasks that are made while they are read, as often as they are."""

    def __init__(self, n: int, make: Callable[[int], NewTask], *, said: int | None = None) -> None:
        self.n = n
        self.make = make
        self.said = n if said is None else said

    def __len__(self) -> int:
        return self.said

    def __contains__(self, task: object) -> bool:
        return False

    def __iter__(self) -> Iterator[NewTask]:
        return map(self.make, range(self.n))


def behind(place: int, **edge: Any) -> tuple[After, ...]:
    return (After(task=place, local=True, **edge),)


async def test_a_job_is_read_in_batches_and_answered_without_a_list(tmp_path: Path) -> None:
    """A chain of more tasks than are read or answered at once; ids follow the places."""
    n = 2_500
    async with opened(tmp_path / "x.db") as ledger:
        spool = Spool(n, lambda place: task(f"t{place}", after=behind(place - 1) if place else ()))
        job, answers = await ledger.store.create_job(NewJob(name="chain", tasks=spool))
        assert len(answers) == n
        assert [answers[place].id - answers[0].id for place in (0, 1, 1_000, -1)] == [0, 1, 1_000, n - 1]
        assert [answer.id for answer in answers[5:8]] == [answers[5].id, answers[6].id, answers[7].id]
        assert sum(answer.created for answer in answers) == n
        records = await ledger.store.get([answers[0].id, answers[1_000].id, answers[n - 1].id])
        assert [(record.name, record.state) for record in records.values()] == [
            ("t0", TaskState.PENDING),
            ("t1000", TaskState.BLOCKED),
            (f"t{n - 1}", TaskState.BLOCKED),
        ]
        (edge,) = await ledger.store.edges([answers[1_000].id])
        assert edge.upstream == answers[999].id
        assert (await ledger.job(job)).total == n


@pytest.mark.parametrize("said", [2, 4])
async def test_a_spool_that_says_another_length_writes_nothing(tmp_path: Path, said: int) -> None:
    async with opened(tmp_path / "x.db") as ledger:
        with pytest.raises(EnqueueError, match="are said to be"):
            await ledger.store.create_job(NewJob(name="j", tasks=Spool(3, lambda _: task(), said=said)))
        assert await ledger.store.list_jobs() == []
        assert await ledger.claim() == []


async def test_runs_of_like_tasks_and_those_between_are_written_alike(tmp_path: Path) -> None:
    """Neighbours that differ in their arguments share a statement; nothing else may change by that."""
    kinds = [{}, {"priority": 2}, {"delay": 60.0}, {"approval": True}, {"max_age": 9.0}, {"critical": False}]

    def make(place: int) -> NewTask:
        options = kinds[place // 25 % len(kinds)] if place < 300 else kinds[place % len(kinds)]
        return task("t", arguments=f'{{"n":{place}}}', after=behind(place - 3) if place % 7 == 5 else (), **options)

    async with opened(tmp_path / "x.db") as ledger:
        _, answers = await ledger.store.create_job(NewJob(name="j", tasks=Spool(400, make)))
        records = await ledger.store.get([answer.id for answer in answers])
        for place, record in enumerate(records[answer.id] for answer in answers):
            meant = make(place)
            state = "blocked" if meant.after else "pending_approval" if meant.approval else "pending"
            assert (record.state, record.arguments, record.priority, record.critical) == (
                state,
                meant.arguments,
                meant.priority,
                meant.critical,
            )
            assert (record.expires_at is not None) == (meant.max_age is not None and not meant.after)
            assert record.waiting_on == ("approval" if meant.approval and meant.after else None)
            assert (record.eligible_at - record.created_at).total_seconds() == meant.delay


async def test_an_edge_to_a_task_whose_key_somebody_holds(tmp_path: Path) -> None:
    """It would lead out of the job. Its holder may have ended, and the job be over before its tasks are all read."""
    key = (Key(scope="unique", key="k", ttl=3600.0),)
    async with opened(tmp_path / "x.db") as ledger:
        await ledger.enqueue(task("holder", keys=key))
        await ledger.finish("a", failed_for_good(await ledger.claim_one()))
        spool = Spool(1_003, lambda n: task(keys=key) if n == 0 else task(after=behind(0) if n < 1_000 else ()))
        with pytest.raises(GraphError, match="holds, which is not of the same job"):
            await ledger.store.create_job(NewJob(name="j", tasks=spool))
        assert await ledger.store.list_jobs() == []
        assert await ledger.claim() == []


async def test_the_same_key_twice_in_a_job_makes_one_task(tmp_path: Path) -> None:
    """Also where the second is read with another batch: the caller asked to be refused by others only."""
    key = (Key(scope="unique", key="k", on_conflict="reject"),)
    async with opened(tmp_path / "x.db") as ledger:
        spool = Spool(1_500, lambda place: task(keys=key if place in (3, 1_400) else ()))
        job, answers = await ledger.store.create_job(NewJob(name="j", tasks=spool))
        assert answers[1_400] == (answers[3].id, False)
        assert (await ledger.job(job)).total == 1_499
        with pytest.raises(GraphError):
            await ledger.store.create_job(NewJob(name="j", tasks=(task(after=behind(0)),)))


async def run_by_the_user(path: Path, program: Program[Any]) -> Any:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("BEGIN")
        statement = next(program)
        while True:
            statement = program.send(connection.execute(statement.sql, statement.parameters).fetchall())
    except StopIteration as end:
        connection.execute("COMMIT")
        return end.value
    finally:
        connection.close()


async def test_a_transaction_of_the_users_own_takes_no_edges(tmp_path: Path) -> None:
    async with opened(tmp_path / "x.db") as ledger:
        program = ledger.store.enqueue_program([task(), task(after=behind(0))])
        with pytest.raises(EnqueueError, match="transaction of your own"):
            await run_by_the_user(tmp_path / "x.db", program)
        assert await ledger.claim() == []


async def test_an_event_of_a_users_own_transaction_is_delivered(tmp_path: Path) -> None:
    """By whoever looks next, and once: what was looked at is not looked at again."""
    async with opened(tmp_path / "x.db") as ledger:
        waiting = await ledger.enqueue_one()
        claim = await ledger.claim_one()
        assert await ledger.store.receive("a", ref(claim), "paid", event="e", key="k", timeout=None) is None
        await ledger.finish("a", settled(claim, Suspended(step="paid")))
        event = await run_by_the_user(tmp_path / "x.db", ledger.store.send_program("e", "k", "1"))
        assert await ledger.state(waiting) == "blocked"
        other = await ledger.another_store()
        assert await other.deliver() == 1
        assert (await ledger.store.deliver(), await ledger.state(waiting)) == (0, "pending")
        seen = sqlite3.connect(tmp_path / "x.db")
        assert seen.execute("SELECT value FROM headrace_meta WHERE key = 'delivered event'").fetchall() == [
            (str(event),)
        ]
        seen.close()
        again = await ledger.claim_due()
        found = await ledger.store.receive("a", ref(again), "paid", event="e", key="k", timeout=None)
        assert found == Received(payload="1")


async def test_an_event_behind_many_that_nobody_waits_for_is_delivered_by_one_call(tmp_path: Path) -> None:
    async with opened(tmp_path / "x.db") as ledger:
        waiting = await ledger.enqueue_one()
        claim = await ledger.claim_one()
        assert await ledger.store.receive("a", ref(claim), "paid", event="e", key="k", timeout=None) is None
        await ledger.finish("a", settled(claim, Suspended(step="paid")))
        others = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        others.execute("BEGIN")
        for n in range(1_300):
            program = ledger.store.send_program("e" if n == 1_299 else "other", "k", "1")
            statement = next(program)
            with suppress(StopIteration):
                while True:
                    statement = program.send(others.execute(statement.sql, statement.parameters).fetchall())
        others.execute("COMMIT")
        others.close()
        assert await ledger.store.deliver() == 1
        assert await ledger.state(waiting) == "pending"


async def test_who_nobody_waits_for_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task without a job costs no statement more than before there were graphs; a job's one look, and one barrier is
    written once for a whole batch."""
    asked: list[str] = []
    run = Transaction.run

    def noted(self: Transaction, query: str, parameters: Any = ()) -> int:
        asked.append(query)
        return run(self, query, parameters)

    monkeypatch.setattr(Transaction, "run", noted)
    ours = {"clear_ended", "note_ended", "clear_lowered", "note_lowered", "lower_barriers", "free_lowered"}

    async def finish(ledger: Ledger, n: int) -> list[str]:
        claims = await ledger.claim(n=n)
        assert len(claims) == n
        asked.clear()
        await ledger.finish("a", *map(completed, claims))
        return [query for query in asked if query in ours]

    async with opened(tmp_path / "x.db") as ledger:
        await ledger.enqueue(*[task() for _ in range(20)])
        assert await finish(ledger, 20) == []
        await ledger.store.create_job(NewJob(name="j", tasks=[task() for _ in range(20)]))
        assert await finish(ledger, 20) == ["clear_ended", "note_ended"]
        leaves = tuple(After(task=place, local=True) for place in range(20))
        tasks = [*[task() for _ in range(20)], task("last", after=leaves)]
        await ledger.store.create_job(NewJob(name="j", tasks=tasks))
        assert (await finish(ledger, 20)).count("lower_barriers") == 1
        assert (await ledger.claim_due()).name == "last"


async def test_a_wide_task_is_left_to_release_and_its_handlers_are_not(tmp_path: Path) -> None:
    """What can never run is cancelled by the finish itself, also where what is free has to wait for its turn."""
    n = 1_100
    kinds = [EdgeKind.ON_FAILURE if place % 100 == 0 else EdgeKind.ON_DONE for place in range(n)]
    async with opened(tmp_path / "x.db") as ledger:
        tasks = [task("root"), *[task("leaf", after=behind(0, kind=kind)) for kind in kinds]]
        job, _ = await ledger.store.create_job(NewJob(name="j", tasks=tasks))
        report = await ledger.finish("a", completed(await ledger.claim_one()))
        assert report.releasing
        assert (await ledger.job(job)).cancelled == 11
        assert await ledger.claim() == []
        looked_at = [await ledger.store.release(limit=600) for _ in range(3)]
        assert (sum(looked_at), looked_at[-1]) == (n, 0)
        assert len(await ledger.claim(n=2_000)) == n - 11


async def test_a_handled_failure_and_one_that_is_not(tmp_path: Path) -> None:
    async with opened(tmp_path / "x.db") as ledger:
        for handler, fate in ((completed, JobState.COMPLETED), (failed_for_good, JobState.FAILED)):
            tasks = (task("bad"), task("handler", after=behind(0, kind=EdgeKind.ON_FAILURE)))
            job, _ = await ledger.store.create_job(NewJob(name="j", tasks=tasks))
            await ledger.finish("a", failed_for_good(await ledger.claim_one()))
            assert not (await ledger.job(job)).state.terminal
            await ledger.finish("a", handler(await ledger.claim_due()))
            assert (await ledger.job(job)).state is fate


async def test_what_nobody_approved_is_not_run_again_without_that(tmp_path: Path) -> None:
    """Cancelled while it waited for a person: with its job, with what it needed, or by hand."""
    async with opened(tmp_path / "x.db") as ledger:
        tasks = (task("a"), task("b", approval=True, after=behind(0)), task("c", approval=True))
        job, answers = await ledger.store.create_job(NewJob(name="j", tasks=tasks))
        _, b, c = [answer.id for answer in answers]
        for again in (1, 2):
            if again == 1:
                await ledger.store.cancel_job(job)
            else:
                claims = await ledger.claim_due()
                await ledger.finish("a", failed_for_good(claims))
            assert len(await ledger.store.retry_failed(job)) == 3
            assert (await ledger.state(b), await ledger.state(c)) == ("blocked", "pending_approval")
        await ledger.finish("a", completed(await ledger.claim_due()))
        assert (await ledger.state(b), await ledger.state(c)) == ("pending_approval", "pending_approval")
        await ledger.store.decide(c, approved=True, by="ann")
        await ledger.finish("a", failed_for_good(await ledger.claim_due()))
        assert sorted(await ledger.store.retry_failed(job)) == [b, c]
        assert (await ledger.state(b), await ledger.state(c)) == ("pending_approval", "pending"), "it was approved"
        await ledger.finish("a", completed(await ledger.claim_due()))
        await ledger.store.clear(c)
        assert await ledger.state(c) == "pending_approval", "what was decided is forgotten"


async def test_a_retry_that_cannot_be_holds_no_key(tmp_path: Path) -> None:
    """It takes its unique key back, and then finds that what it needs has failed."""
    key = (Key(scope="unique", key="k", on_conflict="reject"),)
    async with opened(tmp_path / "x.db") as ledger:
        tasks = (task("a", critical=False), task("b", keys=key, after=behind(0)))
        _, answers = await ledger.store.create_job(NewJob(name="j", tasks=tasks))
        await ledger.finish("a", failed_for_good(await ledger.claim_one()))
        assert await ledger.store.retry([answers[1].id]) == []
        assert await ledger.store.check() == []
        assert await ledger.enqueue(task(keys=key))
