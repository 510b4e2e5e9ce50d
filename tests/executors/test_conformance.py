"""Every executor against the shipped suite."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.core.outcome import Completed, Failed
from headrace.executors.base import Launch
from headrace.executors.command import CommandExecutor
from headrace.executors.coroutine import CoroutineExecutor
from headrace.executors.invocation import permanent
from headrace.executors.mock import MockExecutor
from headrace.executors.process import ProcessExecutor
from headrace.executors.thread import ThreadExecutor
from headrace.testing.executor_conformance import Stand, cases_for
from headrace.testing.executor_conformance.tasks import TARGET

pytestmark = pytest.mark.timeout(60)


# Which case proves which line, where it runs on an executor that the line speaks of.
PROVES = {
    "hard_limit_ends_what_burns_the_processor": ("R5",),
    "soft_limit_is_raised_inside": ("R6",),
    "the_task_knows_itself": ("R11",),
    "arguments_arrive_unchanged": ("A33", "D51"),
    "coroutines_run_in_children_too": ("A33",),
    "a_path_that_does_not_import_fails_clearly": ("A36",),
    "a_result_that_cannot_be_stored_is_a_failure": ("D50",),
    "printing_is_not_reporting": ("D52",),
}


def cases(*able: Any, proves: bool = False) -> Any:
    """The cases of an executor with these abilities, each marked with the lines that it proves."""
    found = [
        pytest.param(case, id=name, marks=[pytest.mark.requirement(*PROVES[name])] if proves and name in PROVES else [])
        for case in cases_for(*able)
        for name in [getattr(case, "__name__", str(case))]
    ]
    return pytest.mark.parametrize("case", found)


@cases("function", "limits", "interrupt", "wake", proves=True)
async def test_coroutine(case: Any, tmp_path: Path) -> None:
    def make(slots: Any, host: Any) -> CoroutineExecutor:
        return CoroutineExecutor(concurrency=8, slots=slots, host=host)

    async with Stand.open(make, tmp_path, suffix="_async") as stand:
        await case(stand)


@cases("function", "interrupt")
async def test_thread(case: Any, tmp_path: Path) -> None:
    def make(slots: Any, host: Any) -> ThreadExecutor:
        return ThreadExecutor(threads=8, slots=slots, host=host, supervised=False)

    async with Stand.open(make, tmp_path) as stand:
        await case(stand)


@cases("function", "limits", "interrupt", "wake", "kill", "child", proves=True)
async def test_process(case: Any, tmp_path: Path) -> None:
    def make(slots: Any, host: Any) -> ProcessExecutor:
        return ProcessExecutor(target=TARGET, children=2, slots=slots, host=host, unstarted_after=30)

    async with Stand.open(make, tmp_path, entries=False) as stand:
        await case(stand)


COMMANDS = {
    "succeed": ["true"],
    "sleep": ["sleep", "1000"],
    "spin": ["sh", "-c", "while :; do :; done"],
    "stubborn": ["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"],
}


@cases("limits", "wake", "kill")
async def test_command(case: Any, tmp_path: Path) -> None:
    def make(slots: Any, host: Any) -> CommandExecutor:
        return CommandExecutor(concurrency=8, slots=slots, host=host)

    async with Stand.open(make, tmp_path, command=COMMANDS.__getitem__) as stand:
        await case(stand)


@cases("wake")
async def test_mock(case: Any, tmp_path: Path) -> None:
    stands: list[Stand] = []

    async def sleep(launch: Launch) -> Completed | Failed:
        stands[0].channel.lines.setdefault(launch.ref, [])
        from headrace.executors.context import LogLine

        stands[0].channel.log(launch.ref, LogLine(at=0.0, message="entered"))
        await asyncio.Event().wait()
        return permanent(AssertionError("never"), launch.policy)

    executor = MockExecutor({"sleep": sleep})
    async with Stand.open(lambda _slots, _host: executor, tmp_path) as stand:
        stands.append(stand)
        await case(stand)
