"""Coroutines beyond what every executor does: cancellation of all kinds, and a loop that is blocked."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.core.outcome import Cancelled, Completed
from headrace.core.retry import Retry
from headrace.executors.base import Launch, Limits
from headrace.executors.context import current
from headrace.executors.coroutine import CoroutineExecutor
from headrace.executors.slots import VERDICT_TIMEOUT, SlotTable
from headrace.executors.watchdog import Watchdog
from headrace.testing.executor_conformance import Stand, claimed
from headrace.testing.executor_conformance.cases import failure_of, value_of
from headrace.testing.executor_conformance.tasks import FunctionEntry
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(60)


@asynccontextmanager
async def coroutines(directory: Path) -> AsyncIterator[Stand]:
    def make(slots: Any, host: Any) -> CoroutineExecutor:
        return CoroutineExecutor(concurrency=8, slots=slots, host=host)

    async with Stand.open(make, directory, suffix="_async") as stand:
        yield stand


def launch_of(function: Callable[..., Any], number: int = 500, **limits: float) -> Launch:
    name = function.__name__
    return Launch(
        claim=claimed(number, name),
        entry=FunctionEntry(name, function),
        options={},
        limits=Limits(**limits),
        policy=Retry(),
    )


async def test_the_soft_limit_leaves_nothing_of_a_task_group_behind(tmp_path: Path) -> None:
    async with coroutines(tmp_path) as stand:
        before = asyncio.all_tasks()
        failed = failure_of(await stand.run("group", soft=0.1, hard=20))
        assert failed.signature.kind == "soft_timeout"
        await stand.until(lambda: asyncio.all_tasks() <= before)


class Proxy:
    """Stands for an `async def` as tracing libraries do: its attributes are the function's, its call is its own."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __call__(self) -> Any:
        self.calls.append(current.task_id)
        raise TypeError("a mistake of the wrapper")


async def test_what_stands_for_a_function_is_called_once_and_inside(tmp_path: Path) -> None:
    async def traced() -> None: ...

    proxy = Proxy(traced)
    async with coroutines(tmp_path) as stand:
        failed = failure_of(await stand.executor.run(launch_of(proxy)))
    assert proxy.calls == [500], "`current` is there, and nothing runs twice"
    assert "a mistake of the wrapper" in failed.error.message


async def test_a_swallowed_cancellation_is_closed_after_the_grace(tmp_path: Path) -> None:
    async with coroutines(tmp_path) as stand:
        launch, task = await stand.start("stubborn")
        began = time.monotonic()
        await stand.executor.stop(launch.ref, grace=0.2, reason="user")
        outcome = (await task).outcome
        assert isinstance(outcome, Cancelled)
        assert (outcome.reason, outcome.message) == ("user", "it did not stop when told to and was closed")
        assert time.monotonic() - began >= 0.2
        assert stand.executor.free() == 8


async def test_the_hard_limit_closes_what_swallows_it(tmp_path: Path) -> None:
    async with coroutines(tmp_path) as stand:
        assert failure_of(await stand.run("stubborn", hard=0.2)).signature.kind == "timeout"
        assert not stand.occupied


async def test_what_waits_for_a_task_that_refuses_to_end_is_given_up(tmp_path: Path) -> None:
    """Its own asyncio task cannot even be woken; the outcome comes all the same."""
    release = asyncio.Event()

    async def refuse() -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    async def waits() -> None:
        await asyncio.create_task(refuse())

    async with coroutines(tmp_path) as stand:
        ran = await asyncio.wait_for(stand.executor.run(launch_of(waits, hard=0.1)), 20)
        assert failure_of(ran).signature.kind == "timeout"
        release.set()


async def test_a_task_that_cancels_itself_has_failed(tmp_path: Path) -> None:
    async def cancels_itself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(10)

    async with coroutines(tmp_path) as stand:
        failed = failure_of(await stand.executor.run(launch_of(cancels_itself)))
        assert failed.error.error_class == "asyncio.exceptions.CancelledError"


async def test_timeouts_of_the_task_itself_still_work(tmp_path: Path) -> None:
    async def has_its_own_timeout() -> str:
        try:
            async with asyncio.timeout(0.05):
                await asyncio.sleep(10)
        except TimeoutError:
            return "timed out by itself"
        return "never"

    async with coroutines(tmp_path) as stand:
        assert value_of(await stand.executor.run(launch_of(has_its_own_timeout, soft=20, hard=30))) == (
            "timed out by itself"
        )


async def test_cancelling_run_ends_the_attempt(tmp_path: Path) -> None:
    ended: list[str] = []

    async def waits() -> None:
        current.log("entered")
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append("cleaned up")

    async with coroutines(tmp_path) as stand:
        launch = launch_of(waits)
        task = asyncio.ensure_future(stand.executor.run(launch))
        await stand.until(lambda: stand.channel.said(launch.ref))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await stand.until(lambda: ended)
        assert not stand.occupied


async def test_variables_of_one_attempt_are_not_seen_by_the_next(tmp_path: Path) -> None:
    from contextvars import ContextVar

    tenant: ContextVar[str] = ContextVar("tenant", default="nobody")

    async def sets() -> str:
        before = tenant.get()
        tenant.set("someone")
        return before

    async with coroutines(tmp_path) as stand:
        assert [value_of(await stand.executor.run(launch_of(sets))) for _ in range(2)] == ["nobody", "nobody"]


@pytest.mark.requirement("R6")
async def test_a_blocking_call_on_the_loop_is_interrupted(tmp_path: Path) -> None:
    async def blocks() -> None:
        time.sleep(60)  # noqa: ASYNC251

    async with coroutines(tmp_path) as stand:
        ran = await stand.executor.run(launch_of(blocks, soft=0.1, hard=30))
        assert failure_of(ran).signature.kind == "soft_timeout"


async def test_the_signal_does_not_hit_a_neighbour(tmp_path: Path) -> None:
    """While the guilty one waits, an innocent one blocks the loop through many signals and completes."""
    received: list[int] = []

    async def blocks() -> str:
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            time.sleep(0.01)  # noqa: ASYNC251
        return "unharmed"

    async with coroutines(tmp_path) as stand:
        _, guilty = await stand.start("sleep", soft=0.1, hard=20)
        handler = signal.getsignal(signal.SIGUSR1)

        def counting(number: int, frame: Any) -> None:
            received.append(number)
            assert callable(handler)
            handler(number, frame)

        signal.signal(signal.SIGUSR1, counting)
        innocent = await stand.executor.run(launch_of(blocks, soft=20, hard=30))
        assert value_of(innocent) == "unharmed"
        assert received, "the watchdog sent signals while the innocent one ran"
        assert failure_of(await guilty).signature.kind == "soft_timeout"


BLOCKED = """
import asyncio, sys
from pathlib import Path
from headrace.core.retry import Retry
from headrace.executors.base import Launch, Limits
from headrace.executors.coroutine import CoroutineExecutor
from headrace.executors.invocation import Host
from headrace.executors.slots import SlotRange, SlotTable
from headrace.testing.executor_conformance import claimed
from headrace.testing.executor_conformance.tasks import FunctionEntry, task_hold_the_interpreter, task_sleep_async

async def holds():
    task_hold_the_interpreter()

async def main():
    slots = SlotRange(SlotTable.attach(Path(sys.argv[1])), worker=3)
    executor = CoroutineExecutor(concurrency=4, slots=slots, host=Host())
    await executor.open()
    neighbour = asyncio.ensure_future(executor.run(Launch(
        claim=claimed(1, "sleep"), entry=FunctionEntry("sleep", task_sleep_async), options={}, policy=Retry())))
    await asyncio.sleep(0)
    await executor.run(Launch(claim=claimed(2, "holds"), entry=FunctionEntry("holds", holds), options={},
                              limits=Limits(soft=0.1, hard=0.3), policy=Retry()))

asyncio.run(main())
"""


@pytest.mark.requirement("R5")
def test_a_blocked_loop_is_killed_and_the_guilty_slot_says_so(tmp_path: Path) -> None:
    """The supervisor's part: the process is killed, the verdict stands in the guilty slot and in no other."""
    table = SlotTable.create(tmp_path / "slots", 4)
    watchdog = Watchdog(table, loop_grace=0.2)
    worker = subprocess.Popen([sys.executable, "-c", BLOCKED, str(table.path)])
    acts: list[Any] = []
    try:
        wait_until(lambda: acts.extend(watchdog.run_once()) or any(act.what == "kill" for act in acts))
        assert worker.wait(20) == -signal.SIGKILL
    finally:
        worker.kill()
    verdicts = {slot.ref.id: slot.verdict for slot in table.occupied(worker=3)}
    assert verdicts == {1: 0, 2: VERDICT_TIMEOUT}
    assert {act.ref.id for act in acts} == {2}


async def test_many_at_once(tmp_path: Path) -> None:
    async with coroutines(tmp_path) as stand:
        runs = await asyncio.gather(*(stand.run("echo", n=n) for n in range(8)))
        assert [value_of(ran)["n"] for ran in runs] == list(range(8))
        full = [asyncio.ensure_future(stand.run("sleep", seconds=0.1)) for _ in range(8)]
        await stand.until(lambda: len(stand.occupied) == 8)
        assert stand.executor.free() == 0
        assert all(isinstance(ran.outcome, Completed) for ran in await asyncio.gather(*full))
