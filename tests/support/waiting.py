"""Waiting for a condition, with a ceiling. Tests never sleep to synchronise; they wait for what they mean."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

# A ceiling is about ten times what the wait usually takes, so it is met only when something is broken.
CEILING = 30.0
_PAUSE = 0.02


def wait_until[T](predicate: Callable[[], T], timeout: float = CEILING, *, message: str = "") -> T:
    """The first truthy value of `predicate()`; AssertionError when none comes within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(_late(predicate, timeout, value, message))
        time.sleep(_PAUSE)
    return value


async def eventually[T](predicate: Callable[[], T | Awaitable[T]], timeout: float = CEILING, *, message: str = "") -> T:
    """Like `wait_until`, without blocking the event loop; `predicate` may be a coroutine function."""
    deadline = time.monotonic() + timeout
    while True:
        answer = predicate()
        value: Any = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(_late(predicate, timeout, value, message))
        await asyncio.sleep(_PAUSE)


def _late(predicate: Callable[[], object], timeout: float, value: object, message: str) -> str:
    wanted = message or getattr(predicate, "__qualname__", repr(predicate))
    return f"not within {timeout:g} s: {wanted} (last value: {value!r})"
