"""A small app for the worker's own tests: functions by name, arguments as keywords, results as JSON."""

import asyncio
import contextlib
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.core.errors import UnknownTask
from headrace.core.outcome import Cancel, RetryAfter, Snooze
from headrace.core.retry import Retry
from headrace.core.task import NewTask
from headrace.executors.context import current
from headrace.store.base import Store, StoreOptions
from headrace.store.connect import connect

FAST = Retry(max_attempts=3, backoff="fixed", base=0.05, jitter=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    name: str
    function: Callable[..., Any]
    retry: Retry

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    def load_arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        values = json.loads(text)
        if values.get("user") == "poison":  # a validator may do what it likes
            os.kill(os.getpid(), 9)
        return (), values

    def dump_result(self, value: Any) -> str:
        return json.dumps(value)

    def inject(self, context: Any, resources: Mapping[str, Any]) -> dict[str, Any]:
        return {}


@dataclass(slots=True)
class Functions:
    """Registers functions under their own names; `task` makes the NewTask that calls one."""

    store_url: str
    name: str = "headrace"
    definitions: dict[str, Definition] = field(default_factory=dict)
    lifespans: list[str] = field(default_factory=list)

    def add(self, function: Callable[..., Any], *, retry: Retry = FAST) -> str:
        name = function.__name__
        self.definitions[name] = Definition(name=name, function=function, retry=retry)
        return name

    def resolve(self, name: str, options: Mapping[str, Any]) -> Definition:
        if options.get("entrypoint"):  # its import is user code, and this one ends the process
            with open(os.environ["HEADRACE_TEST_SIDE"] + ".imported", "a") as file:
                file.write(f"{os.getpid()}\n")
            os._exit(7)
        if name not in self.definitions:
            raise UnknownTask(name)
        return self.definitions[name]

    @contextlib.asynccontextmanager
    async def lifespan_context(self) -> AsyncIterator[Mapping[str, Any]]:
        self.lifespans.append("open")
        if _is_broken("LIFESPAN"):
            raise OSError("no license server")
        yield {}
        self.lifespans.append("closed")

    def new_store(self) -> Store:
        return connect(self.store_url, StoreOptions(name=self.name))

    def queue_names(self) -> list[str]:
        return ["default"]

    def task(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> NewTask:
        definition = self.definitions.get(name)
        pool = "coroutine" if definition is None or definition.is_async else "child"
        attempts = FAST.max_attempts if definition is None else definition.retry.max_attempts
        return NewTask(
            name=name, arguments=json.dumps(arguments or {}), **{"pool": pool, "max_attempts": attempts, **options}
        )


# --- the app that worker processes import: tests.worker.application:app -----------------------------------------------


def say(word: str) -> None:
    """One line per execution in a file beside the ledger: whole, in order, and there after kill -9."""
    line = f"{word} {current.task_id} {current.attempt} {os.getpid()}\n"
    descriptor = os.open(os.environ["HEADRACE_TEST_SIDE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def said(word: str, path: str) -> list[list[str]]:
    text = Path(path).read_text() if Path(path).exists() else ""
    return [line.split() for line in text.splitlines() if line.split()[0] == word]


async def greet(user: int) -> str:
    say("greet")
    return f"hello {user}"


def greet_child(user: int) -> str:
    say("greet_child")
    return f"hello {user}"


async def sleep(seconds: float) -> str:
    say("sleep")
    await asyncio.sleep(seconds)
    return "slept"


async def first_time_only(seconds: float) -> str:
    """Sleeps in its first attempt and returns at once in later ones."""
    say("first_time_only")
    if current.claim_no == 1:
        await asyncio.sleep(seconds)
    return f"claim {current.claim_no}"


def sleep_child(seconds: float) -> str:
    say("sleep_child")
    if current.claim_no == 1:
        time.sleep(seconds)
    return f"claim {current.claim_no}"


async def block(seconds: float) -> str:
    """Holds the event loop."""
    say("block")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pass
    return "blocked"


async def block_until(path: str) -> str:
    """Holds the event loop until there is such a file."""
    say("block_until")
    while not Path(path).exists():  # noqa: ASYNC240
        time.sleep(0.02)  # noqa: ASYNC251
    return "blocked"


async def poison() -> None:
    say("poison")
    os.kill(os.getpid(), 9)


async def leave() -> None:
    """asyncio lets SystemExit through from any task but the one that is awaited by our own code."""
    say("leave")
    await asyncio.create_task(_leave())


async def _leave() -> None:
    await asyncio.sleep(0.05)
    sys.exit(3)


async def poison_beside(how: str) -> None:
    """Dies in an asyncio task that it started, while it waits for that itself."""
    match how:
        case "create_task":
            await asyncio.create_task(_poison())
        case "gather":
            await asyncio.gather(_poison(), asyncio.sleep(300))
        case _:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(300))
                group.create_task(_poison(), name="poison")


async def _poison() -> None:
    await asyncio.sleep(0.05)
    os._exit(9)


def poison_child() -> None:
    say("poison_child")
    os.kill(os.getpid(), 9)


def start_program(path: str) -> None:
    """Waits for a program that it started, and says which."""
    program = subprocess.Popen(["sleep", "1000"])
    Path(path + ".part").write_text(str(program.pid))
    Path(path + ".part").rename(path)
    program.wait()


_kept: list[bytes] = []


def leak_child(megabytes: int) -> int:
    say("leak_child")
    _kept.append(b"x" * (megabytes * 1_000_000))
    return len(_kept)


async def leak(megabytes: int) -> int:
    return leak_child(megabytes)


async def wait_for_file(path: str) -> str:
    say("wait_for_file")
    while not Path(path).exists():  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.02)
    return str(os.getpid())


def wait_for_file_child(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.02)


def hog_child(megabytes: int) -> str:
    """Holds as much in its first attempt until it is killed."""
    say("hog_child")
    if current.attempt == 1:
        held = b"x" * (megabytes * 1_000_000)
        time.sleep(300)
        return str(len(held))
    return "lean"


async def snooze() -> Any:
    say("snooze")
    return Snooze(0.05) if current.claim_no < 3 else "awake"


async def cancel_itself() -> Any:
    return Cancel("not needed")


async def retry_after() -> Any:
    return RetryAfter(0.05) if current.attempt < 3 else "third"


def _is_broken(part: str) -> bool:
    """As long as the file exists that the test names."""
    return Path(os.environ.get(f"HEADRACE_TEST_BROKEN_{part}", "/none")).exists()


if (
    _is_broken("CHILDREN")
    and "headrace.executors.forkserver" in sys.modules
    and "headrace.worker.worker" not in sys.modules
):
    raise ImportError("no such library for children")

app = Functions(os.environ.get("HEADRACE_DATABASE_URL", "sqlite:///headrace.db"))
for function in (
    greet, greet_child, sleep, first_time_only, sleep_child, block, poison, poison_child, poison_beside, leave, snooze,
    cancel_itself, retry_after, start_program, leak, leak_child, hog_child, wait_for_file, wait_for_file_child,
    block_until,
):  # fmt: skip
    app.add(function)
