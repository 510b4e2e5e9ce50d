"""When the claimer asks, and for what."""

import asyncio
import random
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from headrace.core.lanes import Lane
from headrace.core.task import ClaimedTask, Want
from headrace.store.sqlite import SQLiteStore, riding
from headrace.store.sqlite.connection import Transaction
from headrace.worker import claiming
from headrace.worker.buffer import Buffer
from headrace.worker.claiming import Claimer, Throughput
from tests.worker.bench import Bench, opened
from tests.worker.test_buffer import held


async def noop() -> None: ...


def claimer_of(
    bench: Bench,
    buffer: Buffer,
    *,
    answers: list[Sequence[ClaimedTask]] | None = None,
    free: int = 1,
    busy: bool = False,
) -> Claimer:
    claimer = Claimer(
        store=bench.store,
        worker=lambda: "w",
        buffer=buffer,
        free={"coroutine": lambda: free},
        received=lambda claims, _: (answers if answers is not None else []).append(claims),
        poll=30.0,
        busy=lambda: busy,
        rng=random.Random(1),
    )
    claimer.set_queues(["default"])
    return claimer


async def test_work_announced_while_a_claim_finds_nothing_is_asked_for_at_once(bench: Bench) -> None:
    """The claim may have looked before the work was there; and what nobody announced may wait a moment."""
    claimer = claimer_of(bench, Buffer(retry_ratio=0.3))
    claimer.ask_everywhere()
    wants = claimer.begin()
    assert {want.lane for want in wants} == {Lane.PRIMARY, Lane.RETRY}
    claimer.poke("default")
    claimer.end(wants, [], asked_at=time.monotonic())
    assert not claimer.found_nothing
    again = claimer.begin()
    assert again
    claimer.end(again, [], asked_at=time.monotonic())
    assert claimer.found_nothing
    assert claimer.next_in > 0
    assert claimer.begin() == []


async def test_an_empty_answer_is_told_too(bench: Bench) -> None:
    """What waits in the buffer for the other lane's turn would else wait until something else arrives."""
    answers: list[Sequence[ClaimedTask]] = []
    claimer = claimer_of(bench, Buffer(retry_ratio=0.3), answers=answers)
    claimer.end(claimer.begin(), [], asked_at=time.monotonic())
    assert answers == [[]]


async def test_a_lane_that_is_owed_is_asked_for_again_at_once(bench: Bench) -> None:
    """The buffer is full enough, of one lane while it is the other's turn: nobody may wait for the next poll."""
    buffer = Buffer(retry_ratio=0.3)
    claimer = claimer_of(bench, buffer, free=0)
    buffer.add([held(lane=Lane.RETRY)])
    assert buffer.queue("coroutine", "default").owes()
    retry = [Want(queue="default", pool="coroutine", lane=Lane.RETRY, n=1)]
    claimer.end(retry, [], asked_at=time.monotonic())
    assert claimer.next_in == 0
    assert Lane.PRIMARY in {want.lane for want in claimer.begin()}


async def test_an_answer_that_is_older_than_new_work_does_not_hide_it(bench: Bench) -> None:
    """A claim of retries goes, new work comes and is claimed beside it, and only then the first one says that there was
    none: the rest of the new work would wait for the next poll behind retries."""
    answers: list[Sequence[ClaimedTask]] = []
    buffer = Buffer(retry_ratio=0.3)
    claimer = claimer_of(bench, buffer, answers=answers, free=1, busy=True)
    bench.app.add(noop)
    async with opened(bench):
        running = asyncio.create_task(claimer.run())
        primary = buffer.queue("coroutine", "default").lanes[Lane.PRIMARY]
        primary.more = False
        asked_at = time.monotonic()
        carried = claimer.begin(riding=True)
        for _ in range(3):
            await bench.enqueue("noop")
        claimer.poke("default")
        await until(lambda: answers)
        assert primary.more
        claimer.end(carried, [], asked_at=asked_at)
        assert primary.more
        claimer.end(carried, [], asked_at=time.monotonic())
        assert not primary.more
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("free", [3, 0])
async def test_new_work_does_not_wait_behind_retries_that_are_on_their_way(bench: Bench, free: int) -> None:
    """A finish carries a claim of retries; what is announced meanwhile is claimed beside it, if it could start."""
    answers: list[Sequence[ClaimedTask]] = []
    buffer = Buffer(retry_ratio=0.3)
    claimer = claimer_of(bench, buffer, answers=answers, free=free, busy=True)
    bench.app.add(noop)
    async with opened(bench):
        running = asyncio.create_task(claimer.run())
        buffer.queue("coroutine", "default").lanes[Lane.PRIMARY].more = False
        carried = claimer.begin(riding=True)
        new = [await bench.enqueue("noop") for _ in range(5)]
        claimer.poke("default")
        if free:
            await until(lambda: answers)
            assert [claim.id for claim in answers[0]] == new[:free]
            assert claimer.under_way, "the one that is carried"
        else:
            await asyncio.sleep(0.2)
            assert answers == []
        claimer.end(carried, [], asked_at=time.monotonic())
        claimer.close()
        await asyncio.wait_for(running, 20)


async def test_word_of_retries_sends_no_claim_beside_those_of_retries(bench: Bench) -> None:
    """They announce each other, and each time a transaction would look for new work in vain. A claim that may have
    missed them is followed by another all the same.
    """
    answers: list[Sequence[ClaimedTask]] = []
    buffer = Buffer(retry_ratio=0.3)
    claimer = claimer_of(bench, buffer, answers=answers, free=3, busy=True)
    bench.app.add(noop)
    async with opened(bench):
        running = asyncio.create_task(claimer.run())
        buffer.queue("coroutine", "default").lanes[Lane.PRIMARY].more = False
        carried = claimer.begin(riding=True)
        task = await bench.enqueue("noop")
        claimer.poke("default", new=False)
        await asyncio.sleep(0.2)
        assert answers == []
        claimer.end(carried, [], asked_at=time.monotonic())
        assert not claimer.found_nothing
        again = claimer.begin(riding=True)
        assert {want.lane for want in again} == {Lane.PRIMARY, Lane.RETRY}
        buffer.queue("coroutine", "default").lanes[Lane.PRIMARY].more = False
        buffer.queue("coroutine", "default").lanes[Lane.RETRY].more = True
        claimer.poke("default")
        await until(lambda: any(answers))
        assert [claim.id for found in answers for claim in found] == [task]
        claimer.end(again, [], asked_at=time.monotonic())
        claimer.close()
        await asyncio.wait_for(running, 20)


async def test_nothing_overtakes_while_notes_are_compared_with_the_ledger(bench: Bench) -> None:
    """It would be in the ledger's answer, unknown to whoever asked, and be taken in twice."""
    answers: list[Sequence[ClaimedTask]] = []
    buffer = Buffer(retry_ratio=0.3)
    claimer = claimer_of(bench, buffer, answers=answers, free=3, busy=True)
    bench.app.add(noop)
    async with opened(bench):
        running = asyncio.create_task(claimer.run())
        buffer.queue("coroutine", "default").lanes[Lane.PRIMARY].more = False
        assert claimer.pause_for_check()
        task = await bench.enqueue("noop")
        claimer.poke("default")
        await asyncio.sleep(0.2)
        assert await bench.store.held("w", limit=10) == []
        claimer.checked()
        await until(lambda: answers)
        assert [claim.id for claim in answers[0]] == [task]
        claimer.close()
        await asyncio.wait_for(running, 20)


@asynccontextmanager
async def idle(bench: Bench, answers: list[Sequence[ClaimedTask]]) -> AsyncGenerator[Claimer]:
    """A claimer that runs and has seen that there is nothing."""
    claimer = claimer_of(bench, Buffer(retry_ratio=0.3), answers=answers)
    running = asyncio.create_task(claimer.run())
    try:
        claimer.ask_everywhere()
        await until(lambda: claimer.found_nothing and not claimer.under_way)
        answers.clear()
        yield claimer
    finally:
        claimer.close()
        await asyncio.wait_for(running, 20)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  nothing announces it
            await asyncio.sleep(0.002)


@asynccontextmanager
async def held_at_the_commit(store: SQLiteStore) -> AsyncGenerator[threading.Event]:
    """The store's next commit waits for the end of the block; the event says that it has come so far."""
    commits, goes_on = threading.Event(), threading.Event()

    def trace(statement: str) -> None:
        if statement == "COMMIT" and not goes_on.is_set():
            commits.set()
            assert goes_on.wait(20)

    def watch(transaction: Transaction) -> None:
        transaction.connection.set_trace_callback(trace)

    await store.database.alone(watch)
    try:
        yield commits
    finally:
        goes_on.set()


# Only a transaction of this process can take a claim along.
on_sqlite = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is: a claimer that found nothing does not ask again by itself, and nobody has to renew
    its offers.
    """
    monkeypatch.setattr(claiming, "_FIRST_PAUSE", 30.0)
    monkeypatch.setattr(riding, "STALE_AFTER", 60.0)


def sqlite_only(bench: Bench) -> SQLiteStore:
    assert isinstance(bench.store, SQLiteStore)
    return bench.store


@on_sqlite
async def test_an_idle_claimer_claims_with_the_transaction_that_brings_work(bench: Bench) -> None:
    """By poll it would ask in half a minute, and nobody listens to wake-ups here."""
    sqlite_only(bench)
    answers: list[Sequence[ClaimedTask]] = []
    async with opened(bench), idle(bench, answers) as claimer:
        tasks: list[int] = []
        for _ in range(3):
            await until(lambda: claimer.found_nothing and claimer._offer is not None)
            tasks.append(await bench.enqueue("add", {"a": 1, "b": 2}))
            await until(lambda: [claim.id for claims in answers for claim in claims] == tasks)


@on_sqlite
async def test_a_claim_that_goes_along_is_the_only_one_under_way(bench: Bench) -> None:
    store = sqlite_only(bench)
    answers: list[Sequence[ClaimedTask]] = []
    async with opened(bench), idle(bench, answers) as claimer:
        async with held_at_the_commit(store) as commits:
            enqueueing = asyncio.create_task(bench.enqueue("add", {"a": 1, "b": 2}))
            assert await asyncio.to_thread(commits.wait, 20)
            claimer.poke("default")
            assert claimer.under_way
            assert claimer.begin(riding=True) == []
            assert not claimer.pause_for_check()
        await enqueueing
        await until(lambda: answers)
        assert not claimer.under_way or claimer.begin() == []


@on_sqlite
async def test_a_claimer_that_closes_waits_for_what_goes_along(bench: Bench) -> None:
    """Else it would be committed for a worker that is gone."""
    store = sqlite_only(bench)
    answers: list[Sequence[ClaimedTask]] = []
    async with opened(bench):
        async with idle(bench, answers) as claimer, held_at_the_commit(store) as commits:
            enqueueing = asyncio.create_task(bench.enqueue("add", {"a": 1, "b": 2}))
            assert await asyncio.to_thread(commits.wait, 20)
            claimer.close()
        assert [claim.id for claims in answers for claim in claims] == [await enqueueing]


@pytest.mark.parametrize("ends", ["closed", "suspended", "cancelled"])
@on_sqlite
async def test_nothing_goes_along_for_a_claimer_that_may_not_claim(bench: Bench, ends: str) -> None:
    sqlite_only(bench)
    claimer = claimer_of(bench, Buffer(retry_ratio=0.3))
    async with opened(bench):
        running = asyncio.create_task(claimer.run())
        claimer.ask_everywhere()
        await until(lambda: claimer.found_nothing)
        if ends == "closed":
            claimer.close()
        elif ends == "suspended":
            claimer.suspend(True)
        else:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        task = await bench.enqueue("add", {"a": 1, "b": 2})
        assert await bench.state(task) == "pending"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@on_sqlite
async def test_what_went_along_for_a_claimer_that_was_cancelled_goes_back(bench: Bench) -> None:
    store = sqlite_only(bench)
    claimer = claimer_of(bench, Buffer(retry_ratio=0.3))
    async with opened(bench):
        running = asyncio.create_task(claimer.run())
        claimer.ask_everywhere()
        await until(lambda: claimer.found_nothing)
        async with held_at_the_commit(store) as commits:
            enqueueing = asyncio.create_task(bench.enqueue("add", {"a": 1, "b": 2}))
            assert await asyncio.to_thread(commits.wait, 20)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        wants = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)]
        task, claims = await enqueueing, []
        async with asyncio.timeout(20):
            while not claims:
                claims = await store.claim("another", wants)
        assert [(claim.id, claim.claim_no) for claim in claims] == [(task, 2)]


def test_a_burst_is_seen_before_its_first_window_closes() -> None:
    """Starts count from 10 ms on; with a window that had to close first, claims would stay at the free places."""
    throughput = Throughput(window=0.2)
    throughput.count(1, 100.0)  # after a quiet time: nothing is known yet
    throughput.count(100, 100.004)
    assert throughput.rate(100.005) < 10
    throughput.count(200, 100.02)
    assert throughput.rate(100.02) == pytest.approx(300 / 0.02)


def test_a_burst_that_is_over_does_not_keep_its_rate() -> None:
    throughput = Throughput(window=0.2)
    throughput.count(1, 100.0)
    throughput.count(2000, 100.1)
    throughput.count(2000, 100.2)
    assert throughput.rate(100.21) == pytest.approx(20_000)
    assert throughput.rate(101.2) == 0.0
