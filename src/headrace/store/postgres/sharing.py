"""Callers that enqueue at the same moment share a commit: while one is under way the next gathers.

Only tasks without keys and jobs are shared. The first caller never waits; nobody waits for more than the commit that is
under way.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import NamedTuple

from headrace.core.errors import StoreUnavailable
from headrace.core.task import Enqueued, NewTask

_COMMITS_AT_ONCE = 2
MOST_TOGETHER = 500

type Write = Callable[[Sequence[NewTask]], Awaitable[list[Enqueued]]]


class _Caller(NamedTuple):
    tasks: Sequence[NewTask]
    answer: asyncio.Future[list[Enqueued]]


class SharedCommits:
    def __init__(self, write: Write) -> None:
        self._write = write
        self._line: list[_Caller] = []
        self._commits: set[asyncio.Task[None]] = set()

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued]:
        caller = _Caller(tasks, asyncio.get_running_loop().create_future())
        self._line.append(caller)
        self._begin()
        return await caller.answer

    async def close(self) -> None:
        """Whoever stands in line is served."""
        while self._commits:
            await asyncio.wait(self._commits)

    def _begin(self) -> None:
        if not self._line or len(self._commits) >= _COMMITS_AT_ONCE:
            return
        n = taken = 0
        while taken < len(self._line) and n < MOST_TOGETHER:
            n += len(self._line[taken].tasks)
            taken += 1
        callers, self._line = self._line[:taken], self._line[taken:]
        # A task and a context of its own: a caller that gives up must not take the others' commit with it.
        commit = asyncio.create_task(self._commit(callers), name="headrace-enqueue", context=Context())
        self._commits.add(commit)
        commit.add_done_callback(self._ended)

    def _ended(self, commit: asyncio.Task[None]) -> None:
        self._commits.discard(commit)
        self._begin()

    async def _commit(self, callers: Sequence[_Caller]) -> None:
        try:
            answers = await self._write([task for caller in callers for task in caller.tasks])
        except BaseException as error:
            if len(callers) == 1 or isinstance(error, StoreUnavailable) or not isinstance(error, Exception):
                _refuse(callers, error)
                return
            # Something in here cannot be written: each alone, so that only its owner hears of it.
            for caller in callers:
                await self._commit([caller])
            return
        start = 0
        for caller in callers:
            end = start + len(caller.tasks)
            if not caller.answer.done():
                caller.answer.set_result(answers[start:end])
            start = end


def _refuse(callers: Sequence[_Caller], error: BaseException) -> None:
    for caller in callers:
        if caller.answer.done():
            continue
        if isinstance(error, asyncio.CancelledError):
            caller.answer.cancel()
        else:
            caller.answer.set_exception(error)
