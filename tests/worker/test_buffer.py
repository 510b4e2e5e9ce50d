"""The buffer: lanes exact over ten starts, priority within the lane, queues in turns."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.lanes import Lane
from headrace.core.task import ClaimedTask
from headrace.worker.buffer import Buffer
from headrace.worker.holding import Held

_IDS = itertools.count(1)


def held(queue: str = "default", *, lane: Lane = Lane.PRIMARY, priority: int = 0, since: float = 0.0) -> Held:
    number = next(_IDS)
    claim = ClaimedTask(
        id=number, claim_no=1, name="t", kind="function", queue=queue, pool="coroutine", lane=int(lane),
        priority=priority, arguments="{}", codec="json/1", version=1, options="{}", attempt=0, losses=0, max_attempts=4,
        run_no=1, job=None, gated=False, expired=False, state="claimed", order_at=number, waited=0.0,
    )  # fmt: skip
    return Held(claim, since=since)


class Ledger:
    """What the store would answer: so many ready tasks in each lane."""

    def __init__(self, primary: int, retry: int) -> None:
        self.left = {Lane.PRIMARY: primary, Lane.RETRY: retry}

    def serve(self, buffer: Buffer, room: int) -> None:
        queue = buffer.queue("coroutine", "default")
        for want in queue.wants("coroutine", room):
            delivered = min(want.n, self.left[want.lane])
            self.left[want.lane] -= delivered
            for _ in range(delivered):
                buffer.add([held(lane=want.lane)])
            queue.lanes[want.lane].more = delivered >= want.n


@pytest.mark.requirement("F13")
@given(st.data())
def test_every_ten_starts_hold_three_retries_whatever_the_claims(data: st.DataObject) -> None:
    """F13: both lanes have work all the time; claims of any size, at any moment, change nothing in the order of starts,
    nor does one that asks every lane for at least one (`ask_everywhere`), which brings a lane more than its share: what
    is here then waits for the lane whose turn it is. After an answer there is always something to start.
    """
    buffer, ledger = Buffer(retry_ratio=0.3), Ledger(10_000, 10_000)
    starts: list[int] = []
    while len(starts) < 200:
        if data.draw(st.booleans()):
            for lane in buffer.queue("coroutine", "default").lanes.values():
                lane.more = False
        ledger.serve(buffer, data.draw(st.integers(1, 4) | st.just(40)))
        assert buffer.count("coroutine") > 0
        for turn in range(data.draw(st.integers(1, buffer.count("coroutine")))):
            taken = buffer.take("coroutine")
            assert turn > 0 or taken is not None
            if taken is not None:
                starts.append(taken.claim.lane)
    for begin in range(len(starts) - 10):
        assert sum(starts[begin : begin + 10]) == 3


@pytest.mark.requirement("F13", "F14")
def test_what_is_here_waits_for_the_lane_whose_turn_it_is_but_not_in_vain() -> None:
    """F13: with one new task gone and a retry here, the next start is a new one, which a claim brings. F14: and when
    that claim finds none, the retry starts.
    """
    buffer, ledger = Buffer(retry_ratio=0.3), Ledger(1, 1)
    for lane in buffer.queue("coroutine", "default").lanes.values():
        lane.more = False  # so that both are asked for one
    ledger.serve(buffer, 1)
    lanes = [held.claim.lane for _ in range(3) if (held := buffer.take("coroutine"))]
    assert lanes == [Lane.PRIMARY]
    assert buffer.count("coroutine") == 1
    ledger.serve(buffer, 1)
    lanes = [held.claim.lane for _ in range(3) if (held := buffer.take("coroutine"))]
    assert lanes == [Lane.RETRY]


@pytest.mark.requirement("F14")
@pytest.mark.parametrize(("primary", "retry"), [(50, 0), (0, 50), (50, 1), (1, 50)])
def test_a_lane_without_work_holds_up_nobody(primary: int, retry: int) -> None:
    buffer, ledger = Buffer(retry_ratio=0.3), Ledger(primary, retry)
    started = 0
    for _ in range(60):  # a worker with one slot
        ledger.serve(buffer, 1)
        if buffer.take("coroutine") is not None:
            started += 1
    assert started == primary + retry


def test_a_lane_whose_tasks_went_back_has_more_in_the_store() -> None:
    """A worker that stood still gives back what it holds; the other lane must not go on alone meanwhile."""
    buffer = Buffer(retry_ratio=0.3)
    lanes = buffer.queue("coroutine", "default").lanes
    buffer.add([held(lane=Lane.RETRY, since=0.0)])
    lanes[Lane.PRIMARY].more = lanes[Lane.RETRY].more = False  # the last claim fell short of both
    for _ in range(10):
        buffer.add([held(since=2.0)])
    assert len(buffer.take_older(1.0)) == 1
    started = [taken for _ in range(10) if (taken := buffer.take("coroutine")) is not None]
    assert len(started) == 3, "the fourth start is a retry's, which a claim has to bring"


@pytest.mark.parametrize(("primary", "asked"), [(False, [630, 50]), (True, [630, 270])])
def test_retries_alone_are_asked_for_in_small_claims(primary: bool, asked: list[int]) -> None:
    """What arrives while they are claimed and begun waits for them; beside new work they have their share."""
    queue = Buffer(retry_ratio=0.3).queue("coroutine", "default")
    queue.lanes[Lane.PRIMARY].more = primary
    assert [want.n for want in queue.wants("coroutine", 900)] == asked
    assert queue.only_retries is not primary


def test_a_higher_priority_overtakes_within_its_lane() -> None:
    buffer = Buffer(retry_ratio=0.3)
    low, high = held(priority=1), held(priority=5)
    buffer.add([low])
    buffer.add([high])
    assert [buffer.take("coroutine"), buffer.take("coroutine")] == [high, low]


def test_what_was_given_back_may_come_again_before_it_is_removed() -> None:
    """The supervisor gives away what waits behind a blocked loop; the same task claimed anew has the same place."""
    buffer = Buffer(retry_ratio=0.3)
    first = held()
    again = Held(first.claim._replace(claim_no=2), since=1.0)
    for arrival in (again, first):
        buffer.add([arrival])
    assert [buffer.take("coroutine"), buffer.take("coroutine")] == [first, again]


def test_queues_take_turns() -> None:
    buffer = Buffer(retry_ratio=0.3)
    for _ in range(3):
        buffer.add([held("a")])
        buffer.add([held("b")])
    order = [taken.claim.queue for _ in range(6) if (taken := buffer.take("coroutine"))]
    assert sorted(order[:2]) == sorted(order[2:4]) == sorted(order[4:]) == ["a", "b"]


def test_the_old_and_the_cancelled_leave() -> None:
    buffer = Buffer(retry_ratio=0.3)
    old, young, cancelled = held(since=1.0), held(since=2.0), held(since=2.0)
    for entry in (old, young, cancelled):
        buffer.add([entry])
    buffer.remove(cancelled)
    assert buffer.take_older(1.5) == [old]
    assert len(buffer) == 1
    assert buffer.take("coroutine") is young
    assert buffer.take("coroutine") is None


def test_a_claim_is_taken_in_as_a_whole_in_the_order_of_its_lanes() -> None:
    """Runs of one place go in together: a later claim with a higher priority still starts first, and each run of a
    claim that changes between queues and lanes lands in its own."""
    buffer = Buffer(retry_ratio=0.3)
    first = [held("a", priority=2), held("b", priority=2), held("a", priority=1), held("a", lane=Lane.RETRY)]
    buffer.add(first)
    second = [held("a", priority=3), held("a", priority=2)]
    buffer.add(second)
    assert buffer.count("coroutine") == 6
    primary = buffer.queue("coroutine", "a").lanes[Lane.PRIMARY].entries
    assert list(primary) == [second[0], first[0], second[1], first[2]]
    assert list(buffer.queue("coroutine", "b").lanes[Lane.PRIMARY].entries) == [first[1]]
    assert list(buffer.queue("coroutine", "a").lanes[Lane.RETRY].entries) == [first[3]]
