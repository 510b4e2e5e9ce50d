"""Commands: argv, environment, captured output, endings."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from headrace.core import payload
from headrace.core.outcome import Cancelled, Failed
from headrace.core.retry import Retry
from headrace.executors.base import Launch, Limits, Ran
from headrace.executors.command import CommandExecutor, Running
from headrace.executors.launching import Launched
from headrace.executors.output import KEPT_BYTES, Output
from headrace.executors.slots import GROUP
from headrace.executors.watchdog import end_groups
from headrace.testing.executor_conformance import Stand, claimed
from headrace.testing.executor_conformance.cases import failure_of, value_of
from tests.support.processes import is_called, runs
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(60)


@asynccontextmanager
async def commands(directory: Path) -> AsyncIterator[Stand]:
    def make(slots: Any, host: Any) -> CommandExecutor:
        return CommandExecutor(concurrency=8, slots=slots, host=host)

    async with Stand.open(make, directory, command=lambda name: [name]) as stand:
        yield stand


def launch_of(argv: Any, *, limits: Limits | None = None, number: int = 1, **more: Any) -> Launch:
    claim = claimed(number, "a command", payload.dumps({"argv": argv, **more}), kind="command", pool="command")
    return Launch(claim=claim, entry=None, options={}, limits=limits or Limits(), policy=Retry())


async def run(directory: Path, argv: Any, **how: Any) -> Ran:
    async with commands(directory) as stand:
        return await asyncio.wait_for(stand.executor.run(launch_of(argv, **how)), 30)


async def test_argv_reaches_the_program_without_a_shell(tmp_path: Path) -> None:
    words = ["$HOME; rm -rf /", "quotes \" and '", "line\nbreak", "ü€𝄞", ""]
    code = "import sys, json; print(json.dumps(sys.argv[1:]))"
    result = value_of(await run(tmp_path, [sys.executable, "-c", code, *words]))
    assert payload.loads(result["stdout"]) == words
    assert (result["exit_code"], result["stderr"]) == (0, "")


async def test_environment_directory_and_input(tmp_path: Path) -> None:
    argv = ["sh", "-c", 'echo "$GREETING $PWD"; cat; echo "$PATH" >&2']
    result = value_of(await run(tmp_path, argv, env={"GREETING": "hello"}, cwd=str(tmp_path), stdin="said\n"))
    assert result["stdout"] == f"hello {tmp_path}\nsaid\n"
    assert result["stderr"].strip() == os.environ["PATH"]


async def test_a_code_is_a_failure_with_the_end_of_stderr(tmp_path: Path) -> None:
    failed = failure_of(await run(tmp_path, ["sh", "-c", "yes error | head -c 100000 >&2; echo the end >&2; exit 7"]))
    assert failed.error.exit_code == 7
    assert "exited with code 7" in failed.error.message
    assert failed.error.message.endswith("the end")
    assert len(failed.error.message) < 700


async def test_a_signal_is_named(tmp_path: Path) -> None:
    failed = failure_of(await run(tmp_path, ["sh", "-c", "kill -SEGV $$"]))
    assert failed.error.exit_code == -signal.SIGSEGV
    assert "SIGSEGV" in failed.error.message


async def test_output_is_kept_from_its_end(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(b'a' * 3_000_000 + b'z\\0\\n\\xff')"
    result = value_of(await run(tmp_path, [sys.executable, "-c", code]))
    assert result["stdout_bytes"] == 3_000_004
    assert result["stdout"].endswith("az\\x00\n\\xff")
    assert len(result["stdout"]) <= KEPT_BYTES + 10


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ({"argv": ["no-such-program-here"]}, "'no-such-program-here' is not on this worker"),
        ({"argv": ["/"]}, "may not be executed"),
        ({"argv": ["true"], "cwd": "/no/such/place"}, "'/no/such/place' does not exist"),
        ({"argv": []}, "argv must be"),
        ({"argv": "rm -rf"}, "argv must be"),
        ({"argv": ["true"], "env": {"A=B": "c"}}, "cannot be set"),
        ({"argv": ["true"], "shell": True}, "not shell"),
        (["true"], "an object with argv"),
    ],
)
async def test_what_cannot_be_started_fails_for_good(tmp_path: Path, command: Any, words: str) -> None:
    launch = launch_of(["true"])
    claim = launch.claim._replace(arguments=payload.dumps(command))
    async with commands(tmp_path) as stand:
        ran = await stand.executor.run(Launch(claim=claim, entry=None, options={}))
        assert not stand.occupied
    assert isinstance(ran.outcome, Failed)
    assert words in ran.outcome.error.message
    assert ran.outcome.signature.verdict == "permanent"


async def test_the_soft_limit_asks_the_whole_group(tmp_path: Path) -> None:
    argv = ["sh", "-c", "trap 'echo bye >&2; exit 9' TERM; sleep 100 & wait"]
    failed = failure_of(await run(tmp_path, argv, limits=Limits(soft=0.3, hard=30)))
    assert failed.signature.kind == "soft_timeout"
    assert failed.error.exit_code == 9
    assert "soft limit" in failed.error.message
    assert failed.error.message.endswith("bye")


async def test_the_hard_limit_ends_what_the_command_started(tmp_path: Path) -> None:
    argv = ["sh", "-c", "trap '' TERM; sleep 1000 & echo $! > pid; wait; wait"]
    ran = await run(tmp_path, argv, cwd=str(tmp_path), limits=Limits(soft=0.3, hard=0.6))
    assert failure_of(ran).signature.kind == "timeout"
    grandchild = int((tmp_path / "pid").read_text())
    await eventually(lambda: not runs(grandchild))


async def test_a_command_that_ended_in_time_has_not_timed_out() -> None:
    """The loop was held up, or somebody keeps its output open: the limit passes between its end and the look at it."""
    loop = asyncio.get_running_loop()
    launched = Launched(loop.create_future(), loop.create_future())
    running = Running(launch_of(["true"]), launched, Output(), loop)
    launched.exited.set_result(0)
    running.soft()
    running.hard()
    assert (running.soft_passed, running.timed_out) == (False, False)


async def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    """A background process that holds the pipes neither delays the outcome nor outlives it."""
    ran = await run(tmp_path, ["sh", "-c", "sleep 1000 & echo $!"])
    await eventually(lambda: not runs(int(value_of(ran)["stdout"])))


async def test_stop_is_a_term_and_then_a_kill(tmp_path: Path) -> None:
    async with commands(tmp_path) as stand:
        argv = ["sh", "-c", "trap '' TERM; echo ready > ready; while :; do sleep 0.05; done"]
        launch = launch_of(argv, cwd=str(tmp_path))
        task = asyncio.ensure_future(stand.executor.run(launch))
        await eventually((tmp_path / "ready").exists)
        await stand.executor.stop(launch.ref, grace=0.2, reason="user")
        assert (await task).outcome == Cancelled(reason="user")


async def test_groups_of_a_dead_worker_can_be_ended(tmp_path: Path) -> None:
    async with commands(tmp_path) as stand:
        launch = launch_of(["sleep", "1000"])
        task = asyncio.ensure_future(stand.executor.run(launch))
        await stand.until(lambda: any(slot.kind == GROUP for slot in stand.table.occupied()))
        assert end_groups(stand.table, worker=1) == []
        assert end_groups(stand.table, worker=0) == [launch.ref]
        failed = failure_of(await task)
        assert failed.signature.kind == "killed"


TWO = ["sh", "-c", "trap '' TERM HUP; sleep 1000 & echo $! > $0.part; echo $$ >> $0.part; mv $0.part $0; wait; wait"]


@pytest.mark.parametrize("how", ["process", "group"])
async def test_a_command_ends_with_a_worker_that_is_killed(tmp_path: Path, how: str) -> None:
    """Nobody is left to hear the outcome, and another worker may run it anew: the program and what it started end."""
    pids = tmp_path / "pids"
    process = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-m", "tests.executors.commanding", str(tmp_path), json.dumps([*TWO, str(pids)])],
        start_new_session=True,
    )
    try:
        await eventually(pids.exists)
        command, grandchild = (int(pid) for pid in pids.read_text().split())
        assert runs(command)
        assert runs(grandchild)
    finally:
        (os.killpg if how == "group" else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
    await eventually(lambda: not runs(command) and not runs(grandchild), timeout=5)


async def test_commands_of_a_launcher_that_is_killed_fail_and_the_next_has_another(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with commands(tmp_path) as stand:
        task = asyncio.ensure_future(stand.executor.run(launch_of([*TWO, str(pids)])))
        await eventually(pids.exists)
        (launcher,) = (child for child in psutil.Process().children() if "launcher.py" in " ".join(child.cmdline()))
        launcher.kill()
        failed = failure_of(await asyncio.wait_for(task, 5))
        assert failed.signature.kind == "killed"
        await eventually(lambda: all(not runs(int(pid)) for pid in pids.read_text().split()), timeout=5)
        assert value_of(await stand.executor.run(launch_of(["echo", "next"], number=2)))["stdout"] == "next\n"


async def test_a_launcher_that_dies_while_it_is_written_to_holds_nobody(tmp_path: Path) -> None:
    """It is stopped with its socket full when it is killed: the writer waits, and so does the one behind it."""
    async with commands(tmp_path) as stand:
        assert value_of(await stand.executor.run(launch_of(["true"])))["exit_code"] == 0
        (launcher,) = (child for child in psutil.Process().children() if "launcher.py" in " ".join(child.cmdline()))
        launcher.suspend()
        many = {f"V{n}": "x" * 50_000 for n in range(20)}
        launches = [launch_of(["true"], env=many, number=number) for number in (2, 3)]
        tasks = [asyncio.ensure_future(stand.executor.run(launch)) for launch in launches]
        executor: Any = stand.executor
        await eventually(lambda: executor._launching._writing is not None and not executor._launching._writing.done())
        launcher.kill()
        rans = await asyncio.wait_for(asyncio.gather(*tasks), 10)
        # The first was told in the middle of its request; the second found another launcher, or was told as well.
        assert failure_of(rans[0]).error.message
        assert value_of(await stand.executor.run(launch_of(["echo", "next"], number=4)))["stdout"] == "next\n"


async def test_a_worker_with_very_many_descriptors_runs_commands(tmp_path: Path) -> None:
    held = [os.dup(2) for _ in range(1100)]  # `select` takes numbers below 1024
    try:
        assert max(held) >= 1024
        assert value_of(await run(tmp_path, ["echo", "high"]))["stdout"] == "high\n"
    finally:
        for descriptor in held:
            os.close(descriptor)


async def test_a_request_larger_than_the_sockets_buffer_arrives_whole(tmp_path: Path) -> None:
    async with commands(tmp_path) as stand:
        many = {f"V{n}": "x" * 50_000 for n in range(20)}
        argv = ["sh", "-c", 'echo "${#V0} ${#V19}"']
        launches = [launch_of(argv, env=many, number=number) for number in range(1, 7)]
        rans = await asyncio.gather(*(stand.executor.run(launch) for launch in launches))
        assert {value_of(ran)["stdout"] for ran in rans} == {"50000 50000\n"}


async def test_input_that_nobody_reads_does_not_hold_the_outcome(tmp_path: Path) -> None:
    result = value_of(await run(tmp_path, ["true"], stdin="x" * 1_000_000))
    assert result["exit_code"] == 0


async def test_a_cancelled_start_leaves_no_command_and_no_descriptor(tmp_path: Path) -> None:
    async with commands(tmp_path) as stand:
        await stand.executor.run(launch_of(["true"]))
        before = psutil.Process().num_fds()
        for number in range(2, 12):
            task = asyncio.ensure_future(stand.executor.run(launch_of(["sleep", "1000"], number=number)))
            for _ in range(number - 2):  # each a turn of the loop later than the one before
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        this = psutil.Process()
        await eventually(lambda: not any(is_called(each, "sleep") for each in this.children(recursive=True)))
        await eventually(lambda: psutil.Process().num_fds() == before)
