"""One act of one subject, in a process of its own: `python -m bench.peer ADAPTER ACT [N]`. Prints one JSON object."""

import asyncio
import importlib
import inspect
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any

from bench import record
from bench.adapters import Client

_WARM = 5  # calls before the clock starts: connections, prepared statements, the first start of a worker
_CALLERS = 100
_CEILING = 60.0

type Pause = Callable[[float], Awaitable[None]]


async def _one(client: Client, n: int, _: Pause) -> dict[str, Any]:
    """One awaited call after another."""
    for _ in range(_WARM):
        await client.one(0.0)
    started = time.perf_counter()
    for _ in range(n):
        await client.one(0.0)
    return {"rate": n / (time.perf_counter() - started)}


async def _concurrent(client: Client, n: int, _: Pause) -> dict[str, Any]:
    """A hundred callers, each of which awaits its own call before the next."""

    async def caller(calls: int) -> None:
        for _ in range(calls):
            await client.one(0.0)

    await asyncio.gather(*(caller(1) for _ in range(_CALLERS)))
    each = max(1, n // _CALLERS)
    started = time.perf_counter()
    await asyncio.gather(*(caller(each) for _ in range(_CALLERS)))
    return {"rate": each * _CALLERS / (time.perf_counter() - started)}


async def _bulk(client: Client, n: int, _: Pause) -> dict[str, Any]:
    await client.one(0.0)
    started = time.perf_counter()
    await client.bulk(n)
    return {"rate": n / (time.perf_counter() - started)}


async def _load(client: Client, n: int, _: Pause) -> dict[str, Any]:
    """Exactly n tasks, for a drain."""
    await client.bulk(n)
    return {}


async def _pickup(client: Client, n: int, pause: Pause) -> dict[str, Any]:
    """Single tasks on an idle system. The pauses are random, so that no sample is in step with somebody's poll."""
    path = Path(os.environ[record.VARIABLE])
    for _ in range(_WARM + n):
        seen, deadline = record.count(path), time.monotonic() + _CEILING
        await client.one(time.time())
        while record.count(path) == seen:
            if time.monotonic() > deadline:
                raise SystemExit(f"a task was not picked up within {_CEILING:g} s")
            await pause(0.001)
        await pause(random.uniform(0.01, 0.05))
    return {"warm": _WARM}


_ACTS = {"one": _one, "concurrent": _concurrent, "bulk": _bulk, "load": _load, "pickup": _pickup}


async def _sleep(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251  there is no loop to hold up


def _as_coroutine(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, None]]:
    async def call(argument: Any) -> None:
        function(argument)

    return call


def _finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits: a synchronous library is measured without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("this act needs an asynchronous client")


def _act(adapter: ModuleType, act: str, n: int) -> dict[str, Any]:
    manager = adapter.client()
    if not hasattr(manager, "__aenter__"):
        with manager as client:
            made = Client(_as_coroutine(client.one), _as_coroutine(client.bulk))
            return _finish(_ACTS[act](made, n, _sleep))

    async def run() -> dict[str, Any]:
        async with manager as client:
            return await _ACTS[act](client, n, asyncio.sleep)

    return _run(run())


def _run[T](coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(coroutine)
    return uvloop.run(coroutine)


def main() -> None:
    name, act, *rest = sys.argv[1:]
    adapter = importlib.import_module(f"bench.adapters.{name}")
    if act == "worker":
        adapter.worker()
    elif act in _ACTS:
        print(json.dumps(_act(adapter, act, int(rest[0]))))
    else:  # a function of the adapter's own, such as setup
        answer = getattr(adapter, act)(*map(int, rest))
        print(json.dumps(_run(answer) if inspect.iscoroutine(answer) else answer))


if __name__ == "__main__":
    main()
