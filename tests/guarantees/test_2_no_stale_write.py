"""Promise 2: at least once, and never a stale write.

Every write of a worker is fenced by the number of its claim, which never repeats. A worker that lost its claim is
refused, the refusal is recorded on the attempt, and what the second run wrote stands.
"""

import asyncio
from collections.abc import Iterator

import pytest

from headrace.store.base import Started, Store, StoreOptions
from headrace.store.connect import connect
from tests.guarantees import seam
from tests.guarantees.harness import Harness
from tests.guarantees.ledger import Ledger
from tests.guarantees.processes import alive, freeze, thaw
from tests.support.sizes import sized
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]


# -- SIGSTOP -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A69", "A67", "A68")
@pytest.mark.parametrize("place", sized(small=["coroutine"], full=["coroutine", "child"]))
def test_a_group_that_slept_through_its_lease_cannot_overwrite_the_second_run(harness: Harness, place: str) -> None:
    """SIGSTOP of supervisor, worker process and children for longer than the lease, then SIGCONT.

    A67: the sleeping worker is marked stopped. A68: what it held is pending again and runs elsewhere. A69: when it
    wakes up and reports its own result, it is refused: the result is the second run's, and the attempt shows the late.
    """
    sleeper = harness.worker(children=1)
    task = harness.hold("sleep", children=place == "child")
    first = harness.running(task)
    # Once its start is written, the attempt has a row of its own to carry the refusal.
    wait_until(lambda: harness.ledger.task(task).state == "running")
    [asleep] = sleeper.worker_ids()

    harness.freeze(sleeper)
    harness.worker(children=1)
    second = harness.running(task, times=2)
    harness.until_done([task])
    assert harness.ledger.workers()[asleep].state == "stopped"
    assert second.claim_no > first.claim_no

    # Its own supervisor would end it at the next heartbeat, and rightly: here it gets to speak first.
    harness.open_gate("sleep")
    thaw(*(pid for pid in sleeper.pids() if pid != sleeper.supervisor))
    late = wait_until(
        lambda: [attempt for attempt in harness.ledger.attempts(task) if attempt.late_state is not None],
        message=f"the late report is recorded; {harness.describe()}",
    )
    assert [(attempt.claim_no, attempt.late_state, attempt.worker) for attempt in late] == [
        (first.claim_no, "succeeded", asleep)
    ]
    assert harness.ledger.task(task).result == str(second.claim_no)

    sleeper.thaw()
    reborn = wait_until(sleeper.worker_ids)
    assert asleep not in reborn, "a worker that lost its lease starts anew as another incarnation"
    harness.touches(3)
    harness.until_done()
    harness.account()


@pytest.mark.requirement("A67", "A68")
def test_a_stopped_worker_process_loses_its_lease_though_its_supervisor_lives(either_harness: Harness) -> None:
    """Nobody renews for a process that is stopped: its task runs elsewhere, and another replaces it."""
    harness = either_harness
    tree = harness.worker()
    task = harness.hold("stopped")
    first = harness.running(task)
    [asleep] = tree.worker_ids()
    harness.freeze_pids(first.pid)
    second = harness.running(task, times=2)
    harness.open_gate("stopped")
    thaw(first.pid)
    harness.until_done()

    reborn = wait_until(lambda: [worker for worker in tree.worker_ids() if worker != asleep])
    assert harness.ledger.workers()[asleep].state == "stopped"
    assert second.claim_no > first.claim_no
    assert harness.ledger.task(task).result == str(second.claim_no)
    assert second.pid != first.pid
    wait_until(lambda: not alive(first.pid), message="the process that lost its lease is gone")
    assert reborn
    harness.account()


def test_a_stopped_child_does_not_cost_its_worker_the_lease(either_harness: Harness) -> None:
    """A child that sleeps longer than the lease and wakes up again finishes its task: nobody else was given it."""
    harness = either_harness
    harness.worker(children=2)
    task = harness.hold("child", children=True)
    execution = harness.running(task)
    freeze(execution.pid)
    harness.touches(5, children=True)
    harness.let_pass(2 * harness.lease)
    harness.open_gate("child")
    thaw(execution.pid)
    harness.until_done()
    harness.account()
    assert len(harness.executions(task)) == 1
    assert [attempt.late_state for attempt in harness.ledger.attempts(task)] == [None]


def test_a_stopped_child_is_ended_at_its_hard_limit(either_harness: Harness) -> None:
    """It will never answer: the limit ends it, the attempt is charged as timed out, and the next one completes."""
    harness = either_harness
    harness.worker(children=1)
    [task] = harness.enqueue(harness.load.hold_child.using(timeout=harness.lease), [{"gate": "never"}])
    execution = harness.running(task)
    freeze(execution.pid)
    harness.until_done()
    harness.account()
    attempts = harness.ledger.attempts(task)
    assert [(attempt.state, attempt.charged) for attempt in attempts] == [("timed_out", True), ("succeeded", True)]
    assert not alive(execution.pid)


# -- the fence, write by write -----------------------------------------------------------------------------------------


@pytest.fixture
def ledger(store_url: str) -> Iterator[Ledger]:
    made = Ledger(store_url)
    made.prepare()
    yield made
    assert made.violations() == []
    made.close()


async def _opened(ledger: Ledger) -> Store:
    store = connect(ledger.url, StoreOptions())
    await store.open()
    return store


@pytest.mark.requirement("A69")
def test_an_uncharged_rescue_does_not_hand_out_the_same_fence(ledger: Ledger) -> None:
    """The task returns without a charge, so its attempt number repeats: its claim number must not.

    The first worker's success arrives while the second runs: refused, recorded, and the second's result stands.
    """

    async def scenario(store: Store) -> None:
        for worker in ("a", "b"):
            await seam.register(store, worker)
        await seam.enqueue(store)
        [first] = await seam.claim(store, "a")
        assert await store.take_over("a", beat=0)
        await store.finish("a", [seam.released(first, suspect=True)])
        [second] = await seam.claim(store, "b")
        assert second.id == first.id
        assert second.attempt == first.attempt, "the rescue did not charge"
        assert second.claim_no > first.claim_no
        assert second.losses == 1

        report = await store.finish("a", [seam.completed(first, result='"stale"')])
        assert report.refused == {seam.ref(first)}
        assert not report.accepted
        assert (await store.get([first.id]))[first.id].state == "claimed"

        report = await store.finish("b", [seam.completed(second, result='"right"')])
        assert report.accepted == {seam.ref(second)}
        assert (await store.get([first.id]))[first.id].result == '"right"'
        assert {a.claim_no: a.late_state for a in await store.attempts(first.id)} == {
            first.claim_no: "succeeded",
            second.claim_no: None,
        }

    ledger.with_store(scenario)


def test_claim_numbers_rise_over_any_number_of_releases_rescues_and_retries(ledger: Ledger) -> None:
    """Whatever way a task goes back, charged or not, the next claim has a higher number; a manual retry keeps it."""

    async def scenario(store: Store) -> None:
        await seam.enqueue(store)
        numbers: list[int] = []
        for n in range(sized(small=6, full=60)):
            worker = f"w{n}"
            await seam.register(store, worker)
            [claimed] = await seam.claim(store, worker)
            numbers.append(claimed.claim_no)
            match n % 3:
                case 0:
                    await store.finish(worker, [seam.released(claimed)])
                case 1:
                    await store.finish(worker, [seam.retried(claimed)])
                case _:
                    await store.deregister(worker)
        [claimed] = await seam.claim(store, worker)
        await store.finish(worker, [seam.failed(claimed)])
        assert await store.retry([claimed.id]) == [claimed.id]
        [again] = await seam.claim(store, worker)
        numbers += [claimed.claim_no, again.claim_no]
        assert numbers == sorted(set(numbers))
        assert again.run_no == claimed.run_no + 1
        assert (await store.finish(worker, [seam.completed(claimed)])).refused == {seam.ref(claimed)}
        assert (await store.finish(worker, [seam.completed(again)])).accepted == {seam.ref(again)}

    ledger.with_store(scenario)


def test_a_report_that_comes_twice_is_accepted_once(ledger: Ledger) -> None:
    """A repeat of the same report (its answer was lost) is a success and changes nothing; another report is refused."""

    async def scenario(store: Store) -> None:
        await seam.register(store, "a")
        await seam.enqueue(store, 3)
        claims = await seam.claim(store, "a", 3)
        settlements = [seam.completed(claims[0]), seam.failed(claims[1]), seam.retried(claims[2])]
        assert (await store.finish("a", settlements)).accepted == {seam.ref(claimed) for claimed in claims}
        before = await store.get([claimed.id for claimed in claims])

        again = await store.finish("a", settlements)
        assert again.repeated == {seam.ref(claimed) for claimed in claims}
        assert not again.accepted
        assert not again.refused

        other = await store.finish("a", [seam.failed(claims[0]), seam.completed(claims[1])])
        assert other.refused == {seam.ref(claims[0]), seam.ref(claims[1])}
        after = await store.get([claimed.id for claimed in claims])
        assert after == before
        assert after[claims[2].id].attempt == 1, "the repeat charged nothing"

    ledger.with_store(scenario)


def test_the_same_report_many_times_at_once_is_accepted_once(ledger: Ledger) -> None:
    """Ten stores send it together, as ten retries after lost answers would."""

    async def scenario(store: Store) -> None:
        await seam.register(store, "a")
        await seam.enqueue(store, 5)
        claims = await seam.claim(store, "a", 5)
        stores = [await _opened(ledger) for _ in range(4)]
        try:
            reports = await asyncio.gather(
                *(each.finish("a", [seam.completed(claimed) for claimed in claims]) for each in stores * 3)
            )
        finally:
            for each in stores:
                await each.close()
        accepted = [reference for report in reports for reference in report.accepted]
        assert sorted(accepted) == sorted(seam.ref(claimed) for claimed in claims)
        assert all(not report.refused for report in reports)

    ledger.with_store(scenario)
    assert all(len(ledger.outcomes(task)) == 1 for task in ledger.tasks())


def test_reports_out_of_order_change_nothing(ledger: Ledger) -> None:
    """The first run's failure, start and progress arrive after the second run has completed, and while it runs."""

    async def scenario(store: Store) -> None:
        for worker in ("a", "b"):
            await seam.register(store, worker)
        await seam.enqueue(store)
        [first] = await seam.claim(store, "a")
        assert await store.start("a", [seam.ref(first)]) == {seam.ref(first): Started.STARTED}
        assert await store.take_over("a", beat=0)
        await store.finish("a", [seam.released(first, suspect=True)])
        [second] = await seam.claim(store, "b")

        assert await store.start("a", [seam.ref(first)]) == {seam.ref(first): Started.REFUSED}
        await store.progress("a", [(seam.ref(first), '{"value":1}')])
        assert not await store.record_handle("a", seam.ref(first), "stale")
        assert await store.save_checkpoint("a", seam.ref(first), "step", "1") is None
        record = (await store.get([first.id]))[first.id]
        assert (record.state, record.worker, record.progress) == ("claimed", "b", None)

        # The right number from the wrong worker is refused, too.
        assert await store.start("a", [seam.ref(second)]) == {seam.ref(second): Started.REFUSED}
        await store.progress("a", [(seam.ref(second), '{"value":2}')])
        assert (await store.get([first.id]))[first.id].progress is None
        assert (await store.finish("b", [seam.completed(second)])).accepted == {seam.ref(second)}
        assert (await store.finish("a", [seam.failed(first)])).refused == {seam.ref(first)}
        assert (await store.get([first.id]))[first.id].state == "completed"
        assert await store.checkpoints(first.id) == {}

    ledger.with_store(scenario)


@pytest.mark.requirement("A51")
def test_a_heartbeat_after_the_take_over_says_that_the_lease_is_lost(ledger: Ledger) -> None:
    """A worker that was taken over is told so by its next heartbeat, and so is one that never registered."""

    async def scenario(store: Store) -> None:
        await seam.register(store, "a")
        assert await store.heartbeat(["a", "stranger"]) == {"a"}
        assert await store.take_over("a", beat=1)
        assert await store.heartbeat(["a"]) == set()

    ledger.with_store(scenario)
