"""Workers as real processes, faults from outside, and the account that every test closes with.

`Harness` makes a ledger with the guard on it, starts `headrace worker` on it as often as a test likes, and at the end
`account` proves of every enqueued task: it is there, it was accepted exactly once, it ran at least once, no claim ran
twice, and the ledger's own checker finds nothing. `close` ends every process and fails when one is left.
"""

import ctypes
import os
import signal
import struct
import subprocess
import sys
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.guarantees import workload
from tests.guarantees.ledger import Ledger
from tests.guarantees.processes import MARK, alive, freeze, kill, marked, send, thaw
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
TARGET = "tests.guarantees.workload:app"
LEASE = 1.5
# Everything below is a ceiling, met only when something is broken.
START_CEILING = 60.0
DONE_CEILING = 90.0
GONE_WITHIN = 5.0


_PRCTL = ctypes.CDLL(None, use_errno=True).prctl
_PR_SET_PDEATHSIG = 1


def _die_with_the_test() -> None:
    """A test run that is killed leaves no worker behind: the kernel ends the supervisor, and that ends the rest."""
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Execution(NamedTuple):
    task: int
    attempt: int
    claim_no: int
    pid: int
    at: float  # CLOCK_MONOTONIC, the same for all processes of this machine


@dataclass(slots=True)
class Tree:
    """One `headrace worker`: its supervisor, worker processes and children."""

    process: "subprocess.Popen[bytes]"
    mark: str
    log: Path
    ledger: Ledger
    once: Path  # a fault that struck leaves a file of this name and its point

    @property
    def supervisor(self) -> int:
        return self.process.pid

    def struck(self, point: str) -> bool:
        """Whether the fault armed at this point has happened in some process of the tree."""
        return Path(f"{self.once}.{point}").exists()

    def pids(self) -> list[int]:
        return marked(self.mark)

    def workers(self) -> list[int]:
        """The processes that the ledger knows as workers and that are alive in this tree."""
        mine = set(self.pids())
        return sorted({row.pid for row in self.ledger.living().values() if row.pid in mine})

    def worker_ids(self) -> list[str]:
        mine = set(self.pids())
        return sorted(worker for worker, row in self.ledger.living().items() if row.pid in mine)

    def started(self, processes: int = 1) -> "Tree":
        """Returns when so many workers of this tree are registered and claim."""

        def ready() -> bool:
            assert self.process.poll() is None, f"the worker ended ({self.process.returncode}):\n{self.output()}"
            # A worker says that it takes work once it has opened the store. The log is looked at first: to look for
            # the processes reads the environment of every one on this machine, and slows down what is waited for.
            return (
                self.log.read_text(errors="replace").count(" takes ") >= processes and len(self.workers()) >= processes
            )

        wait_until(ready, START_CEILING, message=f"{processes} workers take work")
        return self

    def kill(self) -> None:
        """kill -9 of everything at once."""
        kill(*self.pids())
        self.process.wait()

    def kill_supervisor(self) -> None:
        """kill -9 of the supervisor alone."""
        os.kill(self.supervisor, signal.SIGKILL)
        self.process.wait()

    def thaw(self) -> None:
        thaw(*self.pids())

    def terminate(self) -> int:
        """SIGTERM, and the exit code."""
        send(self.supervisor, signal.SIGTERM)
        return self.process.wait(START_CEILING)

    def output(self) -> str:
        return self.log.read_text(errors="replace")[-6000:] if self.log.exists() else ""


@dataclass(slots=True)
class Harness:
    url: str
    folder: Path
    lease: float = LEASE
    ledger: Ledger = field(init=False)
    load: workload.Workload = field(init=False)
    trees: list[Tree] = field(default_factory=list[Tree])
    ids: list[int] = field(default_factory=list[int])
    environment: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.side = self.folder / "side"
        self.side.mkdir()
        self.side.chmod(0o777)
        self.ledger = Ledger(self.url)
        self.ledger.prepare()
        self.load = workload.make(self.url)

    side: Path = field(init=False)

    # -- work ---------------------------------------------------------------------------------------------------------

    def enqueue(self, task: object, arguments: Iterable[dict[str, object]]) -> list[int]:
        """Enqueue through the public API; the ids are accounted for at the end."""
        ids = [handle.id for handle in task.enqueue_many(list(arguments))]  # type: ignore[attr-defined]
        self.ids += ids
        return ids

    def touches(self, count: int, *, children: bool = False) -> list[int]:
        task = self.load.touch_child if children else self.load.touch
        return self.enqueue(task, ({"n": n} for n in range(count)))

    def stays(self, count: int, seconds: float, *, children: bool = False) -> list[int]:
        task = self.load.stay_child if children else self.load.stay
        return self.enqueue(task, ({"n": n, "seconds": seconds} for n in range(count)))

    def hold(self, gate: str, *, children: bool = False) -> int:
        task = self.load.hold_child if children else self.load.hold
        return self.enqueue(task, [{"gate": gate}])[0]

    def open_gate(self, gate: str) -> None:
        (self.side / f"gate-{gate}").touch()

    # -- workers ------------------------------------------------------------------------------------------------------

    def worker(
        self,
        *options: str,
        fault: str | None = None,
        concurrency: int = 8,
        children: int = 0,
        processes: int = 1,
        url: str | None = None,
        wait: bool = True,
        target: str = TARGET,
        once: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> Tree:
        """Start `headrace worker` in a session of its own."""
        number = len(self.trees)
        mark = uuid.uuid4().hex
        once = once or self.side / f"fault-{number}"
        variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")},
            "HEADRACE_DATABASE_URL": url or self.url,
            workload.SIDE: str(self.side),
            MARK: mark,
            **self.environment,
            **(environment or {}),
        }
        if fault is not None:
            variables |= {"HEADRACE_FAULT": fault, "HEADRACE_FAULT_ONCE": str(once)}
        log = self.folder / f"worker-{number}.log"
        command = [
            sys.executable, "-m", "headrace.cli", "worker", target, "--lease", str(self.lease),
            "--concurrency", str(concurrency), "--children", str(children), "--processes", str(processes),
            *options,
        ]  # fmt: skip
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True, preexec_fn=_die_with_the_test,
            )  # fmt: skip
        tree = Tree(process, mark, log, self.ledger, once)
        self.trees.append(tree)
        return tree.started(processes) if wait else tree

    # -- looking ------------------------------------------------------------------------------------------------------

    def executions(self, task: int | None = None) -> list[Execution]:
        path = self.side / "executions"
        if not path.exists():
            return []
        found: list[Execution] = []
        for line in path.read_text().splitlines():
            _, *words = line.split()
            execution = Execution(*(int(word) for word in words[:4]), float(words[4]))
            if task is None or execution.task == task:
                found.append(execution)
        return found

    def running(self, task: int, times: int = 1) -> Execution:
        """Waits until the task was entered so many times; that execution."""
        wait_until(
            lambda: len(self.executions(task)) >= times,
            DONE_CEILING,
            message=f"task {task} entered {times} times; {self.describe()}",
        )
        return self.executions(task)[times - 1]

    def until_done(self, ids: Sequence[int] | None = None, *, ceiling: float = DONE_CEILING) -> None:
        """Waits until the ledger holds every task in history."""
        wanted = len(self.ids) if ids is None else len(ids)

        def done() -> bool:
            if ids is None:
                return self.ledger.done() >= wanted
            tasks = self.ledger.tasks()
            return all(tasks[task].state in ("completed", "failed", "cancelled") for task in ids)

        deadline = time.monotonic() + ceiling
        while not done():
            if time.monotonic() > deadline:
                raise AssertionError(f"not done within {ceiling:g} s: {self.describe()}")
            time.sleep(0.05)

    def until_struck(self, tree: Tree, points: Sequence[str]) -> None:
        """Waits until the armed faults have struck."""
        wait_until(
            lambda: all(tree.struck(point) for point in points),
            DONE_CEILING,
            message=f"the faults at {points} struck; {self.describe()}",
        )

    # -- faults -------------------------------------------------------------------------------------------------------

    def freeze(self, tree: Tree) -> None:
        """SIGSTOP of a whole tree, at a moment when none of it holds SQLite's write lock.

        A process stopped inside a transaction holds everybody: that is a stopped database, another fault than this one.
        """
        self.freeze_pids(*tree.pids())

    def freeze_pids(self, *pids: int) -> None:
        deadline = time.monotonic() + START_CEILING
        while True:
            freeze(*pids)
            if self.ledger.writable():
                return
            thaw(*pids)
            assert time.monotonic() < deadline, "no moment without a writer"

    @staticmethod
    def let_pass(seconds: float) -> None:
        """The fault lasts so long: nothing is waited for."""
        time.sleep(seconds)

    def describe(self) -> str:
        """What a person wants to see first when a wait was in vain."""
        words = [f"states {self.ledger.states()}"]
        unfinished = [row for row in self.ledger.tasks().values() if row.state != "completed"]
        words += [str(row) for row in unfinished[:5]]
        words += [str(row) for row in self.ledger.workers().values()]
        for number, tree in enumerate(self.trees):
            state = "up" if tree.process.poll() is None else f"exit {tree.process.returncode}"
            words.append(f"--- tree {number} ({state}, {tree.pids()}):\n{tree.output()[-1500:]}")
        return "\n".join(words)

    # -- the account --------------------------------------------------------------------------------------------------

    def account(self, ids: Sequence[int] | None = None, *, ran: bool = True) -> None:
        """Every task is completed, accepted exactly once, and was run; every claim was run at most once."""
        ids = self.ids if ids is None else ids
        tasks, journal = self.ledger.tasks(), self.ledger.journal()
        assert not [task for task in ids if task not in tasks], "tasks were lost"
        assert not [tasks[task] for task in ids if tasks[task].state != "completed"], self.describe()

        outcomes = Counter(step.task for step in journal if step.after in ("completed", "failed", "cancelled"))
        assert not {task: outcomes[task] for task in ids if outcomes[task] != 1}, "accepted more than once, or never"
        succeeded = Counter(attempt.task for attempt in self.ledger.attempts() if attempt.state == "succeeded")
        assert not {task: succeeded[task] for task in ids if succeeded[task] != 1}, "not one successful attempt"

        claims: dict[int, list[int]] = defaultdict(list)
        for step in journal:
            if step.after == "claimed":
                claims[step.task].append(step.claim_no)
        assert all(numbers == sorted(set(numbers)) for numbers in claims.values()), "a claim number came twice"

        executions = Counter((execution.task, execution.claim_no) for execution in self.executions())
        assert not [key for key, times in executions.items() if times > 1], "one claim was run twice"
        if ran:
            entered = {task for task, _ in executions}
            assert not [task for task in ids if task not in entered], "completed without having run"
        assert self.ledger.violations() == []

    # -- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End every process; one that a killed or ended supervisor left behind is a failure."""
        for tree in self.trees:
            if tree.process.poll() is None:
                tree.kill()
        # Those that end what tasks had started do so when they notice, not in the instant of the kill.
        deadline = time.monotonic() + GONE_WITHIN
        while (left := [pid for tree in self.trees for pid in tree.pids()]) and time.monotonic() < deadline:
            time.sleep(0.02)
        kill(*left)
        self.ledger.close()
        close = getattr(self.load.app, "close", None)
        if close is not None:
            close()
        assert not left, f"processes outlived their supervisor: {left}"

    def orphans_end(self, tree: Tree, *, ceiling: float = 30.0) -> None:
        """Waits until nothing is left of a tree whose supervisor is gone."""
        assert not alive(tree.supervisor)
        wait_until(lambda: not tree.pids(), ceiling, message="the processes of a dead supervisor end by themselves")


class WrongClock:
    """The wall clock of workers, off by so many seconds; `step` changes it while they run."""

    def __init__(self, folder: Path, offset: float = 0.0) -> None:
        self.path = folder / "clock"
        self.step(offset)

    def step(self, offset: float) -> None:
        with open(self.path, "r+b" if self.path.exists() else "wb") as file:
            file.write(struct.pack("<d", offset))

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(Path(__file__).parent / "wrongclock"), "HEADRACE_TEST_CLOCK": str(self.path)}


def as_host(name: str) -> dict[str, str]:
    """Makes workers believe that their host has this name."""
    return {"PYTHONPATH": str(Path(__file__).parent / "wrongclock"), "HEADRACE_TEST_HOSTNAME": name}
