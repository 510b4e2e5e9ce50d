"""Promise 6: a poison task stops, alone. It is charged each time; its neighbours are not.

Neighbours have a single attempt: one charge that is not theirs would fail them. They wait at a gate in the same worker
process (on its loop, and in its children) while the poison does its harm, and must complete once the gate opens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace import Retry
from tests.guarantees import tasks_poison
from tests.guarantees.declared import Tasks, notes
from tests.guarantees.harness import DONE_CEILING, Harness
from tests.support.sizes import sized
from tests.support.waiting import wait_until

TARGET = "tests.guarantees.tasks_poison:app"
GATE = "calm"
NEIGHBOURS = sized(small=12, full=100)

# What ends the process, and what only ends the attempt: (harm, reason the task fails for, error class, attempts).
# On the loop each takes the worker process with it, and a new one must start: fewer of them at the small size.
DEADLY = {
    "child": ["exit", "segfault", "sigkill", "abort"],
    "loop": sized(small=["segfault"], full=["exit", "segfault", "sigkill", "abort"]),
}
OVER_LIMIT = {
    "child": ["ignore_sigterm", "hold_gil", "block"],
    "loop": sized(small=["hold_gil"], full=["ignore_sigterm", "hold_gil", "block"]),
}
RAISED = [
    ("unspeakable", "tests.guarantees.tasks_poison.Unspeakable", 2),
    ("recurse", "builtins.RecursionError", 2),
    ("nul_in_error", "builtins.ValueError", 2),
    ("surrogate_in_error", "builtins.ValueError", 2),
    ("nan", "headrace.PayloadError", 1),
    ("unserialisable", "headrace.PayloadError", 1),
    ("huge", "headrace.PayloadError", 1),
]
EXITS = [("system_exit", "builtins.SystemExit"), ("keyboard_interrupt", "builtins.KeyboardInterrupt")]


# Both stores and both places, each with each at the full size.
SCENES = [
    pytest.param((store, where), id=f"{store}-{where}", marks=[pytest.mark.postgres] if store == "postgres" else [])
    for store, where in sized(
        small=[("sqlite", "loop"), ("postgres", "child")],
        full=[(store, where) for store in ("sqlite", "postgres") for where in ("loop", "child")],
    )
]


@dataclass(frozen=True, slots=True)
class Scene:
    harness: Harness
    tasks: Tasks
    where: str  # "loop": on the event loop of the worker process; "child": in a child of it

    @property
    def harm(self) -> Any:
        return self.tasks.harm_loop if self.where == "loop" else self.tasks.harm_child


@pytest.fixture(params=SCENES)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    store, where = request.param
    harness = Harness(request.getfixturevalue(f"{store}_url"), tmp_path)
    tasks = tasks_poison.declared.on(harness.url)
    yield Scene(harness, tasks, where)
    tasks.app.close()
    harness.close()


def _neighbours(harness: Harness, tasks: Tasks, count: int = NEIGHBOURS) -> list[int]:
    """On the loop and in a child, inside user code before the poison comes; more of them wait for a free child."""
    ids = harness.enqueue(tasks.neighbour, [{"gate": GATE}] * count)
    ids += harness.enqueue(tasks.neighbour_child, [{"gate": GATE}])
    wait_until(
        lambda: {note.task for note in notes(harness.side, "begin")} >= set(ids),
        DONE_CEILING,
        message="every neighbour is inside user code",
    )
    return ids + harness.enqueue(tasks.quick_child, [{"n": n} for n in range(4)])


def _stopped(harness: Harness, poisons: list[int]) -> None:
    wait_until(
        lambda: all(harness.ledger.task(task).state in ("failed", "completed") for task in poisons),
        DONE_CEILING,
        message=f"the poison stops; {harness.describe()}",
    )


def _neighbours_complete_uncharged(harness: Harness, ids: list[int]) -> None:
    harness.open_gate(GATE)
    harness.until_done(ids)
    rows = harness.ledger.tasks()
    assert [rows[task] for task in ids if rows[task].state != "completed"] == []
    assert [rows[task] for task in ids if rows[task].attempt != 1] == [], "charged for what another did"
    charged = [attempt for attempt in harness.ledger.attempts() if attempt.task in ids and attempt.charged]
    assert len(charged) == len(ids)
    assert harness.ledger.violations() == []


@pytest.mark.chaos
@pytest.mark.requirement("A70")
def test_a_task_that_kills_its_process_stops_alone(scene: Scene) -> None:
    """os._exit, a segfault, SIGKILL and abort: two attempts allowed, two made and charged, failed as lost (A70: it does
    not loop for ever), while every neighbour in the same worker process completes with its only attempt.
    """
    harness, tasks, where = scene.harness, scene.tasks, scene.where
    tree = harness.worker(target=TARGET, concurrency=NEIGHBOURS + 4, children=2)
    neighbours = _neighbours(harness, tasks)
    # Not so short a limit that a busy machine meets it first.
    poison = harness.enqueue(scene.harm.using(timeout=60), [{"harm": harm} for harm in DEADLY[where]])
    _stopped(harness, poison)
    rows = harness.ledger.tasks()
    assert {(rows[task].state, rows[task].reason, rows[task].attempt) for task in poison} == {("failed", "lost", 2)}
    for task in poison:
        executions = [note for note in notes(harness.side, "harm") if note.task == task]
        assert [note.attempt for note in executions] == [1, 2], "it ran uncharged"
        assert [attempt.state for attempt in harness.ledger.attempts(task)] == ["lost", "lost"]
    _neighbours_complete_uncharged(harness, neighbours)
    assert tree.process.poll() is None


@pytest.mark.chaos
@pytest.mark.requirement("A66")
def test_a_task_that_cannot_be_asked_to_stop_is_ended_alone(scene: Scene) -> None:
    """Ignoring SIGTERM, holding the GIL in one C call and blocking the loop: ended at the hard limit by the supervisor,
    charged each time (A66), neighbours on the blocked loop released uncharged and completed.
    """
    harness, tasks, where = scene.harness, scene.tasks, scene.where
    harness.worker(target=TARGET, concurrency=NEIGHBOURS + 4, children=2)
    neighbours = _neighbours(harness, tasks)
    poison = harness.enqueue(scene.harm, [{"harm": harm} for harm in OVER_LIMIT[where]])
    _stopped(harness, poison)
    rows = harness.ledger.tasks()
    assert {(rows[task].state, rows[task].reason, rows[task].attempt) for task in poison} == {("failed", "timeout", 2)}
    for task in poison:
        attempts = harness.ledger.attempts(task)
        assert [attempt.state for attempt in attempts if attempt.charged] == ["timed_out", "timed_out"]
        uncharged = [attempt.state for attempt in attempts if not attempt.charged]
        if where == "loop":
            assert uncharged == []
        else:
            # There are more of them than children. One that waited half a second for its turn has its start written
            # before it is handed over, to see whether it is still ours; after a second without a child it goes back.
            assert set(uncharged) <= {"released"}
            executions = [note.attempt for note in notes(harness.side, "harm") if note.task == task]
            assert executions == [1, 2], "it ran uncharged"
    _neighbours_complete_uncharged(harness, neighbours)


@pytest.mark.chaos
@pytest.mark.requirement("D50")
def test_a_task_that_returns_or_raises_the_impossible_fails_alone(scene: Scene) -> None:
    """NaN, an object, 100 MB, errors that cannot be printed or stored, endless recursion: a failure with class and
    message (D50), not the end of a process. A NUL in a result is no harm: it comes back as it was.
    """
    harness, tasks = scene.harness, scene.tasks
    tree = harness.worker(target=TARGET, concurrency=NEIGHBOURS + 4, children=2)
    neighbours = _neighbours(harness, tasks)
    processes = set(tree.workers())
    harm = scene.harm.using(timeout=60)
    names = [name for name, *_ in RAISED]
    ids = dict(zip(names, harness.enqueue(harm, [{"harm": name} for name in names]), strict=True))
    nul = harm.enqueue(harm="nul")
    _stopped(harness, [*ids.values(), nul.id])
    assert nul.result(timeout=10) == "before\0after"
    failures = _failures(harness)
    for name, error_class, attempts in RAISED:
        row = harness.ledger.task(ids[name])
        assert (name, row.state, row.reason, row.attempt) == (name, "failed", "error", attempts)
        assert failures[ids[name]][0] == error_class
        assert failures[ids[name]][1], f"{name}: no message"
    assert set(tree.workers()) == processes, "a process died of a value"
    _neighbours_complete_uncharged(harness, neighbours)


@pytest.mark.chaos
def test_a_task_that_raises_exit_ends_itself_only(scene: Scene) -> None:
    """SystemExit and KeyboardInterrupt are failures of the task that raised them."""
    harness, tasks = scene.harness, scene.tasks
    tree = harness.worker(target=TARGET, concurrency=NEIGHBOURS + 4, children=2)
    neighbours = _neighbours(harness, tasks)
    processes = set(tree.workers())
    poison = harness.enqueue(scene.harm.using(timeout=60), [{"harm": harm} for harm, _ in EXITS])
    _stopped(harness, poison)
    failures = _failures(harness)
    assert [failures[task][0] for task in poison] == [error_class for _, error_class in EXITS]
    assert set(tree.workers()) == processes
    _neighbours_complete_uncharged(harness, neighbours)


def _failures(harness: Harness) -> dict[int, tuple[Any, Any]]:
    rows = harness.ledger.query("SELECT id, error_class, error_message FROM {history}")
    return {task: (error_class, message) for task, error_class, message in rows}


@pytest.mark.chaos
@pytest.mark.timeout(180)
@pytest.mark.requirement("A70")
def test_a_task_that_takes_the_supervisor_with_it_stops_too(scene: Scene) -> None:
    """Nobody is left to say who did it: everything that was held is a suspect, and suspects run one at a time with
    their start written first. So the poison is charged from its second death on and fails (A70), and no neighbour is
    dead-lettered. (One that the ledger has as running when everything dies is charged, hence three attempts.)
    """
    harness, tasks, where = scene.harness, scene.tasks, scene.where
    quick = (tasks.quick if where == "loop" else tasks.quick_child).using(retry=Retry(max_attempts=3))
    doom = tasks.doom_loop if where == "loop" else tasks.doom_child
    neighbours = harness.enqueue(quick, [{"n": n} for n in range(NEIGHBOURS // 2)])
    poison = harness.enqueue(doom.using(priority=1), [{}])
    neighbours += harness.enqueue(quick, [{"n": n} for n in range(NEIGHBOURS // 2)])
    deaths = 0
    while harness.ledger.task(poison[0]).state != "failed":
        assert deaths <= 6, f"the poison does not stop: {harness.describe()}"
        tree = harness.worker(target=TARGET, concurrency=4, children=2, wait=False)
        wait_until(
            lambda tree=tree: tree.process.poll() is not None or harness.ledger.task(poison[0]).state == "failed",
            DONE_CEILING,
            message=f"death {deaths} of the tree; {harness.describe()}",
        )
        deaths += 1
    executions = [note.attempt for note in notes(harness.side, "harm")]
    assert harness.ledger.task(poison[0]).attempt == 3
    # A death of which nobody could say who did it is free, once: from then on its start is written first.
    assert executions in ([1, 1, 2, 3], [1, 2, 2, 3], [1, 2, 3, 3], [1, 2, 3])
    harness.until_done(neighbours)
    rows = harness.ledger.tasks()
    assert [rows[task] for task in neighbours if rows[task].state != "completed"] == []
    assert harness.ledger.violations() == []
