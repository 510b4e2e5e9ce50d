"""Blocking work and its two faces."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from headrace.core.errors import RunningLoop


def in_thread[**P, R](work: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """The async face: the same, on a thread of its own."""

    @wraps(work)
    async def form(*args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(work, *args, **kwargs)

    return form


def blocking[**P, R](work: Callable[P, R]) -> Callable[P, R]:
    """The blocking face: refused where it would stop an event loop."""

    @wraps(work)
    def form(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return work(*args, **kwargs)
        name = getattr(work, "__name__", "this")
        raise RunningLoop(f"{name}() would block the event loop of this thread; use `await a{name}()`")

    return form
