"""Concurrent callers share a transaction: while a commit is under way, the tasks that arrive wait for the next.

A single caller waits for nobody, and tasks are written in the order in which their calls began. They were validated
before they came here, so what fails is the store; when a shared write fails all the same, each caller's tasks are
written on their own, and only the guilty one gets the error.

Callers come from any thread and loop. Handing each coroutine to another thread would wake it for every call; here a
caller only appends to a list, and a thread is woken once for all that stand in it, on the way there and back.
"""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextvars import Context
from typing import Any

from headrace.client.bridge import must_block
from headrace.core.batch import Batch, Run, runs_of
from headrace.core.errors import StoreUnavailable
from headrace.core.task import Enqueued, NewTask

type Write = Callable[[Sequence[NewTask]], Awaitable[list[Enqueued]]]
type _Answers = list[Enqueued]

MOST_TASKS = 1000  # in one transaction, so that the others in the store are not held up
# Bulk enqueues come in whole chunks, each once the caller's last one is written: those that are there together belong
# to different callers and have no order among them, so two connections share the work.
_CHUNKS_AT_ONCE = 2


class Waiting:
    """One caller's tasks on their way. A blocking caller has no loop, and waits on a lock."""

    __slots__ = ("future", "loop", "size", "tasks")

    def __init__(self, tasks: Sequence[NewTask]) -> None:
        self.tasks = tasks
        self.size = len(tasks)
        if must_block():
            self.loop = None
            self.future: asyncio.Future[_Answers] | Future[_Answers] = Future()
        else:
            self.loop = asyncio.get_running_loop()
            self.future = self.loop.create_future()

    async def answers(self) -> _Answers:
        if not isinstance(self.future, Future):
            return await self.future
        try:
            return self.future.result()
        except BaseException:
            self.future.cancel()  # Ctrl-C while waiting: nobody wants the answer any more
            raise

    def wanted(self) -> bool:
        """False when the caller gave up before anything was written."""
        if isinstance(self.future, Future):
            return self.future.set_running_or_notify_cancel()
        return not self.future.cancelled()

    def answer(self, found: _Answers | BaseException) -> None:
        """On the caller's own thread, unless it blocks."""
        if self.future.done():
            return
        if isinstance(found, asyncio.CancelledError) and not isinstance(self.future, Future):
            self.future.cancel()
        elif isinstance(found, BaseException):
            self.future.set_exception(found)
        else:
            self.future.set_result(found)


class Coalescer:
    """Belongs to one loop, the one on which it is made unless another is named.

    `at_once` is how many commits may be under way; more than one only where the store writes them in the order in which
    they were handed over.
    """

    def __init__(self, write: Write, loop: asyncio.AbstractEventLoop | None = None, *, at_once: int = 1) -> None:
        self._write = write
        self._loop = asyncio.get_running_loop() if loop is None else loop
        self._at_once = at_once
        self._line: deque[Waiting] = deque()
        self._taken = 0  # from the line, ever
        self._told = False
        self._commits: set[asyncio.Task[None]] = set()
        self._chunks = 0  # of the commits, those of a whole chunk

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued]:
        """Durable when it returns. From any thread."""
        return await self.begin(tasks).answers()

    def begin(self, tasks: Sequence[NewTask]) -> Waiting:
        """Stand in line; `answers` of what this returns waits for the commit."""
        waiting = Waiting(tasks)
        self._line.append(waiting)
        # Whoever clears the flag looks at the line afterwards, so a caller that finds it set is not overlooked.
        if not self._told:
            try:
                self._told = True
                if waiting.loop is self._loop:
                    self._loop.call_soon(self._look)
                else:
                    self._loop.call_soon_threadsafe(self._look)
            except BaseException:  # Ctrl-C in between: at worst there is one look too many
                self._told = False
                waiting.future.cancel()
                raise
        return waiting

    @property
    def has_a_line(self) -> bool:
        return bool(self._line)

    @property
    def idle(self) -> bool:
        """Nobody stands in line and nothing is being written. From any thread."""
        return not self._line and not self._commits

    async def flushed(self) -> None:
        """Whatever was handed in before this call is written. On the loop; who comes later does not hold it up."""
        last = self._taken + len(self._line)
        while self._taken < last:
            self._look()
            if self._taken < last:
                await asyncio.wait(self._commits, return_when=asyncio.FIRST_COMPLETED)
        if self._commits:
            await asyncio.wait(self._commits)

    def _look(self) -> None:
        self._told = False
        while self._line and self._may_begin(whole := self._line[0].size >= MOST_TASKS):
            if batch := self._next_batch():
                # A task in a context of its own: it serves everyone, and must not end with the task that came first.
                commit = self._loop.create_task(self._commit(batch), name="headrace-coalescer", context=Context())
                self._commits.add(commit)
                self._chunks += whole
                commit.add_done_callback(self._chunk_ended if whole else self._ended)

    def _may_begin(self, whole: bool) -> bool:
        under_way = len(self._commits)
        return under_way < self._at_once or (whole and self._chunks == under_way < _CHUNKS_AT_ONCE)

    def _chunk_ended(self, commit: asyncio.Task[None]) -> None:
        self._chunks -= 1
        self._ended(commit)

    def _ended(self, commit: asyncio.Task[None]) -> None:
        self._commits.discard(commit)
        self._look()

    def _next_batch(self) -> list[Waiting]:
        batch: list[Waiting] = []
        size = 0
        line = self._line
        while line and (not batch or size + line[0].size <= MOST_TASKS):
            waiting = line.popleft()
            self._taken += 1
            if waiting.wanted():
                batch.append(waiting)
                size += waiting.size
            elif not batch:
                break  # whether another one may begin is asked anew
        return batch

    async def _commit(self, batch: list[Waiting]) -> None:
        try:
            answers = await self._write(_together(batch))
        except asyncio.CancelledError as error:
            self._deliver([(waiting, error) for waiting in batch])
            raise
        except Exception as error:
            if len(batch) == 1:
                self._deliver([(batch[0], error)])
            elif isinstance(error, StoreUnavailable):
                # To each its own: `enqueue_many` writes on it what that caller has enqueued.
                self._deliver([(waiting, _own(error)) for waiting in batch])
            else:
                await self._commit_apart(batch)
            return
        if len(batch) == 1:
            self._deliver([(batch[0], answers)])
            return
        found: list[tuple[Waiting, _Answers]] = []
        start = 0
        for waiting in batch:
            end = start + waiting.size
            found.append((waiting, answers[start:end]))
            start = end
        self._deliver(found)

    async def _commit_apart(self, batch: list[Waiting]) -> None:
        for place, waiting in enumerate(batch):
            if waiting.future.cancelled():
                continue  # it gave up meanwhile, and nothing of it is written
            try:
                await self._commit([waiting])
            except asyncio.CancelledError as error:
                self._deliver([(later, error) for later in batch[place + 1 :]])
                raise

    def _deliver(self, found: Sequence[tuple[Waiting, _Answers | BaseException]]) -> None:
        elsewhere: defaultdict[asyncio.AbstractEventLoop, list[Any]] = defaultdict(list)
        for item in found:
            loop = item[0].loop
            if loop is None or loop is self._loop:
                item[0].answer(item[1])
            else:
                elsewhere[loop].append(item)
        for loop, items in elsewhere.items():
            with contextlib.suppress(RuntimeError):  # its loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(_answer_all, items)


def _answer_all(items: list[tuple[Waiting, _Answers | BaseException]]) -> None:
    for waiting, found in items:
        waiting.answer(found)


def _own(error: StoreUnavailable) -> StoreUnavailable:
    own = type(error)(*error.args)
    own.__cause__ = error.__cause__
    return own


def _together(batch: list[Waiting]) -> Batch:
    runs: list[Run] = []
    for waiting in batch:
        runs += runs_of(waiting.tasks)
    return Batch(runs)
