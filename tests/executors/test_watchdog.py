"""The slot table and the watchdog that reads it."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.core.task import Ref
from headrace.executors.slots import CHILD, GROUP, LOOP, PLACES, THREAD, VERDICT_TIMEOUT, SlotRange, SlotTable
from headrace.executors.watchdog import Watchdog, condemn

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[SlotTable]:
    table = SlotTable.create(tmp_path / "slots", 8)
    yield table
    table.close()


@pytest.fixture
def victim() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_a_slot_says_who_is_inside(table: SlotTable) -> None:
    entered = table.enter(5, worker=2, ref=Ref(2**62, 9), soft=1.5, hard=None, pid=4242, kind=CHILD)
    other = SlotTable.attach(table.path)
    (slot,) = other.occupied(worker=2)
    assert (slot.index, slot.pid, slot.ref, slot.kind) == (5, 4242, Ref(2**62, 9), CHILD)
    assert (slot.entered, slot.soft, slot.hard) == (entered, entered + 1.5, float("inf"))
    assert other.occupied(worker=1) == []
    other.judge(5, VERDICT_TIMEOUT)
    other.mark_interrupted(5)
    again = table.read(5)
    assert again is not None
    assert (again.verdict, again.interrupted) == (VERDICT_TIMEOUT, True)
    table.leave(5)
    assert other.occupied() == []
    table.enter(5, worker=2, ref=Ref(1, 1), soft=None, hard=None)
    fresh = other.read(5)
    assert fresh is not None
    assert (fresh.verdict, fresh.interrupted) == (0, False), "a new attempt inherits nothing"
    other.close()


def test_ticks_are_per_worker(table: SlotTable) -> None:
    table.tick(3)
    assert abs(table.last_tick(3) - time.monotonic()) < 5
    assert table.last_tick(4) == 0.0


def test_a_range_shares_out_its_slots(table: SlotTable) -> None:
    slots = SlotRange(table, first=2, count=3)
    assert {slots.take(), slots.take(), slots.take()} == {2, 3, 4}
    assert slots.take() is None
    slots.give(3)
    assert (slots.free(), slots.take()) == (1, 3)
    with pytest.raises(ValueError, match="table of 8"):
        SlotRange(table, first=6, count=3)


def test_soft_is_signalled_until_it_has_been_raised(table: SlotTable, victim: "subprocess.Popen[bytes]") -> None:
    entered = table.enter(0, worker=0, ref=Ref(1, 1), soft=10, hard=20, pid=victim.pid, kind=CHILD)
    table.mark_interrupted(0)
    assert Watchdog(table).run_once(entered + 11) == []
    assert victim.poll() is None
    table.enter(0, worker=0, ref=Ref(1, 1), soft=10, hard=20, pid=victim.pid, kind=CHILD)
    assert Watchdog(table).run_once(entered + 9) == []
    (act,) = Watchdog(table).run_once(entered + 11)
    assert (act.what, act.ref) == ("interrupt", Ref(1, 1))
    assert victim.wait(20) == -signal.SIGUSR1, "`sleep` has no handler: the signal arrived"


@pytest.mark.requirement("R5")
@pytest.mark.parametrize("kind", [CHILD, GROUP])
def test_hard_writes_the_verdict_and_kills(table: SlotTable, victim: "subprocess.Popen[bytes]", kind: int) -> None:
    entered = table.enter(0, worker=0, ref=Ref(1, 1), soft=None, hard=20, pid=victim.pid, kind=kind)
    assert Watchdog(table).run_once(entered + 19) == []
    (act,) = Watchdog(table).run_once(entered + 22)
    assert act.what == "kill"
    assert victim.wait(20) == -signal.SIGKILL
    slot = table.read(0)
    assert slot is not None
    assert slot.verdict == VERDICT_TIMEOUT


@pytest.mark.parametrize("kind", [LOOP, THREAD])
def test_inside_the_worker_it_does_not_kill_the_worker(
    table: SlotTable, victim: "subprocess.Popen[bytes]", kind: int
) -> None:
    entered = table.enter(0, worker=0, ref=Ref(1, 1), soft=None, hard=20, pid=victim.pid, kind=kind)
    assert Watchdog(table, worker_kills=False).run_once(entered + 100) == []
    assert victim.poll() is None
    (act,) = Watchdog(table).run_once(entered + 100)
    assert act.what == "kill", "the supervisor does"
    assert victim.wait(20) == -signal.SIGKILL


def test_a_loop_is_given_a_moment_to_end_its_coroutine_itself(
    table: SlotTable, victim: "subprocess.Popen[bytes]"
) -> None:
    entered = table.enter(0, worker=0, ref=Ref(1, 1), soft=None, hard=20, pid=victim.pid, kind=LOOP)
    assert Watchdog(table, loop_grace=5).run_once(entered + 24) == []
    assert [act.what for act in Watchdog(table, loop_grace=5).run_once(entered + 26)] == ["kill"]
    assert victim.wait(20) == -signal.SIGKILL


def test_one_that_left_in_time_is_spared(table: SlotTable, victim: "subprocess.Popen[bytes]") -> None:
    """Between the look and the kill its process entered the next attempt, which must not die for it."""
    table.enter(0, worker=0, ref=Ref(1, 1), soft=None, hard=0, pid=victim.pid, kind=CHILD)
    seen = table.read(0)
    assert seen is not None
    table.enter(0, worker=0, ref=Ref(2, 1), soft=None, hard=100, pid=victim.pid, kind=CHILD)
    assert condemn(table, seen, VERDICT_TIMEOUT) is False
    assert victim.poll() is None
    state = Path(f"/proc/{victim.pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert state != "T", "it goes on"
    now = table.read(0)
    assert now is not None
    assert (now.ref, now.verdict) == (Ref(2, 1), 0)


def test_a_process_that_is_gone_is_nobodys_fault(table: SlotTable, victim: "subprocess.Popen[bytes]") -> None:
    victim.kill()
    victim.wait()
    entered = table.enter(0, worker=0, ref=Ref(1, 1), soft=1, hard=20, pid=victim.pid, kind=CHILD)
    assert Watchdog(table).run_once(entered + 2) == []
    assert Watchdog(table).run_once(entered + 22) == []


def test_what_waits_is_seen_from_outside(table: SlotTable) -> None:
    slots, other = SlotRange(table, worker=3), SlotTable.attach(table.path)
    places = [slots.wait(Ref(number, 1)) for number in range(1, PLACES + 11)]
    assert places.count(None) == 10
    assert len(other.waiting(3)) == PLACES
    assert other.waiting(2) == set()
    assert places[0] is not None
    slots.no_longer_waits(places[0])
    assert Ref(1, 1) not in other.waiting(3)
    assert slots.wait(Ref(7, 2)) == places[0]
    assert Ref(7, 2) in other.waiting(3)
    SlotRange(table, worker=3).forget_waiting()
    assert other.waiting(3) == set()
    other.close()
