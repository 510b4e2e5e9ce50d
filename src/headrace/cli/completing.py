"""What the shell completes: names and ids that are in the store, where a look at it is cheap.

A completion is never an error, never waits long, and makes nothing: whatever goes wrong, there is nothing to propose.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import typer

from headrace.core.states import TaskState

if TYPE_CHECKING:
    from headrace.store.base import Store

_PATIENCE = 2.0  # seconds that somebody waits for a key to answer
_IDS = 50


def queues(context: typer.Context, incomplete: str) -> list[str]:
    return _starting(incomplete, _asked(context, lambda store: store.queue_names()))


def task_names(context: typer.Context, incomplete: str) -> list[str]:
    """Of the App that the command line names, else of the live tasks in the store."""
    target = context.params.get("target")
    if isinstance(target, str):
        return _starting(incomplete, _defined(target))

    async def read(store: "Store") -> list[str]:
        return [found.name for found in await store.live_names()]

    return _starting(incomplete, _asked(context, read))


def task_ids(context: typer.Context, incomplete: str) -> list[str]:
    return _starting(incomplete, _asked(context, lambda store: _newest(store, dead_letter=None)))


def dead_letter_ids(context: typer.Context, incomplete: str) -> list[str]:
    return _starting(incomplete, _asked(context, lambda store: _newest(store, dead_letter=True)))


def states(incomplete: str) -> list[str]:
    return _starting(incomplete, list(TaskState))


async def _newest(store: "Store", *, dead_letter: bool | None) -> list[str]:
    from headrace.core.task import TaskFilter

    return [str(record.id) for record in await store.list(TaskFilter(dead_letter=dead_letter, limit=_IDS))]


def _defined(target: str) -> list[str]:
    from headrace.cli.target import load_app

    try:
        return sorted(load_app(target).registry)
    except Exception:
        return []


def _asked(context: typer.Context, read: "Callable[[Store], Awaitable[list[str]]]") -> list[str]:
    import asyncio
    import os

    from headrace.cli.target import place_of, require_file
    from headrace.store.base import StoreOptions
    from headrace.store.connect import connect

    async def run() -> list[str]:
        url, name = place_of(
            context.params.get("database") or os.environ.get("HEADRACE_DATABASE_URL"),
            context.params.get("name") or os.environ.get("HEADRACE_NAME") or "headrace",
        )
        require_file(url)
        store = connect(url, StoreOptions(name=name, pool_size=1, migrate=False))
        async with asyncio.timeout(_PATIENCE):
            await store.open()
            try:
                return await read(store)
            finally:
                await store.close()

    try:
        return asyncio.run(run())
    except Exception:
        return []


def _starting(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
