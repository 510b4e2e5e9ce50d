"""Concurrent callers share a transaction: while one commit is under way, the tasks that arrive wait for the next.

A single caller waits for nobody. Tasks were validated before they came here, so what fails is the store; when a shared
write fails all the same, each caller's tasks are written on their own, and only the guilty one gets the error.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context

from headrace.core.errors import StoreUnavailable
from headrace.core.task import Enqueued, NewTask

type Write = Callable[[Sequence[NewTask]], Awaitable[list[Enqueued]]]
type _Waiting = tuple[Sequence[NewTask], asyncio.Future[list[Enqueued]]]

MOST_TASKS = 1000  # in one transaction, so that the others in the store are not held up


class Coalescer:
    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: deque[_Waiting] = deque()
        self._flushing: asyncio.Task[None] | None = None

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued]:
        """Durable when it returns."""
        future: asyncio.Future[list[Enqueued]] = asyncio.get_running_loop().create_future()
        self._waiting.append((tasks, future))
        if self._flushing is None:
            # In a context of its own: it serves everyone, and must not end with the task whose call came first.
            self._flushing = asyncio.create_task(self._flush(), name="headrace-coalescer", context=Context())
        return await future

    async def drained(self) -> None:
        """Everything that was handed in is written."""
        while self._flushing is not None:
            await asyncio.shield(self._flushing)

    async def _flush(self) -> None:
        try:
            while self._waiting:
                await self._write_batch(self._next_batch())
        finally:
            self._flushing = None

    def _next_batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and (not batch or size + len(self._waiting[0][0]) <= MOST_TASKS):
            entry = self._waiting.popleft()
            if entry[1].cancelled():
                continue  # its caller gave up before anything was written
            batch.append(entry)
            size += len(entry[0])
        return batch

    async def _write_batch(self, batch: list[_Waiting]) -> None:
        if not batch:
            return
        try:
            answers = await self._write([task for tasks, _ in batch for task in tasks])
        except Exception as error:
            if len(batch) == 1 or isinstance(error, StoreUnavailable):
                for _, future in batch:
                    _fail(future, error)
            else:
                for entry in batch:
                    await self._write_batch([entry])
            return
        start = 0
        for tasks, future in batch:
            if not future.done():
                future.set_result(answers[start : start + len(tasks)])
            start += len(tasks)


def _fail(future: "asyncio.Future[list[Enqueued]]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
