"""Tasks that do harm, and their neighbours."""

import asyncio
import ctypes
import hashlib
import os
import re
import signal
import subprocess
import time
from typing import Any

from headrace import Retry, SoftTimeLimitExceeded
from tests.guarantees.declared import Declared, note, opened
from tests.guarantees.processes import MARK, marked

declared = Declared()
task = declared.task

# Two attempts, so that «charged each time» can be seen, and the second soon.
TWICE = Retry(max_attempts=2, backoff="fixed", base=0.05, jitter=0.0)
ONCE = Retry(max_attempts=1)
LIMIT = 1.0
# It counts from before the first line of a task, which a busy machine may come to late.
SOFT_LIMIT = 0.8
_PAUSE = 0.02


# --- neighbours: one attempt only, so that a single wrong charge fails them -------------------------------------------


@task(retry=ONCE, timeout=120)
async def neighbour(gate: str) -> str:
    """On the loop, waiting, while others do harm."""
    note("begin")
    while not opened(gate):  # noqa: ASYNC110 - the gate is a file, seen by all processes
        await asyncio.sleep(_PAUSE)
    return gate


@task(retry=ONCE, timeout=120)
def neighbour_child(gate: str) -> str:
    """In a child of the same worker process."""
    note("begin")
    while not opened(gate):
        time.sleep(_PAUSE)
    return gate


@task(retry=ONCE)
async def quick(n: int) -> int:
    note("begin")
    return n


@task(retry=ONCE)
def quick_child(n: int) -> int:
    note("begin")
    return n


# --- harm -------------------------------------------------------------------------------------------------------------


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it cannot even be said")

    __repr__ = __str__


def _backtrack() -> None:
    """Holds the GIL for ages: the pattern needs exponential time."""
    re.match(r"(a+)+$", "a" * 60 + "b")


def _deny_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(0.05)


def _recurse(depth: int = 0) -> int:
    return _recurse(depth + 1) + 1


def _do(harm: str) -> Any:
    match harm:
        case "exit":
            os._exit(3)
        case "segfault":
            ctypes.string_at(0)
        case "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        case "abort":
            os.abort()
        case "ignore_sigterm":
            _deny_sigterm()
        case "hold_gil":
            _backtrack()
        case "block":
            time.sleep(600)
        case "spin":
            while True:
                pass
        case "hash":
            hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2_000_000_000)
        case "nan":
            return float("nan")
        case "nul":
            return "before\0after"
        case "nul_in_error":
            raise ValueError("before\0after")
        case "surrogate_in_error":
            raise ValueError("lone \udcff surrogate")
        case "huge":
            return "x" * 100_000_000
        case "unserialisable":
            return object()
        case "system_exit":
            raise SystemExit(3)
        case "keyboard_interrupt":
            raise KeyboardInterrupt
        case "unspeakable":
            raise Unspeakable
        case "recurse":
            return _recurse()
        case "everything":
            _kill_everything()
        case _:
            raise AssertionError(harm)
    return None


def _kill_everything() -> None:
    """The supervisor and everything below it, at once: nobody is left to write down who did it.

    All are stopped first, so that none notices the death of another. The kill comes from outside: this process dies
    with its parent, and would not get to the rest.
    """
    stopped = {os.getpid()}
    while others := set(marked(os.environ[MARK])) - stopped:
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        stopped |= others
    subprocess.Popen(["sh", "-c", f"kill -9 {' '.join(map(str, stopped))}"], env={}, start_new_session=True)
    time.sleep(60)


@task(retry=TWICE, timeout=LIMIT)
async def harm_loop(harm: str) -> Any:
    note("harm", harm)
    return _do(harm)


@task(retry=TWICE, timeout=LIMIT)
def harm_child(harm: str) -> Any:
    note("harm", harm)
    return _do(harm)


@task(retry=Retry(max_attempts=3, backoff="fixed", base=0.0, jitter=0.0), timeout=60)
async def doom_loop() -> None:
    note("harm")
    _do("everything")


@task(retry=Retry(max_attempts=3, backoff="fixed", base=0.0, jitter=0.0), timeout=60)
def doom_child() -> None:
    note("harm")
    _do("everything")


# --- limits of time ---------------------------------------------------------------------------------------------------


@task(retry=ONCE, soft_timeout=SOFT_LIMIT, timeout=20)
async def soft_async() -> str:
    try:
        await asyncio.sleep(60)
    except SoftTimeLimitExceeded:
        note("soft")
        raise
    return "never"


@task(retry=ONCE, soft_timeout=SOFT_LIMIT, timeout=20)
async def soft_async_blocking() -> str:
    """Blocks the loop in Python code, where a signal can reach it."""
    try:
        while True:
            time.sleep(0.01)  # noqa: ASYNC251 - that is its crime
    except SoftTimeLimitExceeded:
        note("soft")
        raise


@task(retry=ONCE, soft_timeout=SOFT_LIMIT, timeout=20)
def soft_sync() -> str:
    try:
        time.sleep(60)
    except SoftTimeLimitExceeded:
        note("soft")
        raise
    return "never"


@task(retry=ONCE, soft_timeout=SOFT_LIMIT, timeout=20)
def soft_sync_spinning() -> str:
    try:
        while True:
            pass
    except SoftTimeLimitExceeded:
        note("soft")
        raise


@task(retry=ONCE, soft_timeout=SOFT_LIMIT, timeout=20)
async def tidy_async() -> str:
    try:
        await asyncio.sleep(60)
    except SoftTimeLimitExceeded:
        await asyncio.sleep(0.05)
        return "cleaned up"
    return "never"


@task(retry=ONCE, soft_timeout=SOFT_LIMIT, timeout=20)
def tidy_sync() -> str:
    try:
        time.sleep(60)
    except SoftTimeLimitExceeded:
        time.sleep(0.05)
        return "cleaned up"
    return "never"


@task(retry=ONCE, timeout=LIMIT)
async def hard_async(how: str) -> Any:
    note("begin")
    if how == "wait":
        await asyncio.sleep(600)
    if how == "stubborn":
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                continue
    return _do(how)


@task(retry=ONCE, timeout=LIMIT)
def hard_sync(how: str) -> Any:
    note("begin")
    return _do(how)


@task(retry=TWICE, timeout=LIMIT)
def hard_sync_twice() -> None:
    note("begin")
    time.sleep(600)


@task(timeout=120)
async def patient_async() -> None:
    note("begin")
    await asyncio.sleep(600)


@task(timeout=120)
def patient_sync() -> None:
    note("begin")
    time.sleep(600)


@task(timeout=120)
def patient_spinning() -> None:
    note("begin")
    while True:
        pass


@task(timeout=120)
async def tidy_when_cancelled() -> None:
    note("begin")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        note("told")
        raise


app = declared.on().app
