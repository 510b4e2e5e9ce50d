"""Nothing is lost or doubled while an SQLite ledger moves to PostgreSQL, however often the mover is killed.

Programs go on enqueueing with the old URL, workers run on both sides, and `headrace db move --follow` is killed with
kill -9 on every line that matters, and started again. Then each task that was ever enqueued has run exactly once, by
the file in which executions leave their lines, has ended once, in PostgreSQL, and the old file is empty.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guarantees import workload
from tests.guarantees.harness import DONE_CEILING, ROOT, Harness
from tests.guarantees.ledger import Ledger
from tests.support.sizes import sized
from tests.support.waiting import wait_until

# Before and after each commit of either side, and between them. The nth time, so that there is work on both sides.
POINTS = (
    "store.move_copy.after_commit:kill9",
    "store.move_flip.before_commit:kill9",
    "store.move_flip.after_commit:kill9",
    # History goes first: what comes later finds none that is left.
    "move.ensured:kill9",
    "store.move_clear.after_commit:kill9",
    "store.move_pack.before_commit:kill9:2",
    "move.packed:kill9:2",
    "store.move_receive.before_commit:kill9:3",
    "store.move_receive.after_commit:kill9:3",
    "store.move_sent.before_commit:kill9:2",
    "store.move_sent.after_commit:kill9:4",
    "store.move_pack.after_commit:kill9:5",
)
FEWER = (POINTS[2], POINTS[6], POINTS[8])


@pytest.fixture
def old(sqlite_url: str, tmp_path: Path) -> Iterator[Harness]:
    made = Harness(sqlite_url, tmp_path)
    yield made
    made.close()


@pytest.fixture
def new(postgres_url: str) -> Iterator[Ledger]:
    """Guarded, but for rows that arrive as history: those never lived here."""
    ledger = Ledger(postgres_url)
    ledger.prepare()
    ledger.query("DROP TRIGGER guard_end ON headrace.history")
    yield ledger
    ledger.close()


def environment(side: Path, fault: str | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
    return {**kept, workload.SIDE: str(side), **({"HEADRACE_FAULT": fault} if fault else {})}


def move(old: Harness, new: Ledger, *options: str, fault: str | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "headrace.cli", "db", "move", old.url, new.url, *options, "--json"],
        cwd=ROOT, env=environment(old.side, fault), capture_output=True, text=True, timeout=DONE_CEILING, check=False,
    )  # fmt: skip


def told(folder: Path, word: str) -> list[int]:
    path = folder / "enqueued"
    lines = path.read_text().splitlines() if path.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith(f"{word} ")]


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_a_move_under_load_loses_and_doubles_nothing(old: Harness, new: Ledger):
    first = old.touches(50)
    here = old.worker(concurrency=4)
    old.until_done(first)
    enqueuer = subprocess.Popen(
        [sys.executable, "-m", "tests.guarantees.enqueuer", old.url, str(old.side)],
        cwd=ROOT, env=environment(old.side),
    )  # fmt: skip
    try:
        wait_until(lambda: len(told(old.side, "made")) > 20, DONE_CEILING, message="the program enqueues")
        there = old.worker(url=new.url, concurrency=4, wait=False)
        for fault in sized(small=FEWER, full=POINTS):
            killed = move(old, new, "--follow", fault=fault)
            assert killed.returncode == -9, f"{fault} never struck: {killed.returncode} {killed.stderr}"
        before = len(told(old.side, "made"))
        wait_until(lambda: len(told(old.side, "made")) > before + 20, DONE_CEILING, message="enqueues still land")
    finally:
        (old.side / "enough").touch()
        assert enqueuer.wait(DONE_CEILING) == 0
    ids = [*first, *told(old.side, "made")]
    assert told(old.side, "missing") == []

    last = move(old, new, "--follow", "--until-idle")
    assert last.returncode == 0, last.stderr
    report = json.loads(last.stdout)
    assert (report["complete"], report["same"], report["interrupted"]) == (True, True, False)
    assert here.terminate() == 0
    assert move(old, new).returncode == 0

    wait_until(lambda: new.done() >= len(ids), DONE_CEILING, message="all of them end in PostgreSQL")
    assert there.terminate() == 0
    tasks = new.tasks()
    assert {task: tasks[task].state for task in ids} == dict.fromkeys(ids, "completed")
    assert len(tasks) == len(ids)
    assert old.ledger.tasks() == {}
    ran = Counter(execution.task for execution in old.executions())
    assert {task: times for task, times in ran.items() if times != 1} == {}
    assert set(ran) == set(ids)
    jobs = new.query("SELECT id, state FROM headrace.jobs")
    assert sorted(jobs) == [(job, "completed") for job in sorted(told(old.side, "job"))]
    assert new.violations() == old.ledger.violations() == []
