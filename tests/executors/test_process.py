"""Killable children beyond what every executor does: batches, replacement, and who dies with whom."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from headrace.core.outcome import Cancelled, Completed, Lost, Released
from headrace.executors.base import Launch, Ran
from headrace.executors.invocation import Host
from headrace.executors.nursery import ChildrenFailed
from headrace.executors.process import ProcessExecutor
from headrace.executors.slots import SlotRange, SlotTable
from headrace.testing.executor_conformance import Stand, claimed
from headrace.testing.executor_conformance.cases import failure_of, value_of
from headrace.testing.executor_conformance.tasks import TARGET
from tests.support.processes import runs
from tests.support.sizes import sized
from tests.support.waiting import eventually, wait_until

pytestmark = pytest.mark.timeout(60)


@asynccontextmanager
async def processes(
    directory: Path, *, target: str = TARGET, children: int = 2, **options: Any
) -> AsyncIterator[Stand]:
    def make(slots: Any, host: Any) -> ProcessExecutor:
        patient = {"unstarted_after": 30.0, **options}
        return ProcessExecutor(target=target, children=children, slots=slots, host=host, **patient)

    async with Stand.open(make, directory, entries=False) as stand:
        yield stand


async def test_children_are_replaced_after_max_tasks(tmp_path: Path) -> None:
    async with processes(tmp_path, children=1, max_tasks=5) as stand:
        pids = await asyncio.gather(*(stand.run("pid") for _ in range(20)))
        counts = [[value_of(ran) for ran in pids].count(pid) for pid in {value_of(ran) for ran in pids}]
    assert counts == [5, 5, 5, 5]


async def test_a_child_above_its_memory_is_replaced(tmp_path: Path) -> None:
    async with processes(tmp_path, children=1, memory_limit=1) as stand:
        pids = [value_of(await stand.run("pid")) for _ in range(10)]
    assert len(set(pids)) > 2


@pytest.mark.parametrize(
    ("name", "quick", "endless"),
    [("sleep", {"seconds": 0}, {"seconds": 1000}), ("hold_the_interpreter", {"rounds": 1}, {"rounds": 10**12})],
)
async def test_what_waits_behind_a_long_task_runs_elsewhere(
    tmp_path: Path, name: str, quick: dict[str, Any], endless: dict[str, Any]
) -> None:
    """Even behind one that holds the interpreter, whose child hears nothing."""
    async with processes(tmp_path) as stand:
        for _ in range(60):
            await stand.run(name, **quick)  # known as short, so that many are handed out at once
        long = asyncio.ensure_future(stand.run(name, **endless))
        behind = await asyncio.gather(*(stand.run(name, **quick) for _ in range(60)))
        assert all(isinstance(ran.outcome, Completed) for ran in behind)
        assert not long.done()
        long.cancel()
        await asyncio.wait([long])


async def test_stop_before_the_start_runs_nothing(tmp_path: Path) -> None:
    async with processes(tmp_path, children=1) as stand:
        first, first_run = await stand.start("sleep")
        launch = stand.launch("say")
        waiting = asyncio.ensure_future(stand.executor.run(launch))
        await asyncio.sleep(0)
        await stand.executor.stop(launch.ref, grace=5, reason="user")
        ran = await waiting
        assert (ran.outcome, ran.ran_for) == (Cancelled(reason="user"), None)
        assert not stand.channel.said(launch.ref)
        await stand.executor.stop(first.ref, grace=5)
        assert isinstance((await first_run).outcome, Cancelled)


async def test_what_finds_no_child_is_given_back(tmp_path: Path) -> None:
    """Known as short, so many are accepted; then both children are busy for long."""
    async with processes(tmp_path, unstarted_after=0.2) as stand:
        for _ in range(60):
            await stand.run("sleep", seconds=0)
        assert stand.executor.free() > 2
        long = [(await stand.start("sleep"))[1] for _ in range(2)]
        stranded = [asyncio.ensure_future(stand.run("sleep", seconds=0)) for _ in range(5)]
        for run in stranded:
            assert await run == Ran(outcome=Released())
        assert stand.executor.free() == 0
        assert not any(task.done() for task in long)


@pytest.mark.chaos
async def test_an_interruption_never_tears_a_message(tmp_path: Path) -> None:
    """Soft limits and stops that hit tasks in the middle of a write: every later message still arrives whole."""
    async with processes(tmp_path) as stand:
        for round_no in range(sized(small=8, full=60)):
            limited = stand.launch("chatter", soft=0.01, hard=20)
            stopped = stand.launch("chatter")
            runs = [asyncio.ensure_future(stand.executor.run(launch)) for launch in (limited, stopped)]
            await stand.until(lambda ref=stopped.ref: stand.channel.said(ref))
            await stand.executor.stop(stopped.ref, grace=20)
            first, second = await asyncio.wait_for(asyncio.gather(*runs), 30)
            assert failure_of(first).signature.kind == "soft_timeout"
            assert second.outcome == Cancelled(reason="user")
            assert {*stand.channel.said(limited.ref), *stand.channel.said(stopped.ref)} == {"x" * 10_000}
            assert value_of(await stand.run("echo", n=round_no)) == {"n": round_no}
            stand.channel.lines.clear()


async def test_what_only_the_child_can_unpickle_is_said_all_the_same(tmp_path: Path) -> None:
    """Fields and numbers of odd types reach the channel as plain ones, and the outcome behind them is heard."""
    async with processes(tmp_path, target="tests.executors.hostile:odd", children=1) as stand:
        launch = stand.launch("talk_oddly")
        ran = await asyncio.wait_for(stand.executor.run(launch), 10)
        assert value_of(ran) == "said"
        (line,) = stand.channel.lines[launch.ref]
        assert line.fields == {"error": "words", "where": "somewhere"}
        assert (stand.channel.values[launch.ref].value, stand.channel.values[launch.ref].total) == (0.5, 1.0)


async def test_a_channel_that_raises_loses_no_report(tmp_path: Path) -> None:
    heard: list[Any] = []
    async with processes(tmp_path, children=1) as stand:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, what: heard.append(what["exception"]))

        def broken(*_: object) -> None:
            raise ValueError("it cannot be kept")

        stand.channel.log = broken  # pyright: ignore[reportAttributeAccessIssue]
        ran = await asyncio.wait_for(stand.executor.run(stand.launch("say")), 10)
        assert isinstance(ran.outcome, Completed)
        assert {str(error) for error in heard} == {"it cannot be kept"}


async def test_free_says_how_deep_batches_may_be(tmp_path: Path) -> None:
    async with processes(tmp_path) as stand:
        assert stand.executor.free() == 2
        _, one = await stand.start("sleep", seconds=0.2)
        assert stand.executor.free() == 1
        await one
        assert stand.executor.free() == 2


async def test_a_terminal_signal_to_the_group_ends_no_task(tmp_path: Path) -> None:
    async with processes(tmp_path, children=1) as stand:
        launch, task = await stand.start("sleep", seconds=0.3)
        pid = next(slot.pid for slot in stand.table.occupied() if slot.ref == launch.ref)
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGINT)
        assert value_of(await task) == "slept"


async def test_the_kernel_killing_a_child_is_named(tmp_path: Path) -> None:
    async with processes(tmp_path, children=1) as stand:
        launch, task = await stand.start("sleep")
        os.kill(next(slot.pid for slot in stand.table.occupied() if slot.ref == launch.ref), signal.SIGKILL)
        lost = (await task).outcome
        assert isinstance(lost, Lost)
        assert lost.error.exit_code == -signal.SIGKILL
        assert "SIGKILL" in lost.error.message


@pytest.mark.parametrize("how", ["hard limit", "crash", "forkserver"])
async def test_programs_that_a_task_started_die_with_it(tmp_path: Path, how: str) -> None:
    """Also with the forkserver, by which the kernel ends the child itself and nothing else."""
    async with processes(tmp_path, children=1) as stand:
        launch, task = await stand.start("start_program", hard=1.0 if how == "hard limit" else None)
        program = psutil.Process(int(stand.channel.said(launch.ref)[0]))
        if how == "crash":
            os.kill(next(slot.pid for slot in stand.table.occupied() if slot.ref == launch.ref), signal.SIGSEGV)
        elif how == "forkserver":
            forkserver_of(psutil.Process()).kill()
        assert not isinstance((await task).outcome, Completed)
        await eventually(lambda: not runs(program))


async def test_stopping_one_does_not_strand_those_beside_it(tmp_path: Path) -> None:
    async with processes(tmp_path, children=1) as stand:
        for _ in range(60):
            await stand.run("sleep", seconds=0)
        launches = [stand.launch("sleep", seconds=0.01) for _ in range(10)]
        runs = [asyncio.ensure_future(stand.executor.run(launch)) for launch in launches]
        await stand.until(lambda: stand.channel.said(launches[0].ref))
        await stand.executor.stop(launches[5].ref, grace=5)
        outcomes = [(await asyncio.wait_for(run, 20)).outcome for run in runs]
        assert isinstance(outcomes.pop(5), Cancelled)
        assert all(isinstance(outcome, Completed) for outcome in outcomes)


async def test_a_child_that_dies_loading_arguments_is_charged_to_them(tmp_path: Path) -> None:
    async with processes(tmp_path, target="tests.executors.hostile:dying", children=1) as stand:
        poison, good = await asyncio.gather(stand.run("echo", options={"die": True}), stand.run("echo", n=1))
        assert isinstance(poison.outcome, Lost)
        assert poison.ran_for is not None  # types that load arguments are user code
        assert value_of(good) == {"n": 1}


async def test_loading_arguments_ends_at_the_hard_limit(tmp_path: Path) -> None:
    async with processes(tmp_path, target="tests.executors.hostile:dying", children=1) as stand:
        ran = await stand.run("echo", options={"hang": True}, hard=0.3)
        assert failure_of(ran).signature.kind == "timeout"
        assert value_of(await stand.run("echo", n=1)) == {"n": 1}


def forkserver_of(worker: psutil.Process) -> psutil.Process:
    return next(child for child in worker.children() if "headrace.executors.forkserver" in str(child.cmdline()))


async def test_the_forkserver_is_started_anew(tmp_path: Path) -> None:
    async with processes(tmp_path) as stand:
        _, task = await stand.start("sleep")
        forkserver_of(psutil.Process()).kill()
        lost = (await task).outcome
        assert isinstance(lost, Lost)
        assert value_of(await stand.run("echo", n=1)) == {"n": 1}


_FRAGILE = """
import os
from pathlib import Path
from headrace.testing.executor_conformance.tasks import source
if Path(os.environ["HEADRACE_TEST_BROKEN"]).exists():
    os._exit(7)
"""


async def test_one_forkserver_is_started_anew_however_often_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fragile_target.py").write_text(_FRAGILE)
    monkeypatch.syspath_prepend(str(tmp_path))
    broken, starts = tmp_path / "broken", 0
    monkeypatch.setenv("HEADRACE_TEST_BROKEN", str(broken))
    popen = subprocess.Popen

    def starting(*arguments: Any, **how: Any) -> Any:
        nonlocal starts
        starts += 1
        if starts == 1:
            raise OSError(11, "Resource temporarily unavailable")
        return popen(*arguments, **how)

    others = set(psutil.Process().children())  # the database server of other tests
    async with processes(tmp_path, target="fragile_target:source", children=1) as stand:
        monkeypatch.setattr("headrace.executors.nursery.subprocess.Popen", starting)
        broken.touch()
        (forkserver,) = set(psutil.Process().children()) - others
        forkserver.kill()
        await eventually(lambda: starts >= 4)
        assert len([task for task in asyncio.all_tasks() if task.get_name() == "headrace-forkserver"]) == 1
        broken.unlink()
        assert value_of(await stand.run("echo", n=1)) == {"n": 1}
        assert stand.executor.free() >= 1
        assert len(set(psutil.Process().children()) - others) == 1


async def test_a_child_that_retires_does_so_though_its_last_task_is_stopped(tmp_path: Path) -> None:
    async with processes(tmp_path, children=1) as stand:
        executor: Any = stand.executor
        pid = value_of(await stand.run("pid"))
        launch, task = await stand.start("sleep")
        executor._retire(executor._children[0])
        await executor.stop(launch.ref, grace=10.0)
        await asyncio.wait_for(task, 10)
        assert value_of(await stand.run("pid")) != pid


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_module:app", "no_such_module"),
        ("tests.executors.hostile:absent", "absent"),
        ("tests.executors.hostile:broken", "the pool could not be opened"),
    ],
)
async def test_open_says_why_children_cannot_start(tmp_path: Path, target: str, words: str) -> None:
    with pytest.raises(ChildrenFailed, match=words):
        async with processes(tmp_path, target=target):
            pass


_ONE_AT_MOST = """
import contextlib, os, time
from pathlib import Path
from headrace.testing.executor_conformance.tasks import FunctionEntry
PLACE = Path(os.environ["HEADRACE_TEST_PLACE"])

def endless():
    (PLACE / "running").touch()
    time.sleep(1000)

class Source:
    def resolve(self, name, options):
        return FunctionEntry(name, endless)

    @contextlib.asynccontextmanager
    async def resources(self):
        try:
            (PLACE / "first").mkdir()
        except FileExistsError:
            while not (PLACE / "running").exists():
                time.sleep(0.01)
            raise RuntimeError("no connection left for a second child")
        yield {}

source = Source()
"""


async def test_what_runs_in_one_child_when_another_cannot_start_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its slot is free: a watcher would take the dead child for one that runs too long."""
    (tmp_path / "one_at_most.py").write_text(_ONE_AT_MOST)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HEADRACE_TEST_PLACE", str(tmp_path))
    slots = SlotRange(SlotTable.create(tmp_path / "slots", 4))
    executor = ProcessExecutor(target="one_at_most:source", children=2, slots=slots, host=Host(), unstarted_after=30.0)
    launch = Launch(claim=claimed(1, name="endless"), entry=None, options={})
    running = asyncio.create_task(executor.run(launch))
    try:
        with pytest.raises(ChildrenFailed, match="no connection left"):
            await asyncio.wait_for(executor.open(), 30)
        assert isinstance((await asyncio.wait_for(running, 10)).outcome, Released)
        assert slots.table.occupied() == []
        assert executor.free() == 0
    finally:
        await executor.close()


async def test_close_leaves_no_process(tmp_path: Path) -> None:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    async with processes(tmp_path) as stand:
        _, task = await stand.start("stubborn")
        started = {process.pid for process in psutil.Process().children(recursive=True)} - before
    assert len(started) == 3
    assert isinstance((await task).outcome, Cancelled)
    await eventually(lambda: not any(psutil.pid_exists(pid) for pid in started))


_ENDLESS = """
import os, signal, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
Path(os.environ["HEADRACE_TEST_IMPORTING"]).touch()
while True:
    time.sleep(1000)
"""


async def test_a_forkserver_that_still_imports_is_closed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not listen yet, so the end of its socket would tell it nothing."""
    importing = tmp_path / "importing"
    (tmp_path / "endless_target.py").write_text(_ENDLESS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HEADRACE_TEST_IMPORTING", str(importing))
    slots = SlotRange(SlotTable.create(tmp_path / "slots", 4))
    executor = ProcessExecutor(target="endless_target:source", children=1, slots=slots, host=Host())
    opening = asyncio.create_task(executor.open())
    await eventually(importing.exists)
    forkserver = forkserver_of(psutil.Process())
    try:
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await asyncio.wait_for(executor.close(), 10)
        assert not forkserver.is_running()
    finally:
        if forkserver.is_running():
            forkserver.kill()


MANY = 1100  # `select` takes numbers below 1024


async def test_a_worker_with_very_many_descriptors_has_children(tmp_path: Path) -> None:
    with many_descriptors():
        async with processes(tmp_path, children=1) as stand:
            assert value_of(await stand.run("echo", n=1)) == {"n": 1}


async def test_a_module_that_holds_very_many_descriptors_has_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "holding_target.py").write_text(
        "import os\nfrom headrace.testing.executor_conformance.tasks import source\n"
        f"held = [os.dup(2) for _ in range({MANY})]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    async with processes(tmp_path, target="holding_target:source", children=1) as stand:
        assert [value_of(await stand.run("echo", n=n)) for n in range(2)] == [{"n": 0}, {"n": 1}]
        # The forkserver still hears what ends.
        _, task = await stand.start("sleep")
        os.kill(next(slot.pid for slot in stand.table.occupied()), signal.SIGKILL)
        lost = (await task).outcome
        assert isinstance(lost, Lost)
        assert lost.error.exit_code == -signal.SIGKILL


@contextmanager
def many_descriptors() -> Generator[None]:
    held = [os.dup(2) for _ in range(MANY)]
    try:
        assert max(held) >= 1024
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)


WORKER = """
import asyncio, sys
from pathlib import Path
from headrace.executors.process import ProcessExecutor
from headrace.testing.executor_conformance import Stand, claimed
from headrace.testing.executor_conformance.tasks import TARGET

async def main():
    make = lambda slots, host: ProcessExecutor(target=TARGET, children=2, slots=slots, host=host)
    async with Stand.open(make, Path(sys.argv[1]), entries=False) as stand:
        await stand.start("hold_the_interpreter")
        await stand.start("stubborn")
        print("running", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_children_die_with_the_worker(tmp_path: Path) -> None:
    """Even one that holds the interpreter and one that swallows every exception."""
    with subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "running\n"
            below = psutil.Process(worker.pid).children(recursive=True)
            assert len(below) == 3
        finally:
            worker.kill()
    wait_until(lambda: not any(map(runs, below)))
