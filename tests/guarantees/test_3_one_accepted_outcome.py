"""Promise 3: one accepted outcome per task and run. Terminal states are final until someone retries by hand.

Everything here works on the store itself, with several stores at once on one ledger (each has its own connections, as
another process would), and with triggers inside the database that refuse a second outcome on their own account.
"""

import asyncio
import contextlib
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headrace.core.limits import Gate
from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import ClaimedTask, Ref
from headrace.store.base import CancelAnswer, Started, Store
from headrace.store.connect import connect
from headrace.testing.store_conformance.ledger import completed, failed, failed_for_good, lost, released, stopped
from tests.guarantees.ledgers import a_worker, claim, claimed, enqueue, prepare, ref, sound, stores, together
from tests.support.sizes import sized
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = sized(small=40, full=400)


async def _state(store: Store, task: int) -> str:
    return (await store.get([task]))[task].state.value


# --- many claimers ----------------------------------------------------------------------------------------------------


@pytest.mark.chaos
@pytest.mark.timeout(300)
@pytest.mark.requirement("A6", "A37", "A42")
def test_many_claimers_lose_nothing_and_accept_nothing_twice(store_url: str) -> None:
    """No (task, claim) is handed out twice (A6, A37) and each task has exactly one accepted outcome, on the real
    PostgreSQL as well (A42), while claims are given back and reports repeated.
    """
    claimers, processes, tasks = sized(small=(20, 4, 2_000), full=(100, 8, 10_000))
    asyncio.run(_many_tasks(store_url, tasks))
    shares = [claimers // processes + (number < claimers % processes) for number in range(processes)]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.guarantees.claimers", store_url, str(share), str(number)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number, share in enumerate(shares)
    ]  # fmt: skip
    try:
        answers = [process.communicate(timeout=280) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert [process.returncode for process in running] == [0] * processes, [errors[-2000:] for _, errors in answers]
    tallies: list[dict[str, Any]] = [json.loads(output) for output, _ in answers]
    assert [fault for tally in tallies for fault in tally["faults"]] == []

    handed_out = Counter((task, claim_no) for tally in tallies for task, claim_no in tally["claimed"])
    assert [found for found, times in handed_out.items() if times > 1] == []
    accepted = Counter(task for tally in tallies for task, _ in tally["accepted"])
    assert len(accepted) == tasks
    assert [task for task, times in accepted.items() if times > 1] == []
    asyncio.run(_all_completed_once(store_url, accepted))


async def _many_tasks(url: str, count: int) -> None:
    # Without the guard's triggers: they would serialise the claimers and hide what only a real race shows.
    prepare(url, guarded=False)
    async with _open(url) as store:
        for start in range(0, count, 1000):
            await enqueue(store, min(1000, count - start), priority=start % 3)


async def _all_completed_once(url: str, tasks: Counter[int]) -> None:
    async with _open(url) as store:
        ids = sorted(tasks)
        for start in range(0, len(ids), 1000):
            records = await store.get(ids[start : start + 1000])
            assert all(record.state == TaskState.COMPLETED for record in records.values())
            assert all(record.attempt == 1 for record in records.values()), "a task was charged other than once"
        await sound(store)


@contextlib.asynccontextmanager
async def _open(url: str) -> AsyncIterator[Store]:
    store = connect(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


# --- cancel against everything ----------------------------------------------------------------------------------------


async def _end_as_told(store: Store, worker: str, task: ClaimedTask) -> None:
    """What a worker does with a claim it was told to stop."""
    report = await store.finish(worker, [stopped(task)])
    assert report.accepted == {ref(task)}


@pytest.mark.chaos
@pytest.mark.requirement("A19")
def test_cancel_races_with_the_claim(clean_url: str) -> None:
    """`cancelled` means that nobody got it, `cancelling` that someone did and is told; it ends cancelled either way."""

    async def race() -> None:
        async with stores(clean_url, 3) as (one, two, three):
            worker = await a_worker(one)
            answers: Counter[str] = Counter()
            for number in range(ROUNDS):
                (task,) = await enqueue(three)
                acts = [lambda task=task: one.cancel([task]), lambda: claim(two, worker)]
                answer, claims = _in_order(number, await together(*_swapped(number, acts)))
                answers[answer[task]] += 1
                if answer[task] == CancelAnswer.CANCELLED:
                    assert claims == []
                else:
                    assert answer[task] == CancelAnswer.CANCELLING
                    assert [found.id for found in claims] == [task]
                    assert await three.cancelling(worker) == [ref(claims[0])]
                    assert (await two.start(worker, [ref(claims[0])]))[ref(claims[0])] == Started.CANCELLING
                    await _end_as_told(two, worker, claims[0])
                record = (await three.get([task]))[task]
                assert (record.state, record.reason) == (TaskState.CANCELLED, "user")
                assert await claim(two, worker) == []
            assert sum(answers.values()) == ROUNDS

    asyncio.run(race())


@pytest.mark.chaos
@pytest.mark.requirement("A19")
def test_cancel_races_with_the_start(clean_url: str) -> None:
    """A claimed task is told to stop whether its start comes first or second; the start never undoes the cancel."""

    async def race() -> None:
        async with stores(clean_url) as (one, two):
            worker = await a_worker(one)
            for number in range(ROUNDS):
                task = await claimed(one, worker)
                acts = [lambda task=task: one.cancel([task.id]), lambda task=task: two.start(worker, [ref(task)])]
                answer, started = _in_order(number, await together(*_swapped(number, acts)))
                assert answer == {task.id: CancelAnswer.CANCELLING}
                assert started[ref(task)] in (Started.STARTED, Started.CANCELLING)
                assert await _state(one, task.id) == "cancelling"
                assert await two.cancelling(worker) == [ref(task)]
                assert await two.start(worker, [ref(task)]) == {ref(task): Started.CANCELLING}
                await _end_as_told(two, worker, task)
                assert await _state(one, task.id) == "cancelled"

    asyncio.run(race())


@pytest.mark.chaos
def test_cancel_races_with_the_finish(clean_url: str) -> None:
    """A success stands whoever comes first, and `cancel` says `too_late` only when it stood before.

    A requeue that meets a cancel ends cancelled in both orders: before it, by the finish; after it, by the cancel.
    """

    async def race() -> None:
        async with stores(clean_url) as (one, two):
            worker = await a_worker(one)
            for number in range(ROUNDS):
                task = await claimed(one, worker)
                settlement = (completed, failed_for_good, failed)[number % 3](task)
                acts = [
                    lambda task=task: one.cancel([task.id]),
                    lambda settlement=settlement: two.finish(worker, [settlement]),
                ]
                (answer,), report = _in_order(number // 3, await together(*_swapped(number // 3, acts)), first=list_of)
                assert report.accepted == {ref(task)}
                state = await _state(one, task.id)
                if settlement.state == TaskState.PENDING:
                    assert answer in (CancelAnswer.CANCELLED, CancelAnswer.CANCELLING)
                    assert state == "cancelled"
                else:
                    assert answer in (CancelAnswer.TOO_LATE, CancelAnswer.CANCELLING)
                    assert state == settlement.state
                assert await one.cancel([task.id]) == {task.id: CancelAnswer.TOO_LATE}
                assert await _state(one, task.id) == state

    asyncio.run(race())


def list_of(answer: dict[int, CancelAnswer]) -> list[CancelAnswer]:
    return list(answer.values())


@pytest.mark.chaos
@pytest.mark.requirement("A68")
def test_cancel_races_with_the_rescue(clean_url: str) -> None:
    """What a dead worker held and someone cancels ends cancelled, once, in both orders; never back to pending.

    A68: without the cancel the same rescue puts the task back to pending.
    """

    async def race() -> None:
        async with stores(clean_url, 3) as (one, two, three):
            living = await a_worker(one)
            for number in range(ROUNDS):
                dead = await a_worker(one)
                task = await claimed(one, dead)
                if number % 2:
                    await one.start(dead, [ref(task)])
                assert await one.take_over(dead, beat=0)
                settle = lost if number % 2 else released
                acts = [
                    lambda task=task: three.cancel([task.id]),
                    lambda dead=dead, settle=settle: _rescue(two, dead, settle),
                ]
                (answer,), report = _in_order(number // 2, await together(*_swapped(number // 2, acts)), first=list_of)
                assert answer in (CancelAnswer.CANCELLED, CancelAnswer.CANCELLING)
                assert report == {ref(task)}
                assert await _state(one, task.id) == "cancelled"
                assert await claim(one, living) == []
            rescued = await claimed(one, dead := await a_worker(one))
            assert await one.take_over(dead, beat=0)
            assert await _rescue(two, dead, released) == {ref(rescued)}
            assert await _state(one, rescued.id) == "pending"
            (again,) = await claim(one, living)
            await one.finish(living, [completed(again)])

    asyncio.run(race())


async def _rescue(store: Store, dead: str, settle: Any) -> frozenset[Ref]:
    """What a rescuer does: read what the dead one holds, and settle it in the dead one's name."""
    accepted: set[Ref] = set()
    while held := await store.held(dead):
        report = await store.finish(dead, [settle(task) for task in held])
        accepted |= report.accepted
    return frozenset(accepted)


@pytest.mark.chaos
def test_the_end_of_the_patience_races_with_the_finish(clean_url: str) -> None:
    """The sweeper that ends a task which stays `cancelling` and the report of its worker: one of the two stands.

    If the sweeper was first, the report is refused and recorded as late.
    """

    async def race() -> None:
        async with stores(clean_url) as (one, two):
            worker = await a_worker(one)
            for number in range(ROUNDS):
                task = await claimed(one, worker)
                assert await one.cancel([task.id]) == {task.id: CancelAnswer.CANCELLING}
                acts = [
                    lambda: one.end_cancelling(grace=0.0),
                    lambda task=task: two.finish(worker, [completed(task)]),
                ]
                ended, report = _in_order(number, await together(*_swapped(number, acts)))
                if report.accepted:
                    assert (ended, await _state(one, task.id)) == (0, "completed")
                else:
                    assert (ended, report.refused) == (1, {ref(task)})
                    assert await _state(one, task.id) == "cancelled"
                    assert any(attempt.late_state == "succeeded" for attempt in await one.attempts(task.id))

    asyncio.run(race())


# --- rescuers ---------------------------------------------------------------------------------------------------------


@pytest.mark.chaos
@pytest.mark.requirement("A69")
def test_two_rescuers_of_one_dead_worker(clean_url: str) -> None:
    """One of many takes the dead worker over; even if two settle what it held, each task is settled once.

    A69: the dead worker's own late report for a task that another completed meanwhile is refused, recorded, and the
    second worker's result stands.
    """

    async def race() -> None:
        async with stores(clean_url, 4) as opened:
            one = opened[0]
            for _ in range(max(4, ROUNDS // 10)):
                dead, living = await a_worker(one), await a_worker(one)
                ids = await enqueue(one, 20)
                held = {task.id: task for task in await claim(one, dead, 20)}
                assert sorted(held) == sorted(ids)
                await one.start(dead, [ref(held[task]) for task in ids[:10]])
                took = await asyncio.gather(*(store.take_over(dead, beat=0) for store in opened))
                assert sorted(took) == [False, False, False, True]

                accepted = await asyncio.gather(*(_rescue(store, dead, _charged_if_running) for store in opened))
                settled = Counter(found for share in accepted for found in share)
                assert settled == Counter({ref(task): 1 for task in held.values()})
                records = await one.get(ids)
                assert [records[task].attempt for task in ids] == [1] * 10 + [0] * 10

                again = {task.id: task for task in await _claim_all(one, living, 20)}
                await one.finish(living, [completed(task, '"second"') for task in again.values()])
                late = await one.finish(dead, [completed(task, '"first"') for task in held.values()])
                assert late.refused == {ref(task) for task in held.values()}
                records = await one.get(ids)
                assert {record.result for record in records.values()} == {'"second"'}
                first = next(a for a in await one.attempts(ids[0]) if a.claim_no == held[ids[0]].claim_no)
                assert first.late_state == AttemptState.SUCCEEDED

    asyncio.run(race())


def _charged_if_running(task: ClaimedTask) -> Settlement:
    return lost(task) if task.state == "running" else released(task, suspect=True)


async def _claim_all(store: Store, worker: str, n: int) -> list[ClaimedTask]:
    """Requeued tasks become due a moment later."""
    found: list[ClaimedTask] = []

    async def enough() -> bool:
        found.extend(await claim(store, worker, n - len(found)))
        return len(found) >= n

    await eventually(enough)
    return found


# --- reports twice and late -------------------------------------------------------------------------------------------


def test_a_report_that_comes_twice_counts_once(clean_url: str) -> None:
    """The second copy is answered as `repeated`; attempt and history are as after the first, also when both race."""

    async def run() -> None:
        async with stores(clean_url, 3) as (one, two, three):
            worker = await a_worker(one)
            for settle in (completed, failed_for_good, failed, released):
                task = await claimed(one, worker)
                reports = await asyncio.gather(*(store.finish(worker, [settle(task)]) for store in (one, two, three)))
                assert sum(len(report.accepted) for report in reports) == 1
                assert not any(report.refused for report in reports), f"{settle.__name__}: {reports}"
                record = (await one.get([task.id]))[task.id]
                assert record.attempt == (0 if settle is released else 1)
                assert len([a for a in await one.attempts(task.id) if a.charged]) == record.attempt
                await one.cancel([task.id])

    asyncio.run(run())


def test_a_late_report_changes_nothing_and_is_recorded(clean_url: str) -> None:
    """Between the claim and the report the task was released, claimed by another, and completed."""

    async def run() -> None:
        async with stores(clean_url) as (one, two):
            first, second = await a_worker(one), await a_worker(one)
            old = await claimed(one, first)
            await one.finish(first, [released(old)])
            (new,) = await claim(two, second)
            assert new.claim_no > old.claim_no
            while_held = await one.finish(first, [completed(old, '"old"')])
            assert while_held.refused == {ref(old)}
            assert await _state(one, old.id) == "claimed"
            await two.finish(second, [completed(new, '"new"')])
            after = await one.finish(first, [failed_for_good(old)])
            assert after.refused == {ref(old)}
            record = (await one.get([old.id]))[old.id]
            assert (record.state, record.result, record.attempt) == (TaskState.COMPLETED, '"new"', 1)
            assert any(a.claim_no == old.claim_no and a.late_state for a in await one.attempts(old.id))

    asyncio.run(run())


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.chaos
def test_a_manual_retry_racing_with_itself_opens_one_run(clean_url: str) -> None:
    """Of several at once exactly one changes the task; there is one new run, and it is claimed once."""

    async def race() -> None:
        async with stores(clean_url, 4) as opened:
            one = opened[0]
            worker = await a_worker(one)
            (task,) = await enqueue(one)
            for run in range(1, max(6, ROUNDS // 10)):
                (found,) = await _claim_all(one, worker, 1)
                assert (found.id, found.run_no) == (task, run)
                await one.finish(worker, [(failed_for_good, completed)[run % 2](found)])
                changed = await asyncio.gather(*(store.retry([task]) for store in opened))
                assert sorted(changed) == [[], [], [], [task]]
                record = (await one.get([task]))[task]
                assert (record.state, record.run_no, record.attempt) == (TaskState.PENDING, run + 1, 0)
            assert len(await _claim_all(one, worker, 1)) == 1
            assert await claim(one, worker) == []

    asyncio.run(race())


def test_a_manual_retry_opens_a_run_that_old_reports_cannot_touch(clean_url: str) -> None:
    async def run() -> None:
        async with stores(clean_url) as (one, two):
            worker = await a_worker(one)
            old = await claimed(one, worker)
            await one.finish(worker, [failed_for_good(old)])
            assert await two.retry([old.id]) == [old.id]
            late = await one.finish(worker, [completed(old, '"old run"')])
            assert late.accepted == frozenset()
            assert await _state(one, old.id) == "pending"
            (new,) = await _claim_all(two, worker, 1)
            assert (new.run_no, new.attempt) == (2, 0)
            assert new.claim_no > old.claim_no
            await two.finish(worker, [completed(new, '"new run"')])
            assert (await one.get([old.id]))[old.id].result == '"new run"'

    asyncio.run(run())


@pytest.mark.requirement("F25")
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_a_terminal_state_is_final(clean_url: str, end: str) -> None:
    """Every verb but a manual retry is tried on a task that is over, with the old fence and without: the record stays
    the same, value for value (F25 for the transitions out of a terminal state).
    """

    async def run() -> None:
        async with stores(clean_url) as (one, two):
            worker = await a_worker(one)
            task = await claimed(one, worker, gates=(Gate(kind="limit", key="door", n=1),))
            assert (await one.admit(worker, [task])).admitted == {ref(task)}
            old = ref(task)
            settlement = {"completed": completed, "failed": failed_for_good, "cancelled": stopped}[end](task)
            await one.finish(worker, [settlement])
            before, stranger = (await one.get([task.id]))[task.id], await a_worker(one)
            assert before.state == end

            assert await two.cancel([task.id]) == {task.id: CancelAnswer.TOO_LATE}
            assert await two.start(worker, [old]) == {old: Started.REFUSED}
            assert not await two.record_handle(worker, old, "handle")
            assert await two.save_checkpoint(worker, old, "step", "1") is None
            await two.progress(worker, [(old, '"half"')])
            for settle in (completed, failed_for_good, failed, released, stopped, lost):
                assert (await two.finish(worker, [settle(task)])).accepted == frozenset()
                assert (await two.finish(stranger, [settle(task)])).accepted == frozenset()
            assert (await two.admit(worker, [task])).admitted == frozenset()
            await two.promote()
            await two.expire()
            await two.unpark()
            assert await two.end_cancelling(grace=0.0) == 0
            assert await two.deregister(worker) == 0
            other = await a_worker(one)
            assert await claim(two, other, 10) == []
            assert (await one.get([task.id]))[task.id] == before

    asyncio.run(run())


# --- order of two acts ------------------------------------------------------------------------------------------------

_RNG = random.Random(3)


def _swapped(number: int, acts: list[Any]) -> list[Any]:
    """Even rounds begin with the first act, odd ones with the second; now and then one gets a head start."""
    ordered = acts if number % 2 == 0 else acts[::-1]
    if number % 4 < 2:
        return ordered
    pause = _RNG.random() / 200

    async def delayed(act: Any = ordered[1]) -> Any:
        await asyncio.sleep(pause)
        return await act()

    return [ordered[0], delayed]


def _in_order(number: int, answers: Any, *, first: Any = None) -> tuple[Any, Any]:
    one, two = answers if number % 2 == 0 else tuple(answers)[::-1]
    return (first(one) if first else one), two
