"""Promise 8: fairness under retry storms. Retries live in their own lane; new work is never starved, nor are retries.

The order is what the tasks themselves wrote down, one line each, with a real worker that runs one at a time.
"""

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from headrace.core.lanes import Lane
from headrace.core.outcome import Failed
from headrace.core.retry import ErrorSignature, Retry
from headrace.core.settlement import Execution, settle
from headrace.core.task import ErrorInfo, Want
from headrace.store.base import Store
from tests.guarantees import tasks_lanes
from tests.guarantees.declared import Note, Tasks, notes
from tests.guarantees.harness import DONE_CEILING, Harness
from tests.support.sizes import sized
from tests.support.waiting import wait_until

TARGET = "tests.guarantees.tasks_lanes:app"


@pytest.fixture
def tasks(harness: Harness) -> Iterator[Tasks]:
    made = tasks_lanes.declared.on(harness.url)
    yield made
    made.app.close()


def _into_the_retry_lane(harness: Harness, ids: Sequence[int]) -> None:
    """As if each had failed once: only the lane matters here."""
    low, high = min(ids), max(ids)
    harness.ledger.query("UPDATE {tasks} SET lane = 1 WHERE id BETWEEN ? AND ?", low, high)


def _enqueue(harness: Harness, task: Any, count: int) -> list[int]:
    return harness.enqueue(task, [{"n": n} for n in range(count)])


def _retries(harness: Harness, task: Any, count: int) -> list[int]:
    ids = _enqueue(harness, task, count)
    assert max(ids) - min(ids) < count + 1000
    _into_the_retry_lane(harness, ids)
    return ids


def _order(harness: Harness) -> list[int]:
    return [note.task for note in notes(harness.side, "start")]


def _contested(order: list[int], primary: set[int], retry: set[int]) -> list[bool]:
    """Whether each start was a retry, as long as both lanes still had work."""
    last = min(
        max(index for index, task in enumerate(order) if task in primary),
        max(index for index, task in enumerate(order) if task in retry),
    )
    return [task in retry for task in order[: last + 1]]


def _tenths(picks: list[bool]) -> list[int]:
    """How many retries every ten consecutive starts hold."""
    return [sum(picks[start : start + 10]) for start in range(len(picks) - 9)]


@pytest.mark.requirement("F13", "F9", "F8")
def test_every_ten_starts_hold_exactly_three_retries(harness: Harness, tasks: Tasks) -> None:
    """F13: over every ten consecutive starts while both lanes have work, exactly seven and three. F8, F9: within each
    lane the order is that of the enqueue; a retry is never among the new ones.
    """
    count = sized(small=100, full=1000)
    retry = _retries(harness, tasks.tell, count)
    primary = _enqueue(harness, tasks.tell, count)
    harness.worker("--burst", target=TARGET, concurrency=1, children=0, wait=False)
    harness.until_done()
    order = _order(harness)
    assert sorted(order) == sorted(retry + primary)
    picks = _contested(order, set(primary), set(retry))
    assert len(picks) > count
    assert set(_tenths(picks)) == {3}
    assert [task for task in order if task in set(primary)] == primary
    assert [task for task in order if task in set(retry)] == retry


@pytest.mark.requirement("F14")
def test_a_lane_alone_gets_everything(harness: Harness, tasks: Tasks) -> None:
    """F14: with the primary lane empty a worker takes all from the other, without waiting: a burst worker empties it.
    (The primary lane alone is emptied in the test of the priorities.)
    """
    ids = _retries(harness, tasks.tell, 50)
    tree = harness.worker("--burst", target=TARGET, concurrency=1, children=0, wait=False)
    assert tree.process.wait(DONE_CEILING) == 0
    assert _order(harness) == ids


@pytest.mark.chaos
@pytest.mark.timeout(180)
@pytest.mark.requirement("F15")
@pytest.mark.parametrize(("depth", "share"), sized(small=[(5_600, 1)], full=[(1_600, 2), (5_600, 1)]))
def test_the_share_of_retries_falls_with_their_depth(harness: Harness, tasks: Tasks, depth: int, share: int) -> None:
    """F15: with more than 1,000 retries waiting two of ten, with more than 5,000 one of ten, exactly."""
    retry = _retries(harness, tasks.tell_slowly, depth)
    primary = _enqueue(harness, tasks.tell_slowly, 600)
    harness.worker(target=TARGET, concurrency=1, children=0)
    wait_until(lambda: set(primary) <= set(_order(harness)), DONE_CEILING, message=harness.describe())
    tenths = _tenths(_contested(_order(harness), set(primary), set(retry)))
    # The depth is measured every two seconds; from the first measurement on the share is exact.
    assert set(tenths[-len(tenths) // 4 :]) == {share}
    assert set(tenths) <= {1, 2, 3}


@pytest.mark.chaos
@pytest.mark.requirement("F12")
def test_a_new_task_is_picked_soon_in_a_storm_of_retries(harness: Harness, tasks: Tasks) -> None:
    """F12: 10,000 retries wait; a new task starts after a handful of them, not after all."""
    retry = _retries(harness, tasks.tell_slowly, 10_000)
    harness.worker(target=TARGET, concurrency=1, children=0)
    wait_until(lambda: len(_order(harness)) > 20, DONE_CEILING)
    for _ in range(5):
        new = tasks.tell_slowly.enqueue(n=-1)
        before = len(_order(harness))
        wait_until(lambda new=new: new.id in _order(harness), DONE_CEILING)
        assert _order(harness).index(new.id) - before <= 60
    assert len(_order(harness)) < len(retry) // 2, "the storm was over before the proof"


@pytest.mark.chaos
@pytest.mark.timeout(240)
@pytest.mark.requirement("F12")
def test_new_work_keeps_its_share_while_a_storm_of_failures_goes_on(harness: Harness, tasks: Tasks) -> None:
    """F12: thousands of tasks have failed, fail again whenever they are started, and are due again at once, so that the
    storm never ends. New work that arrives in bursts gets nine of every ten starts as long as there is some of it:
    a burst of forty is through after four or five retries, wherever the storm stands."""
    size = sized(small=6_000, full=10_000)
    storm = _enqueue(harness, tasks.fail_again, size)
    harness.ledger.with_store(_all_failed_once)
    assert harness.ledger.query("SELECT count(*) FROM {tasks} WHERE lane = 1 AND attempt = 1") == [(size,)]
    harness.worker(target=TARGET, concurrency=1, children=0)

    def shares() -> set[int]:
        """How many retries every ten starts hold while a burst of new work is there."""
        burst = set(_enqueue(harness, tasks.tell_slowly, 40))
        wait_until(lambda: burst <= set(_order(harness)), DONE_CEILING, message=harness.describe())
        order = _order(harness)
        places = [place for place, task in enumerate(order) if task in burst]
        return set(_tenths([task not in burst for task in order[places[0] : places[-1] + 1]]))

    # The share follows the depth, which is measured every two seconds; from then on it is exact.
    wait_until(lambda: shares() == {1}, DONE_CEILING, message=harness.describe())
    assert [shares() for _ in range(4)] == [{1}] * 4
    rows = harness.ledger.query("SELECT count(*) FROM {tasks} WHERE lane = 1")
    assert rows == [(len(storm),)], "the storm went on all the time"


async def _all_failed_once(store: Store) -> None:
    want = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=500)]
    policy, rng = Retry(max_attempts=1000, backoff="fixed", base=0, jitter=0.0), random.Random(1)
    error = ErrorInfo(error_class="ConnectionError", message="down")
    failure = Failed(error=error, signature=ErrorSignature(mro=("builtins.ConnectionError", "builtins.Exception")))
    while claims := await store.claim("storm", want):
        execution = Execution(ran_for=0.001, executor="coroutine")
        await store.finish("storm", [settle(each, failure, policy, rng=rng, execution=execution) for each in claims])


@pytest.mark.requirement("A4", "F8")
def test_priorities_and_then_the_order_of_creation(harness: Harness, tasks: Tasks) -> None:
    """Higher first; A4, F8: within equal priority in the order of creation."""
    rng = random.Random(8)
    wanted: dict[int, list[int]] = defaultdict(list)
    for n in range(120):
        priority = rng.choice((-1, 0, 0, 5, 9))
        handle = tasks.tell.using(priority=priority).enqueue(n=n)
        wanted[priority].append(handle.id)
    harness.worker("--burst", target=TARGET, concurrency=1, children=0, wait=False)
    harness.until_done([task for ids in wanted.values() for task in ids])
    assert _order(harness) == [task for priority in sorted(wanted, reverse=True) for task in wanted[priority]]


@pytest.mark.chaos
def test_an_order_key_is_strictly_first_in_first_out(harness: Harness, tasks: Tasks) -> None:
    """Per key one at a time, in the order of the enqueue, over several processes; what fails is tried again before the
    next one starts.
    """
    rng = random.Random(9)
    keys, each = ("a", "b", "c"), sized(small=8, full=40)
    arguments = [{"key": key, "n": n, "fails": rng.choice((0, 0, 1, 2))} for n in range(each) for key in keys]
    harness.enqueue(tasks.in_order, arguments)
    harness.worker(target=TARGET, concurrency=4, children=0, processes=2)
    harness.until_done()
    by_key: dict[str, list[Note]] = defaultdict(list)
    for note in sorted(notes(harness.side), key=lambda note: note.at):
        by_key[note.more[0]].append(note)
    fails = {(each["key"], each["n"]): each["fails"] for each in arguments}
    for key in keys:
        seen = [(note.word, int(note.more[1]), note.attempt) for note in by_key[key]]
        expected = [
            (word, n, attempt)
            for n in range(each)
            for attempt in range(1, fails[key, n] + 2)
            for word in ("begin", "end")
        ]
        assert seen == expected, f"key {key}"
    assert {row.state for row in harness.ledger.tasks().values()} == {"completed"}
    assert harness.ledger.violations() == []


def _most_at_once(found: list[Note]) -> int:
    running = most = 0
    for note in sorted(found, key=lambda note: note.at):
        running += 1 if note.word == "begin" else -1
        most = max(most, running)
    return most


@pytest.mark.chaos
@pytest.mark.requirement("D43")
def test_a_limit_is_never_exceeded_over_several_processes(harness: Harness, tasks: Tasks) -> None:
    """At most two of a key at once, over two supervisors and their processes, on the loop and in children; and two do
    run at once, so the limit is not kept by running one. (D43: limits across workers.)
    """
    count = sized(small=24, full=200)
    harness.lease = 30.0  # so much starts at once that nobody is to be taken for dead meanwhile
    harness.enqueue(tasks.limited, [{"key": key} for _ in range(count // 2) for key in ("x", "y")])
    harness.enqueue(tasks.limited_child, [{"key": "x"} for _ in range(count // 2)])
    harness.worker(target=TARGET, concurrency=6, children=3, processes=2, wait=False)
    harness.worker(target=TARGET, concurrency=6, children=3, wait=False)
    harness.until_done()
    by_key: dict[str, list[Note]] = defaultdict(list)
    for note in notes(harness.side):
        by_key[note.more[0]].append(note)
    assert {key: _most_at_once(found) for key, found in by_key.items()} == {"x": 2, "y": 2, "child-x": 2}
    rows = harness.ledger.tasks().values()
    assert {(row.state, row.attempt) for row in rows} == {("completed", 1)}
    assert harness.ledger.query("SELECT count(*) FROM {slots}") == [(0,)]
    assert harness.ledger.violations() == []


@pytest.mark.chaos
def test_a_rate_is_not_exceeded_over_several_processes(harness: Harness, tasks: Tasks) -> None:
    """Ten a second with a burst of two: the k-th start is never earlier than the bucket allows.

    A start is written down after it was admitted, and the first admission follows the first claim that led to a start:
    counted from there, no start of a kept rate can be early, however busy the machine is.
    """
    count = 32
    _enqueue(harness, tasks.rated, count)
    harness.worker(target=TARGET, concurrency=8, children=0, processes=2)
    harness.until_done()
    wall = time.time() - time.monotonic()
    ((first,),) = harness.ledger.query("SELECT min(claimed_at) FROM {history}")
    began = (first / 1e6 if isinstance(first, int) else first.timestamp()) - wall
    instants = [note.at - began for note in sorted(notes(harness.side, "start"), key=lambda note: note.at)]
    assert len(instants) == count
    # A hundredth for the two readings of the clock.
    early = {k: instant for k, instant in enumerate(instants, 1) if k > 2 + 10 * (instant + 0.01)}
    assert early == {}
    assert {row.attempt for row in harness.ledger.tasks().values()} == {1}


def test_a_paused_queue_rests_until_it_is_resumed(harness: Harness, tasks: Tasks) -> None:
    """Nothing of it starts while others go on; after resume everything does."""

    async def act(store: Store, verb: str) -> None:
        await getattr(store, verb)("slow-lane")

    harness.ledger.with_store(lambda store: act(store, "pause"))
    resting = harness.enqueue(tasks.tell.using(queue="slow-lane"), [{"n": n} for n in range(5)])
    tree = harness.worker(target=TARGET, concurrency=4, children=0)
    going_on = _enqueue(harness, tasks.tell, 20)
    harness.until_done(going_on)
    assert set(_order(harness)) == set(going_on)
    assert {harness.ledger.task(task).state for task in resting} == {"pending"}
    harness.ledger.with_store(lambda store: act(store, "resume"))
    harness.until_done(resting)
    assert set(_order(harness)) == {*going_on, *resting}
    assert tree.process.poll() is None
