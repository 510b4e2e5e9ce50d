"""Promise 1: nothing enqueued is lost.

A committed enqueue survives kill -9 of any process at any point, and whatever the database does meanwhile. Every test
ends with the account of the harness: each enqueued task is completed, accepted exactly once, has run at least once, no
claim has run twice, and the ledger's checker finds nothing.
"""

import contextlib
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.store.connect import sqlite_path
from tests.guarantees import workload
from tests.guarantees.harness import DONE_CEILING, ROOT, Harness
from tests.guarantees.processes import kill
from tests.guarantees.proxy import Moment, Proxy
from tests.support.postgres import PrivatePostgres, StopMode
from tests.support.sizes import sized
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]

# Inside the store around the COMMIT itself; at full size also around the call.
POINTS = [
    f"{place}{verb}.{moment}_commit"
    for place in sized(small=["store."], full=["store.", ""])
    for verb in ("claim", "start", "finish")
    for moment in ("before", "after")
]
MOMENTS: tuple[Moment, Moment] = ("before", "after")


# -- kill -9 -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A3", "F17")
def test_a_process_killed_before_and_after_each_commit_loses_nothing(harness: Harness) -> None:
    """The process that reaches a named point dies there, and so on through all points, with work at hand all the time.

    Mostly that is a worker process, which its supervisor replaces; where it is the supervisor, in the middle of its
    rescue, another tree takes over. The account proves A3 (a crash loses nothing) and F17 (dying right after the claim
    does not lose the task).
    """
    faults = ",".join(f"{point}:kill9" for point in POINTS)
    tree = harness.worker(fault=faults)
    deadline = time.monotonic() + DONE_CEILING
    while waiting := [point for point in POINTS if not tree.struck(point)]:
        assert time.monotonic() < deadline, f"the faults at {waiting} never struck: {harness.describe()}"
        if tree.process.poll() is not None:
            tree = harness.worker(fault=faults, once=tree.once, wait=False)
        if harness.ledger.done() >= len(harness.ids):
            # Some end at once, some run long enough for their start to be written.
            harness.touches(5)
            harness.stays(2, 0.3)
        time.sleep(0.05)
    if tree.process.poll() is not None:
        harness.worker()
    harness.until_done()
    harness.account()


@pytest.mark.requirement("A3", "F17")
@pytest.mark.parametrize(
    "point",
    [
        "claim.after_commit",
        *sized(small=[], full=["start.after_commit", "finish.before_commit", "finish.after_commit"]),
    ],
)
def test_everything_killed_at_once_at_a_named_point_loses_nothing(either_harness: Harness, point: str) -> None:
    """The worker process freezes exactly there, then supervisor, worker and children get kill -9 in one go.

    Only another worker's rescue can bring the tasks back; the account proves that it did.
    """
    harness = either_harness
    harness.touches(10)
    harness.stays(4, 0.3)
    tree = harness.worker(fault=f"{point}:stop", wait=False)
    harness.until_struck(tree, [point])
    tree.kill()
    harness.worker()
    harness.until_done()
    harness.account()


@pytest.mark.requirement("A3")
def test_kill_9_of_child_worker_supervisor_and_everything_under_load_loses_nothing(harness: Harness) -> None:
    """One after the other, each in the middle of a task that it runs, while a load is worked off.

    The attempt that was cut stays in the history, charged where nobody else can be to blame; the next one completes.
    """
    harness.lease = 3.0  # two trees on two cores: neither may miss it while the other does not
    harness.worker(children=2)
    harness.worker(children=2)
    for victim in ("child", "worker", "supervisor", "everything"):
        harness.touches(sized(small=50, full=2_000))
        harness.touches(sized(small=5, full=200), children=True)
        held = harness.hold(f"never-{victim}", children=True)
        execution = harness.running(held)
        wait_until(lambda held=held: harness.ledger.task(held).state == "running")
        tree = next(tree for tree in harness.trees if execution.pid in tree.pids())
        workers = tree.worker_ids()
        harness.stays(5, 0.2)
        match victim:
            case "child":
                kill(execution.pid)
            case "worker":
                kill(*tree.workers())
            case "supervisor":
                tree.kill_supervisor()
                harness.orphans_end(tree)
            case _:
                tree.kill()
        if all(tree.process.poll() is not None for tree in harness.trees):
            harness.worker(children=2)
        harness.until_done([held])
        cut, last = harness.ledger.attempts(held)
        # A worker process may have died inside a coroutine: then a task in its child is innocent and not charged.
        assert cut.state in ("lost", "released") if victim == "worker" else cut.state == "lost", victim
        assert (bool(cut.charged), last.state) == (cut.state == "lost", "succeeded"), victim
        if victim == "child":
            assert tree.worker_ids() == workers, "the worker process outlives its child"
    harness.until_done()
    harness.account()


@pytest.mark.slow
@pytest.mark.requirement("A3")
def test_three_times_everything_down_loses_nothing(either_harness: Harness) -> None:
    """All workers die together, three times in a row, with nobody left to rescue until the next start."""
    harness = either_harness
    for round_ in range(3):
        tree = harness.worker()
        held = harness.hold(f"never-{round_}")
        harness.touches(sized(small=10, full=500))
        harness.running(held)
        tree.kill()
    harness.worker()
    harness.until_done()
    harness.account()


@pytest.mark.requirement("A3")
def test_a_client_killed_at_its_commit_enqueues_all_or_nothing(harness: Harness) -> None:
    """Killed before COMMIT there is no trace of the batch; killed after it, the whole batch is there and completes.

    A client that starts again with the same idempotency key ends with one task, whichever it was.
    """
    script = (
        "import sys\nfrom tests.guarantees.workload import make\n"
        "load = make(sys.argv[1])\n"
        "load.touch.using(idempotency_key=sys.argv[3]).enqueue(n=1) if sys.argv[2] == 'one' else"
        " load.touch.enqueue_many([{'n': n} for n in range(50)])\n"
    )

    def client(count: str, key: str, fault: str | None) -> int:
        faults = {"HEADRACE_FAULT": f"store.enqueue.{fault}_commit:kill9"} if fault else {}
        environment = {**os.environ, workload.SIDE: str(harness.side), **faults}
        command = [sys.executable, "-c", script, harness.url, count, key]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=60).returncode

    assert client("many", "", "before") == -9
    assert harness.ledger.tasks() == {}
    assert client("many", "", "after") == -9
    assert len(harness.ledger.tasks()) == 50
    for moment in ("before", "after"):
        assert client("one", moment, moment) == -9
        assert client("one", moment, None) == 0
    harness.ids += harness.ledger.tasks()
    assert len(harness.ids) == 52
    harness.worker()
    harness.until_done()
    harness.account()


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A3")
@pytest.mark.parametrize("mode", sized(small=["immediate"], full=["immediate", "fast"]))
def test_a_restart_of_postgresql_under_load_loses_nothing(
    postgres_harness: Harness, private_postgres: PrivatePostgres, mode: StopMode
) -> None:
    """`immediate` is a crash of the server: what it had acknowledged is in its log, and so is every enqueue."""
    harness = postgres_harness
    tree = harness.worker(processes=2)
    workers = tree.worker_ids()
    for _ in range(sized(small=2, full=6)):
        done = harness.ledger.done()
        harness.touches(sized(small=100, full=1_000))
        harness.stays(10, 0.2)
        wait_until(lambda done=done: harness.ledger.done() > done)
        private_postgres.restart(mode)
    harness.until_done()
    harness.account()
    assert tree.worker_ids() == workers, "nobody was declared dead by a restart"


@pytest.mark.requirement("A3")
def test_backends_killed_again_and_again_under_load_lose_nothing(
    postgres_harness: Harness, private_postgres: PrivatePostgres
) -> None:
    """pg_terminate_backend of every connection, at whatever point each of them is, while tasks come and go."""
    harness = postgres_harness
    database = harness.url.rsplit("/", 1)[1]
    tree = harness.worker(processes=2)
    workers = tree.worker_ids()
    ended = 0
    for _ in range(sized(small=15, full=100)):
        done = harness.ledger.done()
        harness.ledger.close()
        with contextlib.suppress(Exception):
            ended += private_postgres.kill_backends(database)
        harness.touches(sized(small=20, full=50))
        harness.stays(2, 0.1)
        wait_until(lambda done=done: harness.ledger.done() > done)
    assert ended > 15
    harness.until_done()
    harness.account()
    assert tree.worker_ids() == workers, "nobody was declared dead for want of a connection"


@pytest.mark.requirement("A3")
def test_an_outage_longer_than_the_lease_makes_nobody_dead(
    postgres_harness: Harness, private_postgres: PrivatePostgres
) -> None:
    """The server is away for two leases while tasks run: no attempt is lost, and the same workers go on."""
    harness = postgres_harness
    harness.lease = 3.0  # when it is back, the one that comes first waits that long for the other
    trees = [harness.worker(processes=2, children=1), harness.worker(children=1)]
    workers = sorted(worker for tree in trees for worker in tree.worker_ids())
    held = [harness.hold("outage"), harness.hold("outage", children=True)]
    for task in held:
        harness.running(task)
    harness.touches(sized(small=50, full=1_000))
    harness.ledger.close()

    private_postgres.stop("fast")
    harness.let_pass(2 * harness.lease)
    harness.open_gate("outage")  # these end while nobody can be told
    private_postgres.start()

    harness.until_done()
    harness.account()
    assert [attempt for attempt in harness.ledger.attempts() if attempt.state == "lost"] == []
    assert sorted(worker for tree in trees for worker in tree.worker_ids()) == workers
    assert [len(harness.executions(task)) for task in held] == [1, 1]


def test_an_enqueue_that_loses_its_connection_at_commit_is_neither_lost_nor_doubled(postgres_harness: Harness) -> None:
    """The client repeats by itself; the ids were taken before, so the repeat finds what the first try wrote.

    With a worker at hand the first try's tasks may even be finished before the repeat arrives: they stay finished.
    """
    harness = postgres_harness
    harness.worker()
    with Proxy(harness.url) as proxy:
        load = workload.make(proxy.url)
        for n in range(sized(small=6, full=40)):
            cuts = len(proxy.cuts)
            proxy.arm("enqueue", MOMENTS[n % 2])
            match n % 3:
                case 0:
                    harness.ids += [handle.id for handle in load.touch.enqueue_many([{"n": m} for m in range(5)])]
                case 1:
                    harness.ids.append(load.touch.using(idempotency_key=f"key-{n}").enqueue(n=n).id)
                case _:
                    harness.ids.append(load.touch.enqueue(n=n).id)
            assert len(proxy.cuts) == cuts + 1
        harness.until_done()
        load.app.close()
    assert sorted(harness.ledger.tasks()) == sorted(set(harness.ids))
    harness.account()


def test_a_worker_that_loses_its_connection_at_commit_neither_loses_nor_doubles(postgres_harness: Harness) -> None:
    """A finish is reported again: «already finished by this claim» is a success. A lost claim is found.

    No attempt is charged twice, and none is lost: the account and the attempts prove it.
    """
    harness = postgres_harness
    with Proxy(harness.url) as proxy:
        harness.worker(url=proxy.url)
        for _ in range(sized(small=1, full=5)):
            for verb in ("claim_v1", "start", "finish_v1"):
                for moment in MOMENTS:
                    cuts = len(proxy.cuts)
                    proxy.arm(verb, moment)
                    harness.enqueue(harness.load.touch, [{"n": 1}])
                    harness.stays(3, 0.4)
                    harness.until_done()
                    wait_until(lambda cuts=cuts: len(proxy.cuts) > cuts, message=f"a {verb} was cut")
        harness.account()
        assert all(row.attempt == 1 for row in harness.ledger.tasks().values()), "each task was charged once"
        harness.close()


# -- SQLite ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A3")
def test_a_database_locked_by_another_program_loses_nothing_and_kills_nobody(sqlite_harness: Harness) -> None:
    """A foreign process holds the write lock for two leases: work waits, and goes on with the same worker."""
    harness = sqlite_harness
    tree = harness.worker(processes=2)
    workers = tree.worker_ids()
    harness.touches(sized(small=30, full=500))
    held = harness.hold("locked")
    harness.running(held)
    foreign = sqlite3.connect(sqlite_path(harness.url), timeout=30, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    harness.open_gate("locked")
    harness.let_pass(2 * harness.lease)
    foreign.execute("ROLLBACK")
    foreign.close()

    harness.touches(10)
    harness.until_done()
    harness.account()
    assert tree.worker_ids() == workers
    assert [attempt for attempt in harness.ledger.attempts() if attempt.state == "lost"] == []


@contextlib.contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    """A file system of four megabytes, where this user may mount one; else a plain folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode:
        yield folder
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class _Fullness:
    """Fills the disk: really, where it is a small one; else by a limit on the size of files of running processes."""

    def __init__(self, folder: Path) -> None:
        self._ballast = folder / "ballast"
        self.real = os.path.ismount(folder)

    def fill(self, pids: list[int]) -> None:
        if self.real:
            with self._ballast.open("wb", buffering=0) as file:
                for size in (1 << 16, 1 << 12, 1):
                    with contextlib.suppress(OSError):
                        while True:
                            file.write(b"\0" * size)
        else:
            self._limit(pids, 4096)

    def free(self, pids: list[int]) -> None:
        self._ballast.unlink(missing_ok=True)
        if not self.real:
            self._limit(pids, resource.RLIM_INFINITY)

    @staticmethod
    def _limit(pids: list[int], size: int) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard if size == resource.RLIM_INFINITY else size, hard))


@pytest.mark.requirement("A3")
def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """Nothing can be written for two leases: what was acknowledged stays, and all go on afterwards."""
    with _small_disk(tmp_path / "disk") as disk:
        harness = Harness(f"sqlite:///{disk / 'headrace.db'}", tmp_path)
        try:
            tree = harness.worker(children=1)
            harness.touches(20)
            held = [harness.hold("full"), harness.hold("full", children=True)]
            for task in held:
                harness.running(task)
            waiting = harness.stays(20, 0.1)
            fullness = _Fullness(disk)
            fullness.fill(tree.pids())
            if fullness.real:
                with pytest.raises(Exception, match=r"full|disk|written"):
                    harness.load.touch.enqueue_many([{"n": n} for n in range(5_000)])
            harness.open_gate("full")
            harness.let_pass(2 * harness.lease)
            fullness.free(tree.pids())
            harness.touches(5)
            harness.until_done()
            harness.account()
            assert set(waiting) <= set(harness.ledger.tasks())
        finally:
            harness.close()


@pytest.mark.requirement("A3")
def test_eight_processes_share_one_file(sqlite_harness: Harness) -> None:
    """All eight get their turn at the write lock, keep their leases, and complete everything exactly once."""
    harness = sqlite_harness
    harness.lease = 5.0  # eight interpreters start at once on two cores
    tree = harness.worker(processes=8, children=0, concurrency=4)
    workers = tree.worker_ids()
    assert len(workers) == 8
    harness.touches(sized(small=400, full=10_000))
    harness.stays(sized(small=64, full=256), 0.1)
    # As many as all eight have places, and each keeps its own until all are taken.
    held = set(harness.enqueue(harness.load.hold, [{"gate": "all eight"}] * (8 * 4)))
    wait_until(
        lambda: held <= {execution.task for execution in harness.executions()},
        DONE_CEILING,
        message=f"all eight processes get work; {harness.describe()}",
    )
    harness.open_gate("all eight")
    harness.until_done()
    harness.account()
    assert tree.worker_ids() == workers, "none was starved of its heartbeat"
    assert len({execution.pid for execution in harness.executions()}) == 8
