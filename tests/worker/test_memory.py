"""Limits of memory, with real processes that really take it."""

import os
from pathlib import Path

import psutil
import pytest

from headrace.core.errors import OptionError
from headrace.core.memory import memory_bytes, shown_memory
from headrace.core.states import AttemptState, TaskState
from headrace.executors.slots import READY, SlotTable
from headrace.runtime.memory import resident
from headrace.settings import read_settings
from headrace.worker.options import WorkerOptions
from headrace.worker.services.memory import MemoryWatch
from headrace.worker.spawning import Spawned
from headrace.worker.supervised import WorkerProcess
from tests.support.waiting import eventually
from tests.worker.application import app as functions
from tests.worker.bench import LEASE, Bench, opened
from tests.worker.trees import Tree, tree

MB = 1_000_000


@pytest.fixture
def bench(sqlite_url: str) -> Bench:
    made = Bench(sqlite_url)
    made.app = functions
    return made


def options(**changes: object) -> WorkerOptions:
    given = {"children": 1, "concurrency": 10, "lease": 10 * LEASE, "grace": 5.0, "poll": 0.2, **changes}
    return WorkerOptions(**given)  # pyright: ignore[reportArgumentType]


async def ended(bench: Bench, *tasks: int) -> bool:
    return all(record.state in ("completed", "failed") for record in (await bench.store.get(tasks)).values())


async def test_a_child_that_keeps_more_and_more_is_replaced_between_its_tasks(bench: Bench, tmp_path: Path) -> None:
    """No attempt is lost by it: each task has one."""
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(max_memory=300 * MB)) as running:
            tasks = [await bench.enqueue("leak_child", {"megabytes": 120}) for _ in range(6)]
            await eventually(lambda: ended(bench, *tasks), timeout=60)
            assert running.stop() == 0
            pids = [pid for _, _, _, pid in running.said("leak_child")]
            assert len(pids) == 6
            assert max(pids.count(pid) for pid in pids) <= 3, "the third is over the limit, whatever it began with"
            assert "over 300 MB: another takes its place" in running.log.read_text()
        records = [await bench.record(task) for task in tasks]
        assert {(record.state, record.attempt) for record in records} == {(TaskState.COMPLETED, 1)}


async def test_a_child_that_takes_too_much_is_killed_in_its_task_and_the_policy_decides(
    bench: Bench, tmp_path: Path
) -> None:
    """The attempt says how much and what the limit was. Its neighbours, also those handed to the same child, have one
    attempt each.
    """
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(kill_memory=250 * MB, children=2)) as running:
            beside = await bench.enqueue("first_time_only", {"seconds": 3})
            hog = await bench.enqueue("hog_child", {"megabytes": 400})
            last = await bench.enqueue("hog_child", {"megabytes": 400}, max_attempts=1)
            others = [await bench.enqueue("greet_child", {"user": n}) for n in range(20)]
            await eventually(lambda: ended(bench, beside, hog, last, *others), timeout=60)
            assert running.stop() == 0
        retried, failed = await bench.record(hog), await bench.record(last)
        assert (retried.state, retried.attempt, retried.result) == (TaskState.COMPLETED, 2, '"lean"')
        assert (failed.state, failed.reason, failed.attempt) == (TaskState.FAILED, "oom", 1)
        first, second = await bench.store.attempts(hog)
        assert (first.state, first.charged, second.state) == (AttemptState.FAILED, True, AttemptState.SUCCEEDED)
        assert first.error_class == "headrace.MemoryLimitExceeded"
        assert "more than the 250 MB of --kill-memory" in (first.error_message or "")
        records = [await bench.record(task) for task in (beside, *others)]
        assert {(record.state, record.attempt) for record in records} == {(TaskState.COMPLETED, 1)}
        assert await bench.store.check() == []


async def test_a_killing_limit_below_what_a_child_needs_is_said_and_charges_nobody(
    bench: Bench, tmp_path: Path
) -> None:
    """The attempt would fail for what the task did not take."""
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(kill_memory=4 * MB)) as running:
            task = await bench.enqueue("sleep_child", {"seconds": 1})
            await eventually(lambda: "no `def` task runs until this is mended" in running.log.read_text(), timeout=60)
            assert "kill_memory 4 MB is less than the" in running.log.read_text()
            beside = await bench.enqueue("greet", {"user": 1})
            await eventually(lambda: ended(bench, beside), timeout=60)
            assert running.stop() == 0
            assert running.said("sleep_child") == []
        record = await bench.record(task)
        assert (record.state, record.attempt) == (TaskState.PENDING, 0)
        assert await bench.store.attempts(task) == []


async def test_a_worker_process_that_has_too_much_is_replaced_and_lets_its_tasks_end(
    bench: Bench, tmp_path: Path
) -> None:
    """Longer than the grace, which is for those that are told to stop: the long task has its one attempt there."""
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(max_memory=400 * MB, children=0, grace=0.1)) as running:
            long = await bench.enqueue("wait_for_file", {"path": str(tmp_path / "end")})
            await eventually(lambda: running.said("wait_for_file"))
            (before,) = running.workers()
            await bench.enqueue("leak", {"megabytes": 450})
            await eventually(lambda: len(running.workers()) == 2, timeout=60)
            await eventually(lambda: greeted_elsewhere(bench, running, before), timeout=60)
            assert before in running.workers()
            (tmp_path / "end").touch()
            await eventually(lambda: before not in running.workers(), timeout=60)
            assert len(running.workers()) == 1
            assert running.stop() == 0
        record = await bench.record(long)
        assert (record.state, record.attempt, record.result) == (TaskState.COMPLETED, 1, f'"{before}"')
        assert await bench.store.check() == []


async def greeted_elsewhere(bench: Bench, running: Tree, before: int) -> bool:
    await bench.enqueue("greet", {"user": 1})
    return any(int(pid) != before for _, _, _, pid in running.said("greet"))


async def test_a_limit_below_what_a_worker_process_needs_is_said_once_and_replaces_none(
    bench: Bench, tmp_path: Path
) -> None:
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(max_memory=2 * MB, children=0)) as running:
            await eventually(lambda: "worker processes are not replaced" in running.log.read_text(), timeout=60)
            (worker,) = running.workers()
            task = await bench.enqueue("greet", {"user": 1})
            await eventually(lambda: ended(bench, task))
            assert running.workers() == [worker]
            assert running.stop() == 0
            assert running.log.read_text().count("not replaced") == 1


async def test_one_that_has_too_much_as_soon_as_it_took_the_place_of_another_is_given_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise worker processes would follow one another without end, at the pace at which they start."""
    table = SlotTable.create(tmp_path / "slots", 2)
    processes: list[WorkerProcess] = []
    watch = MemoryWatch(limit=MB, table=table, processes=lambda: processes, may=lambda: True)
    try:
        for index in (0, 1):
            processes.append(WorkerProcess(index=index, id=f"worker {index}", process=Spawned()))
            table.enter_stage(index, READY)
            await eventually(lambda index=index: (resident(processes[index].pid) or 0) > 2 * MB)
            await watch.run_once()
            await watch.run_once()
        first, second = processes
        assert first.outgrown.is_set()
        assert not second.outgrown.is_set()
        assert caplog.text.count("raise max_memory") == 1
        second.started -= 31
        await watch.run_once()
        assert second.outgrown.is_set()
    finally:
        for process in processes:
            process.kill(spared=True)
            process.process.close()
        table.close()


def test_what_is_resident_is_what_the_kernel_says() -> None:
    used = resident(os.getpid())
    assert used is not None
    assert abs(used - psutil.Process().memory_info().rss) < 50 * MB
    assert resident(2**22 + 1) is None


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("512MB", 512 * MB), ("512 mb", 512 * MB), ("2GiB", 2 * 1024**3), ("1.5G", 1_500 * MB),
        ("4096KiB", 4 * 1024**2), ("300000K", 300 * MB), ("268435456", 2**28), (268435456, 2**28), ("1TB", 10**12),
    ],
)  # fmt: skip
def test_amounts_are_written_in_bytes_or_with_a_unit(text: int | str, amount: int) -> None:
    assert memory_bytes(text, name="max_memory") == amount


@pytest.mark.parametrize("text", ["", "much", "512XB", "512iB", "-1GB", "512", 512, True, 1.5e9])
def test_what_is_no_amount_is_refused_by_its_name(text: object) -> None:
    with pytest.raises(OptionError, match="--max-memory"):
        memory_bytes(text, name="--max-memory")  # pyright: ignore[reportArgumentType]


def test_amounts_are_shown_with_three_digits() -> None:
    assert [shown_memory(n) for n in (612_345_678, 2**31, 1_000 * 10**9, 12_000)] == [
        "612 MB", "2.15 GB", "1000 GB", "12 KB",
    ]  # fmt: skip


def test_an_app_and_the_environment_may_say_it() -> None:
    assert read_settings({"max_memory": "512MB"}, environ={}).max_memory == 512 * MB
    settings = read_settings({}, environ={"HEADRACE_MAX_MEMORY": "1GiB", "HEADRACE_KILL_MEMORY": "2GiB"})
    assert (settings.max_memory, settings.kill_memory) == (1024**3, 2 * 1024**3)
    with pytest.raises(ValueError, match="HEADRACE_MAX_MEMORY='much' is no amount of memory"):
        read_settings({}, environ={"HEADRACE_MAX_MEMORY": "much"})
    with pytest.raises(ValueError, match="no child would live"):
        read_settings({"max_memory": "2GB", "kill_memory": "1GB"}, environ={})
    with pytest.raises(OptionError, match="no child would live"):
        WorkerOptions(max_memory=2 * 10**9, kill_memory=10**9)


def test_the_evidence_of_a_verdict_goes_with_the_attempt(tmp_path: Path) -> None:
    table = SlotTable.create(tmp_path / "slots", 2)
    table.enter(1, worker=0, ref=(7, 1), soft=None, hard=None)
    table.judge(1, 3, memory=(2 * MB, MB))
    slot = table.read(1)
    assert slot is not None
    assert slot.memory == (2 * MB, MB)
    table.enter(1, worker=0, ref=(8, 1), soft=None, hard=None)
    slot = table.read(1)
    assert slot is not None
    assert slot.memory == (0, 0)
    table.close()
