"""Promise 7: a limit is a limit. Soft and hard time limits hold for async, sync and command tasks, CPU-bound ones too.

A hard kill is recorded by the one who killed, and a cancel of a running task takes effect within about a second.
"""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.guarantees import tasks_poison
from tests.guarantees.declared import Tasks, notes
from tests.guarantees.harness import DONE_CEILING, Harness
from tests.support.processes import runs
from tests.support.waiting import wait_until

TARGET = "tests.guarantees.tasks_poison:app"
GATE = "calm"
# A second is the promise on a machine that has time; this one may be busy with the rest of the suite.
SOON = 5.0


@pytest.fixture
def tasks(harness: Harness) -> Iterator[Tasks]:
    made = tasks_poison.declared.on(harness.url)
    yield made
    made.app.close()


def _ended(harness: Harness, ids: list[int]) -> dict[int, Any]:
    wait_until(
        lambda: all(harness.ledger.task(task).state in ("failed", "completed", "cancelled") for task in ids),
        DONE_CEILING,
        message=f"{ids} end; {harness.describe()}",
    )
    rows = harness.ledger.tasks()
    return {task: rows[task] for task in ids}


def _durations(harness: Harness) -> dict[int, float]:
    """Seconds between start and finish as the ledger has them, by task."""
    rows = harness.ledger.query("SELECT task, started_at, finished_at FROM {attempts} WHERE started_at IS NOT NULL")
    return {task: _seconds(finished) - _seconds(started) for task, started, finished in rows if finished is not None}


def _seconds(instant: Any) -> float:
    return instant / 1e6 if isinstance(instant, int) else instant.timestamp()


# --- soft -------------------------------------------------------------------------------------------------------------


# A shell is ready to hear long before its limit; an interpreter may not be, on a busy machine.
COMMAND = "trap 'exit 7' TERM; while :; do sleep 0.1; done"


@pytest.mark.requirement("R6", "R110")
def test_the_soft_limit_is_raised_inside_the_task(harness: Harness, tasks: Tasks) -> None:
    """SoftTimeLimitExceeded is caught inside waiting, blocking and spinning code (the note `soft`), and re-raised it is
    the failure of the task, of reason timeout (R6, R110 for the part that concerns the task). One that cleans up and
    returns has a result like any other (R6). A command gets SIGTERM, and is not killed while it tidies up.
    """
    harness.worker(target=TARGET, concurrency=8, children=2)
    names = ["soft_async", "soft_async_blocking", "soft_sync", "soft_sync_spinning"]
    handles = {name: getattr(tasks, name).enqueue() for name in names}
    tidy = [tasks.tidy_async.enqueue(), tasks.tidy_sync.enqueue()]
    command = tasks.app.commands.submit(["sh", "-c", COMMAND], soft_timeout=2.0, timeout=60)
    rows = _ended(harness, [handle.id for handle in handles.values()])
    told = {note.task for note in notes(harness.side, "soft")}
    for name, handle in handles.items():
        assert handle.id in told, f"{name} was not told"
        assert (rows[handle.id].state, rows[handle.id].reason) == ("failed", "timeout"), name
        assert rows[handle.id].attempt == 1
    classes = dict(harness.ledger.query("SELECT id, error_class FROM {history}"))
    assert {classes[handle.id] for handle in handles.values()} == {"headrace.SoftTimeLimitExceeded"}
    assert [handle.result(timeout=60) for handle in tidy] == ["cleaned up", "cleaned up"]
    row = _ended(harness, [command.id])[command.id]
    assert (row.state, row.reason) == ("failed", "timeout")
    assert _exit_code(harness, command.id) == 7, "it did not end by itself"


def _exit_code(harness: Harness, task: int) -> int | None:
    ((code,),) = harness.ledger.query("SELECT exit_code FROM {attempts} WHERE task = ?", task)
    return code


# --- hard -------------------------------------------------------------------------------------------------------------


@pytest.mark.chaos
@pytest.mark.requirement("R5")
def test_the_hard_limit_ends_whatever_runs(harness: Harness, tasks: Tasks) -> None:
    """CPU-bound loops, blocking C calls with and without the GIL, stubborn coroutines and ones that block the loop:
    each is ended soon after its limit of one second (R5) and recorded as timed_out by the one who killed; the
    neighbours on the same loop complete uncharged.
    """
    harness.worker(target=TARGET, concurrency=16, children=2)
    neighbours = harness.enqueue(tasks.neighbour, [{"gate": GATE}] * 4)
    wait_until(lambda: len(notes(harness.side, "begin")) >= len(neighbours), DONE_CEILING)
    hows = {
        tasks.hard_sync: ["spin", "block", "hold_gil", "hash", "ignore_sigterm"],
        tasks.hard_async: ["wait", "stubborn", "spin", "block", "hold_gil"],
    }
    ids: dict[int, tuple[str, str]] = {}
    for task, each in hows.items():
        kind = "sync" if task is tasks.hard_sync else "async"
        found = harness.enqueue(task, [{"how": how} for how in each])
        ids |= dict(zip(found, [(kind, how) for how in each], strict=True))
    rows = _ended(harness, list(ids))
    for task, name in ids.items():
        assert (name, rows[task].state, rows[task].reason, rows[task].attempt) == (name, "failed", "timeout", 1)
        (attempt,) = [attempt for attempt in harness.ledger.attempts(task) if attempt.charged]
        assert (name, attempt.state) == (name, "timed_out")
        # What the loop or the parent of a child can end it records itself; a loop that is blocked dies by the
        # supervisor, and with it whatever is over its limit there.
        killers = {("async", "spin"), ("async", "block"), ("async", "hold_gil")}
        assert attempt.recorded_by in ({"supervisor"} if name in killers else {"supervisor", "worker"}), name
    durations = _durations(harness)
    late = {ids[task]: seconds for task, seconds in durations.items() if task in ids and seconds > 1.0 + SOON}
    assert late == {}
    harness.open_gate(GATE)
    harness.until_done(neighbours)
    assert {harness.ledger.task(task).attempt for task in neighbours} == {1}
    assert {harness.ledger.task(task).state for task in neighbours} == {"completed"}


@pytest.mark.requirement("A66")
def test_a_task_over_its_limit_is_tried_again(harness: Harness, tasks: Tasks) -> None:
    """A66: killed, and retried: the second attempt runs in another process than the first."""
    harness.worker(target=TARGET, concurrency=4, children=1)
    (task,) = harness.enqueue(tasks.hard_sync_twice, [{}])
    rows = _ended(harness, [task])
    assert (rows[task].state, rows[task].reason, rows[task].attempt) == ("failed", "timeout", 2)
    first, second = notes(harness.side, "begin")
    assert first.pid != second.pid


@pytest.mark.chaos
def test_a_command_over_its_limit_dies_with_its_whole_group(harness: Harness, tasks: Tasks, tmp_path: Path) -> None:
    """A command that ignores SIGTERM, as do its children: after the limit no process of the group is left."""
    harness.worker(target=TARGET, concurrency=4, children=1)
    pids = tmp_path / "pids"
    script = """trap '' TERM; sleep 600 & echo $! $$ > "$0.part"; mv "$0.part" "$0"; wait"""
    handle = tasks.app.commands.submit(["sh", "-c", script, str(pids)], soft_timeout=2.0, timeout=4.0)
    wait_until(pids.exists, DONE_CEILING)
    members = [int(pid) for pid in pids.read_text().split()]
    assert len(members) == 2
    rows = _ended(harness, [handle.id])
    assert (rows[handle.id].state, rows[handle.id].reason) == ("failed", "timeout")
    assert [attempt.state for attempt in harness.ledger.attempts(handle.id)] == ["timed_out"]
    wait_until(lambda: not any(runs(member) for member in members), SOON, message="the whole group is gone")


# --- cancel -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A19")
def test_cancel_of_a_running_task_takes_effect_soon(harness: Harness, tasks: Tasks, tmp_path: Path) -> None:
    """A19: running -> cancelled through the cancellation path, soon, for waiting, blocking and spinning code and for a
    command, whose process is gone as well.
    """
    harness.worker(target=TARGET, concurrency=4, children=2)
    names = ["patient_async", "patient_sync", "patient_spinning", "tidy_when_cancelled"]
    handles = {name: getattr(tasks, name).enqueue() for name in names}
    pid = tmp_path / "pid"
    script = "import os, sys, time\nopen(sys.argv[1], 'w').write(f'{os.getpid()}\\n')\ntime.sleep(600)\n"
    handles["command"] = tasks.app.commands.submit([sys.executable, "-c", script, str(pid)])
    wait_until(lambda: len(notes(harness.side, "begin")) == len(names), DONE_CEILING)
    wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), DONE_CEILING)
    process = psutil.Process(int(pid.read_text()))
    seconds = {
        name: _time(handle.cancel, until=lambda handle=handle: handle.state() == "cancelled")
        for name, handle in handles.items()
    }
    assert {name: taken for name, taken in seconds.items() if taken > SOON} == {}
    assert {harness.ledger.task(handle.id).reason for handle in handles.values()} == {"user"}
    assert [note.task for note in notes(harness.side, "told")] == [handles["tidy_when_cancelled"].id]
    wait_until(lambda: not runs(process), SOON)


def _time(act: Callable[[], object], *, until: Callable[[], bool]) -> float:
    began = time.monotonic()
    act()
    wait_until(until, DONE_CEILING)
    return time.monotonic() - began
