"""Real processes that are killed, stopped and told to go, on both stores."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from headrace.core.states import AttemptState, TaskState
from headrace.worker.options import WorkerOptions
from tests.support.processes import runs
from tests.support.waiting import eventually
from tests.worker.application import app as functions
from tests.worker.bench import LEASE, Bench, opened
from tests.worker.trees import tree


@pytest.fixture
def bench(store_url: str) -> Bench:
    made = Bench(store_url)
    made.app = functions
    return made


def options(**changes: object) -> WorkerOptions:
    given = {"children": 1, "concurrency": 10, "lease": LEASE, "grace": 5.0, "poll": 0.2, **changes}
    return WorkerOptions(**given)  # pyright: ignore[reportArgumentType]


async def is_in(bench: Bench, task: int, state: TaskState) -> bool:
    return await bench.state(task) == state


async def test_a_burst_runs_everything_and_exits_0(bench: Bench, tmp_path: Path) -> None:
    async with opened(bench):
        tasks = [await bench.enqueue(name, {"user": n}) for n in range(20) for name in ("greet", "greet_child")]
        with tree(bench.store.url, tmp_path, options(burst=True, processes=2)) as running:
            assert running.process.wait(60) == 0
            assert len(running.said("greet")) == len(running.said("greet_child")) == 20
        assert {record.state for record in (await bench.store.get(tasks)).values()} == {TaskState.COMPLETED}
        assert {worker.state for worker in await bench.store.workers()} == {"stopped"}
        assert await bench.store.check() == []


@pytest.mark.requirement("A82")
async def test_sigterm_drains_and_exits_0(bench: Bench, tmp_path: Path) -> None:
    """The running task ends, nothing is left claimed, every worker is deregistered, the exit code is 0."""
    async with opened(bench):
        task = await bench.enqueue("sleep", {"seconds": 1.0})
        with tree(bench.store.url, tmp_path, options()) as running:
            await eventually(lambda: running.said("sleep"))
            assert running.stop() == 0
        assert await bench.state(task) == TaskState.COMPLETED
        assert {worker.state for worker in await bench.store.workers()} == {"stopped"}


@pytest.mark.requirement("A82")
async def test_sigint_gives_back_what_outlasts_the_grace(bench: Bench, tmp_path: Path) -> None:
    async with opened(bench):
        loop, child = (
            await bench.enqueue("sleep", {"seconds": 300}),
            await bench.enqueue("sleep_child", {"seconds": 300}),
        )
        with tree(bench.store.url, tmp_path, options(grace=0.3)) as running:
            await eventually(lambda: running.said("sleep") and running.said("sleep_child"))
            assert running.stop(signal.SIGINT) == 0
        for task in (loop, child):
            record = await bench.record(task)
            assert (record.state, record.attempt) == (TaskState.PENDING, 0)


async def test_a_second_signal_ends_at_once(bench: Bench, tmp_path: Path) -> None:
    async with opened(bench):
        task = await bench.enqueue("sleep", {"seconds": 300})
        with tree(bench.store.url, tmp_path, options(grace=300)) as running:
            await eventually(lambda: running.said("sleep"))
            running.process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            assert running.stop(signal.SIGINT) == 0
            assert time.monotonic() - began < 20
        assert await bench.state(task) == TaskState.PENDING


@pytest.mark.requirement("A68", "F17")
async def test_a_killed_worker_process_is_rescued_at_once_and_replaced(bench: Bench, tmp_path: Path) -> None:
    """Long before a lease has passed: the supervisor saw the death. What ran is charged, and its error says why."""
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(lease=60.0)) as running:
            task = await bench.enqueue("first_time_only", {"seconds": 300})
            await eventually(lambda: running.said("first_time_only"))
            (worker,) = running.workers()
            os.kill(worker, signal.SIGKILL)
            await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
            assert running.workers() != [worker]
            record = await bench.record(task)
            assert (record.attempt, record.result) == (2, '"claim 2"')
            lost, _ = await bench.store.attempts(task)
            assert (lost.state, lost.charged, lost.recorded_by) == (AttemptState.LOST, True, "supervisor")
            assert "signal 9" in (lost.error_message or "")
            assert running.stop() == 0
        assert await bench.store.check() == []


async def test_a_killed_child_costs_its_own_task_only(bench: Bench, tmp_path: Path) -> None:
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(lease=60.0)) as running:
            task, other = (
                await bench.enqueue("sleep_child", {"seconds": 300}),
                await bench.enqueue("sleep", {"seconds": 1}),
            )
            await eventually(lambda: running.said("sleep_child") and running.said("sleep"))
            ((_, _, _, child),) = running.said("sleep_child")
            os.kill(int(child), signal.SIGKILL)
            await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
            await eventually(lambda: is_in(bench, other, TaskState.COMPLETED))
            assert ((await bench.record(task)).attempt, (await bench.record(other)).attempt) == (2, 1)
            assert running.stop() == 0


TWO = "trap '' TERM HUP; sleep 1000 & echo $! > $0.part; echo $$ >> $0.part; mv $0.part $0; wait; wait"


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("victim", ["supervisor", "worker"])
async def test_programs_end_with_a_supervisor_or_a_worker_that_is_killed(
    bench: Bench, tmp_path: Path, victim: str
) -> None:
    """Their tasks are rescued and run anew: a command, what it started, and what a `def` started must not go on."""
    command, program = tmp_path / "command", tmp_path / "program"
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(lease=60.0, commands=1)) as running:
            arguments = {"argv": ["sh", "-c", TWO, str(command)]}
            await bench.enqueue("a command", arguments, kind="command", pool="command", max_attempts=1)
            await bench.enqueue("start_program", {"path": str(program)}, max_attempts=1)
            await eventually(lambda: command.exists() and program.exists())
            pids = [int(pid) for pid in (command.read_text() + program.read_text()).split()]
            assert len([pid for pid in pids if psutil.pid_exists(pid)]) == 3
            os.kill(running.process.pid if victim == "supervisor" else running.workers()[0], signal.SIGKILL)
            try:
                await eventually(lambda: not _alive(pids), timeout=5)
            finally:
                for left in _alive(pids):
                    left.kill()


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_programs_of_a_child_end_though_its_forkserver_and_its_worker_are_killed(
    bench: Bench, tmp_path: Path
) -> None:
    """The worker is stopped when its forkserver dies, so that neither can end the child's group: that leaves the
    supervisor, who knows the group by the slot.
    """
    said = tmp_path / "program"
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(lease=60.0)) as running:
            await bench.enqueue("start_program", {"path": str(said)}, max_attempts=1)
            await eventually(said.exists)
            program = int(said.read_text())
            (worker,) = (psutil.Process(pid) for pid in running.workers())
            (forkserver,) = worker.children()
            (child,) = forkserver.children()
            try:
                worker.suspend()
                forkserver.kill()
                await eventually(lambda: not _alive([child.pid]))
                assert _alive([program])
                worker.kill()
                await eventually(lambda: not _alive([program]), timeout=10)
            finally:
                for left in _alive([program]):
                    left.kill()


def _alive(pids: list[int]) -> list[psutil.Process]:
    alive: list[psutil.Process] = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


@pytest.mark.requirement("A68")
async def test_a_killed_supervisor_takes_its_processes_with_it_and_others_rescue(bench: Bench, tmp_path: Path) -> None:
    async with opened(bench):
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        with tree(bench.store.url, tmp_path / "a", options()) as first:
            task = await bench.enqueue("first_time_only", {"seconds": 300})
            child = await bench.enqueue("sleep_child", {"seconds": 300})
            await eventually(lambda: first.said("first_time_only") and first.said("sleep_child"))
            everyone = first.everyone()
            os.kill(first.process.pid, signal.SIGKILL)
            first.process.wait(10)
            await eventually(lambda: not any(map(runs, everyone)))
            with tree(bench.store.url, tmp_path / "b", options()) as second:
                for one in (task, child):
                    await eventually(lambda one=one: is_in(bench, one, TaskState.COMPLETED))
                assert second.stop() == 0
        assert await bench.store.check() == []


@pytest.mark.requirement("A69")
async def test_a_stopped_worker_process_loses_its_lease(bench: Bench, tmp_path: Path) -> None:
    """SIGSTOP: nobody renews for it, its task runs elsewhere, and when it wakes its report changes nothing."""
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(processes=2, concurrency=1, children=0)) as running:
            await eventually(lambda: len(running.workers()) == 2)
            task = await bench.enqueue("first_time_only", {"seconds": 300})
            await eventually(lambda: running.said("first_time_only"))
            ((_, _, _, pid),) = running.said("first_time_only")
            os.kill(int(pid), signal.SIGSTOP)
            await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
            assert (await bench.record(task)).result == '"claim 2"'
            # Its replacement comes without anyone waking it.
            await eventually(lambda: int(pid) not in running.workers() and len(running.workers()) == 2)
            assert running.stop() == 0
        assert await bench.store.check() == []


@pytest.mark.requirement("A70")
@pytest.mark.parametrize("name", ["poison", "poison_child", "leave"])
async def test_a_task_that_kills_its_process_stops_alone(bench: Bench, tmp_path: Path, name: str) -> None:
    """Charged each time until its attempts are used up; what waited beside it completes with one attempt."""
    async with opened(bench):
        poison = await bench.enqueue(name)
        others = [await bench.enqueue("greet", {"user": n}) for n in range(10)]
        with tree(bench.store.url, tmp_path, options(lease=60.0)) as running:
            await eventually(lambda: is_in(bench, poison, TaskState.FAILED))
            for task in others:
                await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED))
            assert running.stop() == 0
        record = await bench.record(poison)
        assert (record.reason, record.attempt, len(running.said(name))) == ("lost", 3, 3)
        assert await bench.store.check() == []


@pytest.mark.parametrize("how", ["leave", "arguments", "create_task", "gather", "group"])
async def test_a_process_that_user_code_ended_beside_its_coroutine_is_charged_to_it_alone(
    bench: Bench, tmp_path: Path, how: str
) -> None:
    """By SystemExit out of an asyncio task that it started, while its arguments were loaded, or hard in such a task:
    the neighbours go back.
    """
    calls = {"leave": ("leave", {}), "arguments": ("greet", {"user": "poison"})}
    name, arguments = calls.get(how, ("poison_beside", {"how": how}))
    async with opened(bench):
        neighbours = [await bench.enqueue("first_time_only", {"seconds": 300}) for _ in range(3)]
        with tree(bench.store.url, tmp_path, options(lease=60.0, children=0)) as running:
            await eventually(lambda: len(running.said("first_time_only")) == 3)
            guilty = await bench.enqueue(name, arguments, max_attempts=1)
            await eventually(lambda: is_in(bench, guilty, TaskState.FAILED))
            for task in neighbours:
                await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED))
            assert running.stop() == 0
        assert (await bench.record(guilty)).reason == "lost"
        assert {(await bench.record(task)).attempt for task in neighbours} == {1}
        assert await bench.store.check() == []


@pytest.mark.requirement("A66")
async def test_a_blocked_loop_is_killed_at_the_hard_limit_and_its_neighbours_go_on(
    bench: Bench, tmp_path: Path
) -> None:
    """The guilty attempt is recorded as timed out by the one who killed; the neighbour inside is not charged for it."""
    async with opened(bench):
        guilty = await bench.enqueue("block", {"seconds": 300}, options='{"timeout":1.0}', max_attempts=1)
        with tree(bench.store.url, tmp_path, options(lease=60.0, concurrency=2, children=0)) as running:
            await eventually(lambda: running.said("block"))
            neighbour = await bench.enqueue("greet", {"user": 1})
            await eventually(lambda: is_in(bench, guilty, TaskState.FAILED))
            await eventually(lambda: is_in(bench, neighbour, TaskState.COMPLETED))
            assert running.stop() == 0
        assert (await bench.record(guilty)).reason == "timeout"
        (attempt,) = await bench.store.attempts(guilty)
        assert (attempt.state, attempt.recorded_by) == (AttemptState.TIMED_OUT, "supervisor")
        assert (await bench.record(neighbour)).attempt == 1


async def test_what_waits_behind_a_blocked_loop_is_given_back(bench: Bench, tmp_path: Path) -> None:
    """One process blocks with a full buffer; another one runs what the buffer held, before the block ends."""
    end = tmp_path / "end"
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(lease=60.0, processes=2, concurrency=20, children=0)) as running:
            await eventually(lambda: len(running.workers()) == 2)
            blocked = await bench.enqueue("block_until", {"path": str(end)})
            await eventually(lambda: running.said("block_until"))
            others = [await bench.enqueue("greet", {"user": n}) for n in range(40)]
            for task in others:
                await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED), 7)
            assert await bench.state(blocked) != TaskState.COMPLETED
            end.touch()
            await eventually(lambda: is_in(bench, blocked, TaskState.COMPLETED))
            assert running.stop() == 0
        assert {(await bench.record(task)).attempt for task in [*others, blocked]} == {1}
        assert await bench.store.check() == []


async def test_what_ended_before_the_loop_was_blocked_does_not_run_again(bench: Bench, tmp_path: Path) -> None:
    """Their outcomes wait in the blocked process: they are not given to the other one, and land in the end."""
    async with opened(bench):
        ended = [await bench.enqueue("greet", {"user": n}) for n in range(30)]
        blocking = await bench.enqueue("block", {"seconds": 4.0})
        with tree(bench.store.url, tmp_path, options(lease=60.0, processes=2, concurrency=50, children=0)) as running:
            for task in [*ended, blocking]:
                await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED))
            assert running.stop() == 0
            assert sorted(int(line[1]) for line in running.said("greet")) == ended
        assert await bench.store.check() == []


async def test_what_waits_for_a_child_is_not_written_as_running(bench: Bench, tmp_path: Path) -> None:
    """Were everything to die now, what is written as running would be charged; these were handed over at one time."""
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(lease=60.0, children=1)) as running:
            # Known as short, so that many are handed over at once.
            for task in [await bench.enqueue("greet_child", {"user": n}) for n in range(100)]:
                await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED))
            end = tmp_path / "end"
            first = bench.app.task("wait_for_file_child", {"path": str(end)}, priority=5)
            others = [bench.app.task("greet_child", {"user": n}) for n in range(10)]
            long, *behind = [answer.id for answer in await bench.store.enqueue([first, *others])]
            seen: set[str] = set()

            async def are_claimed() -> bool:
                seen.update(record.state for record in (await bench.store.get(behind)).values())
                return TaskState.CLAIMED in seen

            await eventually(are_claimed)
            for _ in range(100):  # far longer than it takes until a task that runs is written so
                await are_claimed()
                await asyncio.sleep(0.02)
            end.touch()
            for task in [long, *behind]:
                await eventually(lambda task=task: is_in(bench, task, TaskState.COMPLETED))
            assert running.stop() == 0
        assert TaskState.RUNNING not in seen
        assert {(await bench.record(task)).attempt for task in behind} == {1}


async def test_a_lease_that_was_lost_ends_the_process_and_another_incarnation_starts(
    bench: Bench, tmp_path: Path
) -> None:
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(children=0)) as running:
            task = await bench.enqueue("first_time_only", {"seconds": 300})
            await eventually(lambda: running.said("first_time_only"))
            (pid,) = running.workers()
            await eventually(lambda: taken_over(bench, pid))
            await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
            await eventually(lambda: pid not in running.workers() and len(running.workers()) == 1)
            assert running.stop() == 0
        assert await bench.store.check() == []


async def taken_over(bench: Bench, pid: int) -> bool:
    (row,) = [row for row in await bench.store.workers() if row.pid == pid]
    return await bench.store.take_over(row.id, beat=row.beat)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("variable", "words"),
    [("HEADRACE_TEST_BROKEN_LIFESPAN", "no license server"), ("HEADRACE_TEST_BROKEN_CHILDREN", "no such library")],
)
async def test_a_burst_ends_when_user_code_cannot_start(
    bench: Bench, tmp_path: Path, variable: str, words: str
) -> None:
    (tmp_path / "broken").touch()
    async with opened(bench):
        task = await bench.enqueue("greet_child", {"user": 1})
        given = {variable: str(tmp_path / "broken")}
        with tree(bench.store.url, tmp_path, options(burst=True), **given) as running:
            assert running.process.wait(30) == 1
            assert running.log.read_text().count(words) >= 1
        assert await bench.state(task) == TaskState.PENDING


async def test_what_ran_beside_children_that_do_not_start_is_finished_before_a_burst_ends(
    bench: Bench, tmp_path: Path
) -> None:
    """It is in the middle of its run when the children fail, and has its only attempt all the same."""
    (tmp_path / "broken").touch()
    async with opened(bench):
        beside = [await bench.enqueue("sleep", {"seconds": 3}, max_attempts=1) for _ in range(3)]
        child = await bench.enqueue("greet_child", {"user": 1})
        given = {"HEADRACE_TEST_BROKEN_CHILDREN": str(tmp_path / "broken")}
        with tree(bench.store.url, tmp_path, options(burst=True, grace=20), **given) as running:
            assert await asyncio.to_thread(running.process.wait, 60) == 1
            assert len(running.said("sleep")) == 3
        assert {(await bench.record(task)).state for task in beside} == {TaskState.COMPLETED}
        assert await bench.state(child) == TaskState.PENDING
        assert await bench.store.check() == []


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_a_lifespan_that_raises_is_tried_again_and_said_each_time(bench: Bench, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    async with opened(bench):
        task = await bench.enqueue("greet", {"user": 1})
        given = {"HEADRACE_TEST_BROKEN_LIFESPAN": str(broken)}
        with tree(bench.store.url, tmp_path, options(), **given) as running:
            await eventually(lambda: running.log.read_text().count("no license server") >= 2)
            broken.unlink()
            await eventually(lambda: is_in(bench, task, TaskState.COMPLETED))
            assert running.stop() == 0


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_children_that_do_not_start_hold_back_their_own_tasks_only(bench: Bench, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    async with opened(bench):
        child = await bench.enqueue("greet_child", {"user": 1})
        loop = await bench.enqueue("greet", {"user": 1})
        with tree(bench.store.url, tmp_path, options(), HEADRACE_TEST_BROKEN_CHILDREN=str(broken)) as running:
            await eventually(lambda: is_in(bench, loop, TaskState.COMPLETED))
            await eventually(lambda: "no such library" in running.log.read_text())
            assert await bench.state(child) == TaskState.PENDING
            broken.unlink()
            await eventually(lambda: is_in(bench, child, TaskState.COMPLETED))
            assert len(running.workers()) == 1
            assert "exit" not in running.log.read_text()  # no process had to be replaced
            assert running.stop() == 0


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_what_a_stopped_worker_gave_back_is_counted(bench: Bench, tmp_path: Path) -> None:
    async with opened(bench):
        for _ in range(3):
            await bench.enqueue("sleep", {"seconds": 300})
        with tree(bench.store.url, tmp_path, options(grace=0.2)) as running:
            await eventually(lambda: len(running.said("sleep")) == 3)
            assert running.stop() == 0
            assert "gave back 3 tasks" in running.log.read_text()


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("pool", ["coroutine", "child"])
async def test_an_import_that_kills_its_process_is_charged_to_its_task(bench: Bench, tmp_path: Path, pool: str) -> None:
    """It ends after its attempts, its neighbour is not charged, and the supervisor does not import it."""
    async with opened(bench):
        with tree(bench.store.url, tmp_path, options(lease=60.0)) as running:
            innocent = await bench.enqueue("first_time_only", {"seconds": 300 if pool == "coroutine" else 1})
            await eventually(lambda: running.said("first_time_only"))
            deadly = await bench.enqueue("deadly.path", options='{"entrypoint": true}', pool=pool, max_attempts=2)
            await eventually(lambda: is_in(bench, deadly, TaskState.FAILED))
            await eventually(lambda: is_in(bench, innocent, TaskState.COMPLETED))
            assert running.process.poll() is None
        assert (await bench.record(deadly)).attempt == 2
        assert (await bench.record(innocent)).attempt == 1
        imported = (tmp_path / "said.imported").read_text().split()
        assert len(imported) == 2
        assert str(running.process.pid) not in imported
