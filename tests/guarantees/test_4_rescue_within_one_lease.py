"""Promise 4: rescue within one lease, two after everything went down; on by default, the same on both databases.

Bounds are in leases and measured from the kill to the moment the task's code is entered again. `SLACK` is what a busy
machine with two cores may add: starting an interpreter, and pauses between polls. It is added once, never multiplied.
"""

import asyncio
import re
import time
from datetime import timedelta

import pytest

from headrace.core.clock import FakeClock
from headrace.store.base import Store, StoreOptions
from headrace.store.connect import connect
from tests.guarantees import seam
from tests.guarantees.harness import Harness, WrongClock, as_host
from tests.guarantees.ledger import Ledger
from tests.guarantees.processes import kill
from tests.support.sizes import sized
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]

SLACK = 10.0
HOUR = 3600.0
DAY = 24 * HOUR


@pytest.mark.requirement("A67", "A68", "F17")
@pytest.mark.parametrize("victim", sized(small=["supervisor"], full=["supervisor", "everything"]))
def test_a_task_runs_again_within_one_lease_of_the_kill(harness: Harness, victim: str) -> None:
    """While another worker lives, what the dead one held is running again after at most one lease.

    A67: the dead worker is marked stopped. A68: its running task is reclaimed. Nobody called anything for it.
    """
    tree = harness.worker()
    task = harness.hold("never")
    harness.running(task)
    [dead] = tree.worker_ids()
    harness.worker()
    killed_at = time.monotonic()
    if victim == "supervisor":
        tree.kill_supervisor()
    else:
        tree.kill()
    second = harness.running(task, times=2)
    took = second.at - killed_at
    assert took < harness.lease + SLACK, f"took {took:.1f} s with a lease of {harness.lease} s"
    harness.until_done()
    wait_until(lambda: harness.ledger.workers()[dead].state == "stopped")
    harness.account()


@pytest.mark.requirement("A3", "A68")
def test_after_everything_went_down_a_task_runs_again_within_two_leases(either_harness: Harness) -> None:
    """The new worker has never seen the dead one beat: it watches for one lease before it judges."""
    harness = either_harness
    tree = harness.worker()
    task = harness.hold("never")
    harness.running(task)
    tree.kill()
    harness.worker()
    started_at = time.monotonic()
    second = harness.running(task, times=2)
    assert second.at - started_at < 2 * harness.lease + SLACK
    harness.until_done()
    harness.account()


def test_the_death_of_a_process_seen_by_its_supervisor_is_rescued_at_once(either_harness: Harness) -> None:
    """Nobody waits for a lease of a minute when the parent has seen its process die."""
    harness = either_harness
    harness.lease = 60.0
    tree = harness.worker()
    task = harness.hold("never")
    first = harness.running(task)
    kill(first.pid)
    harness.running(task, times=2)
    harness.until_done(ceiling=30.0)
    harness.account()
    [attempt] = [attempt for attempt in harness.ledger.attempts(task) if attempt.state == "lost"]
    assert attempt.recorded_by == "supervisor"
    assert len(tree.worker_ids()) == 1


# -- rescuers ----------------------------------------------------------------------------------------------------------


def test_two_rescuers_at_once_rescue_once(either_harness: Harness) -> None:
    """Three live trees see the same death; the journal shows that each task went back exactly once."""
    harness = either_harness
    victim = harness.worker(concurrency=sized(small=20, full=100), children=0)
    tasks = [harness.hold("never") for _ in range(sized(small=10, full=50))]
    for task in tasks:
        harness.running(task)
    for _ in range(sized(small=2, full=4)):
        harness.worker(children=0)
    [dead] = victim.worker_ids()
    victim.kill()
    harness.until_done()
    harness.account()
    for task in tasks:
        returned = [step for step in harness.ledger.journal(task) if step.after == "pending" and step.before]
        assert len(returned) == 1, f"task {task} went back {len(returned)} times"
    wait_until(lambda: harness.ledger.workers()[dead].state == "stopped")


def test_exactly_one_of_many_rescuers_takes_over(store_url: str) -> None:
    """Ten stores ask for the same dead worker at the same moment."""
    ledger = Ledger(store_url)
    ledger.prepare()

    async def scenario(store: Store) -> list[bool]:
        await seam.register(store, "dead")
        stores = [connect(store_url, StoreOptions()) for _ in range(5)]
        for each in stores:
            await each.open()
        try:
            return list(await asyncio.gather(*(each.take_over("dead", beat=0) for each in stores * 2)))
        finally:
            for each in stores:
                await each.close()

    assert sum(ledger.with_store(scenario)) == 1
    ledger.close()


@pytest.mark.parametrize(
    "point",
    [
        "rescue.after_take_over",
        *sized(small=[], full=["rescue.before_take_over", "rescue.before_commit", "rescue.after_commit"]),
    ],
)
def test_a_rescuer_killed_in_the_middle_of_a_rescue_leaves_nothing_behind(harness: Harness, point: str) -> None:
    """The dead worker is already marked stopped, or half of its tasks are back: the next rescuer goes on from there."""
    victim = harness.worker(children=0, concurrency=20)
    tasks = [harness.hold("never") for _ in range(5)]
    for task in tasks:
        harness.running(task)
    rescuer = harness.worker(fault=f"{point}:kill9", children=0)
    victim.kill()
    harness.until_struck(rescuer, [point])
    rescuer.process.wait(30)
    harness.orphans_end(rescuer)
    harness.worker(children=0)
    harness.until_done()
    harness.account()


# -- clocks and names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", sized(small=[HOUR], full=[HOUR, -HOUR]))
def test_a_client_clock_wrong_by_an_hour_harms_nobody_on_postgresql(postgres_harness: Harness, offset: float) -> None:
    """Only the server's clock counts: the worker with the wrong clock neither rescues the living nor is taken for dead,

    and it still rescues the dead in time.
    """
    harness = postgres_harness
    harness.lease = 3.0  # two trees on two cores: neither may miss it while the other does not
    right = harness.worker()
    held = harness.hold("clock")
    harness.running(held)
    wrong = harness.worker(environment=WrongClock(harness.folder, offset).environment)
    workers = sorted(right.worker_ids() + wrong.worker_ids())
    delayed = harness.enqueue(harness.load.touch.using(run_after=0.5), [{"n": 1}])
    harness.touches(20)
    harness.until_done(delayed)
    harness.let_pass(2 * harness.lease)
    assert sorted(right.worker_ids() + wrong.worker_ids()) == workers
    assert len(harness.executions(held)) == 1

    right.kill()
    killed_at = time.monotonic()
    assert harness.running(held, times=2).at - killed_at < harness.lease + SLACK
    harness.until_done()
    harness.account()
    [row] = harness.ledger.query("SELECT max(abs(extract(epoch FROM finished_at - now()))) FROM {history}")
    assert row[0] < HOUR / 2, "instants are the server's"


@pytest.mark.parametrize("step", sized(small=[-DAY], full=[-DAY, DAY]))
def test_a_step_of_the_wall_clock_suspends_rescue_and_loses_nothing_on_sqlite(
    sqlite_harness: Harness, step: float
) -> None:
    """The host's clock is SQLite's clock. When it is set while workers run, nobody is declared dead for it,

    what runs goes on, and the dead are still rescued: death is judged by the monotonic clock.
    """
    harness = sqlite_harness
    harness.lease = 3.0  # as above
    clock = WrongClock(harness.folder)
    harness.environment = clock.environment
    trees = [harness.worker(), harness.worker()]
    workers = sorted(worker for tree in trees for worker in tree.worker_ids())
    held = harness.hold("step")
    execution = harness.running(held)
    harness.touches(10)

    clock.step(step)
    harness.let_pass(2 * harness.lease)
    assert sorted(worker for tree in trees for worker in tree.worker_ids()) == workers
    assert len(harness.executions(held)) == 1

    victim = next(tree for tree in trees if execution.pid in tree.pids())
    victim.kill()
    harness.running(held, times=2)
    harness.until_done([held])
    # What this process enqueues by the true clock lies in the future of workers whose clock went back; and the other
    # way round it is due at once. Either way it is done when the clocks agree again.
    harness.touches(5)
    clock.step(0.0)
    harness.until_done()
    harness.account()


def test_what_is_given_back_after_the_clock_was_set_back_is_ready_at_once(sqlite_url: str) -> None:
    """It was due when it was claimed, whatever the clock says now; and no instant of it runs backwards."""
    ledger = Ledger(sqlite_url)
    ledger.prepare()
    clock = FakeClock()

    async def scenario() -> None:
        store = connect(sqlite_url, StoreOptions(extra={"clock": clock}))
        await store.open()
        await seam.register(store, "a")
        await seam.enqueue(store, 2)
        one, two = await seam.claim(store, "a", 2)
        await store.start("a", [seam.ref(two)])
        clock.step_wall_clock(timedelta(days=-1))
        await store.finish("a", [seam.released(one)])
        [again] = await seam.claim(store, "a")
        assert again.id == one.id
        await store.finish("a", [seam.completed(again), seam.completed(two)])
        assert await store.retry([one.id]) == [one.id]
        await store.close()

    asyncio.run(scenario())
    assert ledger.violations() == []
    ledger.close()


@pytest.mark.requirement("A22")
def test_a_host_name_is_never_an_identity(either_harness: Harness) -> None:
    """A pod comes back under its old name while its dead predecessor still holds a task: the task is rescued.

    A22: ids are `hostname:pid:timestamp`, one per incarnation, and the primary key of the workers' table.
    """
    harness = either_harness
    harness.environment = as_host("pod-0")
    first = harness.worker()
    task = harness.hold("never")
    harness.running(task)
    [dead] = first.worker_ids()
    first.kill()
    successor = harness.worker()
    killed_at = time.monotonic()
    second = harness.running(task, times=2)
    assert second.at - killed_at < 2 * harness.lease + SLACK
    harness.until_done()
    [living] = successor.worker_ids()
    workers = harness.ledger.workers()
    assert {workers[dead].hostname, workers[living].hostname} == {"pod-0"}
    assert dead != living
    assert (workers[dead].state, workers[living].state in ("active", "idle")) == ("stopped", True)
    for worker, row in workers.items():
        assert re.fullmatch(rf"pod-0:{row.pid}:\d+", worker)
    harness.account()


def test_the_same_host_and_pid_twice_are_two_workers(store_url: str) -> None:
    """In containers every worker may be process 7 of host «app»: a living twin does not keep the dead one's tasks."""
    ledger = Ledger(store_url)
    ledger.prepare()

    async def scenario(store: Store) -> None:
        await seam.register(store, "app:7:1", hostname="app", pid=7)
        await seam.register(store, "app:7:2", hostname="app", pid=7)
        [task] = await seam.enqueue(store)
        await seam.claim(store, "app:7:1")
        await store.heartbeat(["app:7:2"])
        assert await store.take_over("app:7:1", beat=0)
        assert await store.stopped_holders() == ["app:7:1"]
        assert {worker.id for worker in await store.workers(states=("active", "idle"))} == {"app:7:2"}
        assert [claimed.id for claimed in await store.held("app:7:1")] == [task]

    ledger.with_store(scenario)
    ledger.close()
