"""All handles of this process that wait for a task share one query, at a pace that follows its cost."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context

from headrace.core.errors import NotFound, StoreError, StoreUnavailable
from headrace.core.task import TaskRecord

type Read = Callable[[Sequence[int]], Awaitable[dict[int, TaskRecord]]]

_SHORTEST, _LONGEST = 0.005, 0.25
_GROWTH = 1.5
_IDS_IN_A_QUERY = 1000


class Poller:
    """Lives on the background loop."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._waiting: dict[int, set[_Waiter]] = {}
        self._arrived = asyncio.Event()
        self._polling: asyncio.Task[None] | None = None

    async def ended(self, task: int) -> TaskRecord:
        """The record of the task, once it has ended."""
        waiter = _Waiter()
        self._add(waiter, (task,))
        try:
            await waiter.told
        finally:
            self._forget(waiter, (task,))
        answer = waiter.answers[task]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def some_ended(self, tasks: Sequence[int]) -> list[int]:
        """Those of the tasks that have ended, or are not there, as soon as there is one."""
        waiter = _Waiter()
        self._add(waiter, tasks)
        try:
            await waiter.told
        finally:
            self._forget(waiter, tasks)
        for answer in waiter.answers.values():
            if isinstance(answer, Exception) and not isinstance(answer, NotFound):
                raise answer
        return list(waiter.answers)

    def _add(self, waiter: "_Waiter", tasks: Sequence[int]) -> None:
        for task in tasks:
            self._waiting.setdefault(task, set()).add(waiter)
        self._arrived.set()
        if self._polling is None:
            # In a context of its own: it serves everyone, and must not end with the task whose call came first.
            self._polling = asyncio.create_task(self._poll(), name="headrace-poller", context=Context())

    def stop(self) -> None:
        """Nobody is left waiting for an answer that will not come."""
        if self._polling is not None:
            self._polling.cancel()
        for task in list(self._waiting):
            self._answer(task, StoreError(f"the store was closed while task {task} was waited for; the task goes on"))

    async def _poll(self) -> None:
        pause = _SHORTEST
        try:
            while self._waiting:
                if self._arrived.is_set():
                    self._arrived.clear()
                    pause = _SHORTEST
                started = time.monotonic()
                await self._look()
                if not self._waiting:
                    return  # a program that asks one handle after the other gets each answer at once
                # Many waiting handles make the query dear; it never takes more than a third of the time.
                least = 2 * (time.monotonic() - started)
                await self._rest(max(pause, least))
                pause = min(pause * _GROWTH, _LONGEST)
        except Exception as error:
            for task in list(self._waiting):
                self._answer(task, error)
        finally:
            self._polling = None

    async def _rest(self, pause: float) -> None:
        await asyncio.sleep(min(pause, _SHORTEST))
        if pause > _SHORTEST and not self._arrived.is_set():
            try:
                async with asyncio.timeout(pause - _SHORTEST):
                    await self._arrived.wait()
            except TimeoutError:
                pass

    async def _look(self) -> None:
        waiting = list(self._waiting)
        for start in range(0, len(waiting), _IDS_IN_A_QUERY):
            ids = waiting[start : start + _IDS_IN_A_QUERY]
            try:
                records = await self._read(ids)
            except StoreUnavailable:
                return  # whoever waits has a time limit of its own; the store may be back before that
            for task in ids:
                record = records.get(task)
                if record is None:
                    self._answer(task, NotFound(_missing(task)))
                elif record.state.terminal:
                    self._answer(task, record)

    def _answer(self, task: int, answer: TaskRecord | Exception) -> None:
        for waiter in self._waiting.pop(task, set()):
            waiter.tell(task, answer)

    def _forget(self, waiter: "_Waiter", tasks: Sequence[int]) -> None:
        for task in tasks:
            waiters = self._waiting.get(task)
            if waiters is not None:
                waiters.discard(waiter)
                if not waiters:
                    del self._waiting[task]


class _Waiter:
    """Somebody who waits for the first of some tasks, and takes the others along that the same look finds."""

    __slots__ = ("answers", "told")

    def __init__(self) -> None:
        self.told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.answers: dict[int, TaskRecord | Exception] = {}

    def tell(self, task: int, answer: TaskRecord | Exception) -> None:
        self.answers[task] = answer
        if not self.told.done():
            self.told.set_result(None)


def _missing(task: int) -> str:
    return (
        f"no task {task}: the transaction that enqueued it has not been committed (or was rolled back), "
        "or it ended longer ago than history is kept"
    )
