"""`--reload`: a process that runs none of the user's code, watches it, and starts it anew when it was changed.

Every start is a whole supervisor in a fresh interpreter, so that settings, schedules and policies are read anew, too.
The new one imports the code, opens what it needs and stands by; then the one before takes no more tasks and gives back
what it has not started, and the new one begins. A start that fails changes nothing: the one before goes on.
"""

import asyncio
import contextlib
import importlib.util
import itertools
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from headrace.runtime.signals import stop_signals
from headrace.runtime.watchfiles import changes, need_watchfiles
from headrace.telemetry.logs import LogOptions, configure
from headrace.worker.generation import Generation

IGNORED = frozenset({".venv", "venv", "__pycache__", ".git", "node_modules", "site-packages", ".tox", ".mypy_cache"})
_LONGEST_HANDOVER = 5.0  # for a loop that is blocked: then both take tasks for a moment, rather than none

logger = logging.getLogger("headrace.worker")


def run(command: Sequence[str], target: str, directories: Sequence[Path] = (), *, logs: LogOptions) -> int:
    """Blocks until it is told to stop, or what it started ended by itself; the exit code.

    `command` starts a worker or `up`, without the channel that this adds.
    """
    need_watchfiles()
    configure(logs)
    roots = [path.resolve() for path in directories] or source_directories(target)
    logger.info("watching *.py below %s", ", ".join(map(str, roots)))
    return asyncio.run(Reloader(command, changes(roots, lambda path: is_source(path, roots))).run())


def source_directories(target: str) -> list[Path]:
    """Where the code of an app lies: the folder of its top package, or the one that holds its module."""
    name = target.partition(":")[0].partition(".")[0]
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.util.find_spec(name)  # of a top-level name, which imports nothing
    except (ImportError, ValueError):
        found = None
    if found is not None and found.submodule_search_locations:
        return [Path(place).resolve() for place in found.submodule_search_locations]
    if found is not None and found.has_location and found.origin is not None:
        return [Path(found.origin).resolve().parent]
    return [Path.cwd()]  # whoever starts the code will say what is wrong


def is_source(path: Path, roots: Sequence[Path]) -> bool:
    """Python that somebody writes, as opposed to what was installed or generated below the same folder."""
    if path.suffix != ".py":
        return False
    below = [path.relative_to(root) for root in roots if path.is_relative_to(root)]
    return any(not IGNORED.intersection(place.parts[:-1]) for place in below)


class Reloader:
    """Keeps one generation at work, whatever becomes of those that are to follow it."""

    def __init__(self, command: Sequence[str], changes: AsyncIterator[set[Path]]) -> None:
        self._command = command
        self._changes = changes
        self._changed: set[Path] = set()
        self._change = asyncio.Event()
        self._stopping = asyncio.Event()
        self._numbers = itertools.count(1)
        self._generations: set[Generation] = set()
        self._current: Generation | None = None

    def stop(self) -> None:
        self._stopping.set()
        for generation in self._generations:
            generation.stop()

    def stop_now(self) -> None:
        self._stopping.set()
        for generation in self._generations:
            generation.stop_now()

    async def run(self) -> int:
        with stop_signals(self.stop, self.stop_now):
            watching = asyncio.create_task(self._watch(), name="headrace.reload.watch")
            working = asyncio.create_task(self._work(), name="headrace.reload")
            try:
                await asyncio.wait({watching, working}, return_when=asyncio.FIRST_COMPLETED)
                if watching.done():
                    watching.result()
                return await working
            finally:
                self.stop()
                for task in (watching, working):
                    task.cancel()
                await asyncio.gather(watching, working, return_exceptions=True)
                await asyncio.gather(*(generation.ended.wait() for generation in self._generations))

    async def _watch(self) -> None:
        async for paths in self._changes:
            forget_bytecode(paths)
            self._changed |= paths
            self._change.set()

    async def _work(self) -> int:
        """Until it is told to stop, or the code at work ended by itself."""
        while not self._stopping.is_set():
            self._change.clear()
            changed, self._changed = self._changed, set[Path]()
            failed = await self._replace(changed)
            current = self._current or failed  # a first start that fails has said why, and nothing goes on without it
            if current is not None:
                await _first(self._change, current.ended, self._stopping)
                if current.ended.is_set() and not self._stopping.is_set():
                    return _exit_code(current)
        await asyncio.gather(*(generation.ended.wait() for generation in self._generations))
        return 0 if self._current is None else _exit_code(self._current)

    async def _replace(self, changed: set[Path]) -> Generation | None:
        """Start the code as it is now, and let it take over if it can; the one that could not start."""
        before, began = self._current, time.monotonic()
        if changed:
            logger.info("%s changed: starting the new code", _named(changed))
        following = await Generation.start(self._command, number=next(self._numbers))
        self._generations = {one for one in self._generations if not one.ended.is_set()} | {following}
        if self._stopping.is_set():
            following.stop()
        await _first(following.ready, following.ended, self._change, self._stopping)
        if self._stopping.is_set():
            return None
        if following.ended.is_set():
            if before is not None:
                logger.error("the new code does not start: what ran before goes on; save again when it is mended")
            return following
        if following.ready.is_set():
            await self._hand_over(before, following)
            self._current = following
            if before is not None:
                logger.info("reloaded in %.1f s", time.monotonic() - began)
        else:
            await following.give_up()  # it was changed again meanwhile
        return None

    async def _hand_over(self, before: Generation | None, following: Generation) -> None:
        if before is not None:
            before.stop()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(before.left.wait(), _LONGEST_HANDOVER)
        following.begin()


def _exit_code(generation: Generation) -> int:
    code = generation.code or 0
    return code if code >= 0 else 128 - code  # as a shell says it of a signal


def forget_bytecode(paths: set[Path]) -> None:
    """What another process compiled within the second in which a file was changed again would pass for fresh."""
    for path in paths:
        with contextlib.suppress(OSError, NotImplementedError):
            Path(importlib.util.cache_from_source(str(path))).unlink()


def _named(paths: set[Path]) -> str:
    names = sorted(path.name for path in paths)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


async def _first(*events: asyncio.Event) -> None:
    """Returns when one of them is set."""
    waits = {asyncio.create_task(event.wait()) for event in events}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
