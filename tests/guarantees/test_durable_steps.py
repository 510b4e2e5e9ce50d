"""Durable steps: a step whose value was stored never runs again, whatever dies between two lines of the task.

A step's value is the claim that ran it, and each run leaves a line. So the last run of a step must be the one whose
value was stored; a later line is a step that ran although the ledger had its value.
"""

import asyncio
import contextlib
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.core.states import AttemptState
from tests.guarantees import tasks_durable
from tests.guarantees.declared import Tasks, notes
from tests.guarantees.harness import DONE_CEILING, Harness
from tests.guarantees.tasks_durable import STEPS
from tests.support.sizes import sized
from tests.support.waiting import wait_until

TARGET = "tests.guarantees.tasks_durable:app"
pytestmark = pytest.mark.timeout(sized(small=300, full=3600))


@pytest.fixture
def tasks(harness: Harness) -> Iterator[Tasks]:
    made = tasks_durable.declared.on(harness.url)
    yield made
    made.app.close()


def account(harness: Harness, tasks: Tasks, ids: list[int]) -> int:
    """Of each task: completed, each step stored once and never run after that. How many attempts were lost."""
    runs: dict[tuple[int, str], list[int]] = defaultdict(list)
    seen: dict[tuple[int, str], set[int]] = defaultdict(set)
    for line in notes(harness.side):
        if line.word == "ran":
            runs[line.task, line.more[0]].append(line.claim_no)
        elif line.word == "stored":
            seen[line.task, line.more[0]].add(int(line.more[1]))
    lost = 0
    for id in ids:
        values = tasks.app.tasks.handle(id).result(timeout=1)
        checkpoints = asyncio.run(tasks.app.engine.run(lambda store, id=id: store.checkpoints(id)))
        assert checkpoints == {f"step {step}": str(values[step]) for step in range(STEPS)}
        for step in range(STEPS):
            key = (id, str(step))
            assert seen[key] == {values[step]}, f"step {step} of task {id} gave different values"
            assert runs[key][-1] == values[step], f"step {step} of task {id} ran after it was stored"
            assert runs[key] == sorted(set(runs[key])), f"step {step} of task {id} ran twice in one attempt"
        lost += sum(attempt.state is AttemptState.LOST for attempt in tasks.app.tasks.attempts(id))
    return lost


@pytest.mark.chaos
def test_a_stored_step_never_runs_again_when_its_process_is_killed_between_any_two(
    harness: Harness, tasks: Tasks
) -> None:
    """A task of ten steps that kills its own child with SIGKILL in the middle of a step, between two, or at its end."""
    number, kills = sized(small=(6, 5), full=(50, 20))
    harness.worker("--children", "2", target=TARGET, concurrency=2)
    ids = harness.enqueue(tasks.ten_steps, [{"kills": kills, "seed": seed} for seed in range(number)])
    harness.until_done(ids, ceiling=sized(small=240.0, full=3000.0))
    assert account(harness, tasks, ids) >= number * kills


@pytest.mark.chaos
def test_a_stored_step_never_runs_again_when_the_worker_is_killed(either_harness: Harness) -> None:
    """The same on the loop: what dies is the worker process, with everything that it holds."""
    harness, kills = either_harness, sized(small=2, full=40)
    with contextlib.closing(tasks_durable.declared.on(harness.url).app) as app:
        tasks = Tasks(app, dict(app.registry))
        harness.worker(target=TARGET, concurrency=4)
        ids = harness.enqueue(tasks.ten_steps_loop, [{"kills": kills, "seed": 1}])
        harness.until_done(ids, ceiling=sized(small=240.0, full=3000.0))
        assert account(harness, tasks, ids) >= kills


@pytest.mark.slow
def test_a_stored_step_never_runs_again_when_everything_is_killed_from_outside(harness: Harness, tasks: Tasks) -> None:
    """kill -9 of supervisor, workers and children at once, at moments that have nothing to do with the steps."""
    rng, kills = random.Random(5), 20
    ids = harness.enqueue(tasks.slow_steps, [{"seconds": 0.03}] * 2)
    for _ in range(kills):
        tree = harness.worker("--children", "2", target=TARGET, concurrency=2)
        begun = len(notes(harness.side))
        wait_until(
            lambda begun=begun: len(notes(harness.side)) >= begun + rng.randrange(1, 12) or _ended(tasks, ids),
            DONE_CEILING,
            message="it goes on",
        )
        tree.kill()
    harness.worker("--children", "2", target=TARGET, concurrency=2)
    harness.until_done(ids, ceiling=180.0)
    account(harness, tasks, ids)


def _ended(tasks: Tasks, ids: list[int]) -> bool:
    return all(tasks.app.tasks.handle(id).state().terminal for id in ids)


@pytest.mark.chaos
def test_what_gives_its_slot_back_is_not_charged_and_goes_on(harness: Harness, tasks: Tasks) -> None:
    """One attempt is all it has, one slot is all there is: each of the tasks waits without either."""
    number = sized(small=4, full=40)
    harness.worker(target=TARGET, concurrency=1)
    ids = harness.enqueue(tasks.gives_back, [{"n": n, "key": f"order-{n}"} for n in range(number)])

    def wait_for_events() -> bool:
        return all(tasks.app.tasks.get(id).waiting_on == f"event:paid/order-{n}" for n, id in enumerate(ids))

    wait_until(wait_for_events, DONE_CEILING, message=harness.describe())
    for n in range(number):
        tasks.app.send("paid", f"order-{n}", {"amount": n})
    harness.until_done(ids)
    for n, id in enumerate(ids):
        handle: Any = tasks.app.tasks.handle(id)
        assert handle.result(timeout=1) == [n, {"amount": n}, 2 * n]
        assert handle.record().attempt == 1
        states = [attempt.state for attempt in tasks.app.tasks.attempts(id)]
        assert states.count(AttemptState.SUSPENDED) == len(states) - 1 >= 3
    assert len(notes(harness.side, "first")) == number
    assert harness.ledger.violations() == []


def test_the_lines_are_where_the_account_looks(tmp_path: Path) -> None:
    """The instrument itself: a line that comes after the value was stored is found."""
    (tmp_path / "notes").write_text("ran 7 1 1 99 0.5 3\nran 7 2 2 99 0.6 3\n")
    assert [(line.claim_no, line.more) for line in notes(tmp_path, "ran")] == [(1, ["3"]), (2, ["3"])]
