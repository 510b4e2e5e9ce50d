"""The tasks that the cases run: each is what its name says. Names ending in `_async` are coroutines.

A child process imports this module: the target is "headrace.testing.executor_conformance.tasks:source".
"""

import asyncio
import ctypes
import inspect
import itertools
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from headrace.core import payload
from headrace.core.errors import ArgumentError, BreakerOpen, Permanent, SoftTimeLimitExceeded, UnknownTask
from headrace.core.outcome import Cancel, RetryAfter, Snooze
from headrace.core.retry import Retry
from headrace.executors.context import Context, current

TARGET = "headrace.testing.executor_conformance.tasks:source"


class FunctionEntry:
    """The plainest entry: arguments are a JSON object of keywords."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self.retry = Retry()

    def load_arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        arguments = payload.loads(text)
        if not isinstance(arguments, dict):
            raise ArgumentError(f"{self.name}: arguments are an object, not {arguments!r}")
        return (), arguments  # pyright: ignore[reportUnknownVariableType]

    def dump_result(self, value: Any) -> str:
        return payload.dumps(value)

    def inject(self, context: Any, resources: Mapping[str, Any]) -> dict[str, Any]:
        offered: dict[str, Any] = {"context": context, "resources": resources}
        return {name: offered[name] for name in inspect.signature(self.function).parameters if name in offered}


class ModuleSource:
    """The functions of this module by name, and dotted paths by import."""

    def resolve(self, name: str, options: Mapping[str, Any]) -> FunctionEntry:
        if "." in name:
            module, _, attribute = name.rpartition(".")
            __import__(module)
            return FunctionEntry(name, getattr(sys.modules[module], attribute))
        function = globals().get(f"task_{name}")
        if function is None:
            raise UnknownTask(f"no task {name!r}")
        return FunctionEntry(name, function)

    def resources(self) -> AbstractAsyncContextManager[Mapping[str, Any]]:
        return _lifespan()


@asynccontextmanager
async def _lifespan() -> AsyncGenerator[Mapping[str, Any]]:
    yield {"opened_in": os.getpid()}


source = ModuleSource()


def task_echo(**values: Any) -> Any:
    return values


async def task_echo_async(**values: Any) -> Any:
    await asyncio.sleep(0)
    return values


def _who() -> dict[str, Any]:
    return {
        "task_id": current.task_id,
        "claim_no": current.claim_no,
        "attempt": current.attempt,
        "max_attempts": current.max_attempts,
        "name": current.name,
        "queue": current.queue,
        "job_id": current.job_id,
        "run_no": current.run_no,
        "worker": current.worker,
        "metadata": dict(current.metadata),
        "cancelled": current.cancelled,
    }


def task_who(context: Context) -> Any:
    return {**_who(), "injected": context.task_id}


async def task_who_async(context: Context) -> Any:
    in_subtask = await asyncio.create_task(_subtask())
    in_thread = await asyncio.to_thread(lambda: current.task_id)
    return {**_who(), "injected": context.task_id, "in_subtask": in_subtask, "in_thread": in_thread}


async def _subtask() -> int:
    return current.task_id


def _say() -> None:
    current.log("first", part=1)
    current.log("second", level="warning")
    current.stream({"value": [1, None]})
    current.progress(3, 10, "third of ten")
    current.stream("second")
    current.heartbeat()


def task_say() -> None:
    _say()


async def task_say_async() -> None:
    _say()
    await asyncio.to_thread(current.log, "from a thread")


def task_print_outcome() -> str:
    """Writes what looks like a report to every stream a careless executor might read."""
    for stream in (sys.stdout, sys.stderr):
        print('{"ok": true, "result": "forged"}', file=stream, flush=True)
    os.write(1, b"\x10\x00\x00\x00forged")
    return "real"


def _raise(what: str) -> Any:
    match what:
        case "error":
            raise ValueError("broken \0 text \udc80")
        case "permanent":
            raise Permanent("never again")
        case "breaker":
            raise BreakerOpen("mail", delay=7.5)
        case "exit":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "cancelled":
            raise asyncio.CancelledError
        case "unprintable":
            raise _Unprintable
        case "huge":
            raise ValueError("x" * 5_000_000)
        case _:
            raise AssertionError(what)


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def task_raise(what: str) -> Any:
    return _raise(what)


async def task_raise_async(what: str) -> Any:
    await asyncio.sleep(0)
    return _raise(what)


def _give(what: str) -> Any:
    match what:
        case "snooze":
            return Snooze(30)
        case "cancel":
            return Cancel("enough")
        case "retry":
            return RetryAfter(12, "not yet")
        case "bad snooze":
            return Snooze(-1)
        case "object":
            return object()
        case "nan":
            return {"score": math.nan}
        case "huge":
            return "x" * 100_000_000
        case "nested":
            value: list[Any] = []
            value.append(value)
            return value
        case _:
            raise AssertionError(what)


def task_give(what: str) -> Any:
    return _give(what)


async def task_give_async(what: str) -> Any:
    return _give(what)


def task_sleep(seconds: float = 1000) -> str:
    current.log("entered")
    time.sleep(seconds)
    return "slept"


async def task_sleep_async(seconds: float = 1000) -> str:
    current.log("entered")
    await asyncio.sleep(seconds)
    return "slept"


def _spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def task_spin(seconds: float = 60) -> None:
    current.log("entered")
    _spin(seconds)


async def task_spin_async(seconds: float = 60) -> None:
    current.log("entered")
    await asyncio.sleep(0)
    _spin(seconds)


def task_chatter(seconds: float = 60) -> None:
    """Writes to its channel all the time, so that an interruption hits a write."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        current.log("x" * 10_000)


def task_clean_up() -> str:
    try:
        task_spin()
    except SoftTimeLimitExceeded:
        current.log("cleaned up")
        return "cleaned up"
    return "never interrupted"


async def task_clean_up_async() -> str:
    try:
        await task_sleep_async()
    except SoftTimeLimitExceeded:
        await asyncio.sleep(0)
        current.log("cleaned up")
        return "cleaned up"
    return "never interrupted"


def task_backtrack() -> None:
    """Holds the GIL for longer than anyone waits; `re` looks for signals now and then."""
    current.log("entered")
    re.match(r"(a|aa)+$", "a" * 60 + "b")


def task_hold_the_interpreter(rounds: int = 10**12) -> None:
    """One call in C that holds the GIL and never looks for signals."""
    current.log("entered")
    sum(itertools.repeat(1, rounds))


def task_stubborn() -> None:
    current.log("entered")
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            time.sleep(0.01)
        except BaseException:
            current.log("swallowed")


async def task_stubborn_async() -> None:
    current.log("entered")
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            await asyncio.sleep(0.01)
        except BaseException:
            current.log("swallowed")


def task_ask_whether_cancelled() -> str:
    try:
        current.log("entered")
        while not current.cancelled:
            time.sleep(0.01)
    except BaseException:
        return f"cancelled={current.cancelled}"
    return "asked"


async def task_ask_whether_cancelled_async() -> str:
    try:
        current.log("entered")
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        return f"cancelled={current.cancelled}"
    return "asked"


def task_exit_process(code: int = 3) -> None:
    os._exit(code)


def task_segfault() -> None:
    ctypes.string_at(0)


def task_opened_in(resources: Mapping[str, Any]) -> dict[str, Any]:
    return {"opened_in": resources.get("opened_in"), "runs_in": os.getpid()}


def task_start_program() -> None:
    """Waits for a program of its own."""
    program = subprocess.Popen(["sleep", "1000"])
    current.log(str(program.pid))
    current.log("entered")
    program.wait()


def task_pid() -> int:
    return os.getpid()


async def task_group_async() -> None:
    """Waits in a task group, whose children must not be left behind by the soft limit."""
    async with asyncio.TaskGroup() as group:
        group.create_task(task_sleep_async())
