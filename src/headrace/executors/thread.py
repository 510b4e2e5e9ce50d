"""`def` in threads of the worker process, for tasks that say so: they share memory and wait on the outside.

A thread cannot be killed. The soft limit and `stop` raise into it at its next bytecode, which a blocking call in C
never reaches. At the hard limit the supervisor ends the worker process (and charges only this attempt); without one
(`supervised=False`) the attempt is given up: its outcome is a timeout, and its thread counts as busy until it ends.
"""

import asyncio
import contextlib
import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

from headrace.core.errors import SoftTimeLimitExceeded
from headrace.core.outcome import Cancelled, Outcome, Released
from headrace.core.task import Ref
from headrace.executors.base import Capabilities, Launch, Ran
from headrace.executors.context import Channel, Context, running
from headrace.executors.coroutine import LoopChannel
from headrace.executors.interruption import soft_limit
from headrace.executors.invocation import (
    Call,
    Host,
    Stopped,
    outcome_of_exception,
    outcome_of_value,
    prepare,
    timed_out,
)
from headrace.executors.slots import THREAD, SlotRange

_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in_thread.argtypes = (ctypes.c_ulong, ctypes.py_object)


class ThreadAttempt:
    """One call in one thread. `lock` guards `control.open`: only while it is true may something be raised."""

    def __init__(self, launch: Launch, context: Context, index: int, answer: asyncio.Future[Ran]) -> None:
        self.launch = launch
        self.context = context
        self.index = index
        self.answer = answer
        self.entered = 0.0
        self.thread = 0
        self.lock = threading.Lock()
        self.aimed_at = False  # something was raised into the thread, and may not have arrived
        self.timers: list[asyncio.TimerHandle] = []

    def call(self, call: Call, limit: int) -> Outcome:
        """On the thread. An exception from outside may arrive at any bytecode until `_shut` has returned."""
        policy, control = self.launch.policy, self.context.control
        self.thread = threading.get_ident()
        error: BaseException | None = None
        value: Any = None
        try:
            try:
                control.open = True
                if control.stop_reason is not None:
                    raise Stopped
                value = _finished(call())
            finally:
                self._shut()
        except BaseException as raised:
            error = raised
        while control.open:
            with contextlib.suppress(SoftTimeLimitExceeded, Stopped):
                self._shut()
        if error is not None:
            return outcome_of_exception(error, policy, stop_reason=control.stop_reason)
        return outcome_of_value(value, call.entry, policy, context=self.context, result_limit=limit)

    def _shut(self) -> None:
        with self.lock:
            self.context.control.open = False
            if self.aimed_at:
                _raise_in_thread(self.thread, ctypes.py_object())  # NULL: forget what has not been raised yet

    def interrupt(self, kind: type[BaseException]) -> bool:
        """From the loop: raise at the next bytecode of the thread, if it is still inside."""
        with self.lock:
            if not self.context.control.open:
                return False
            self.aimed_at = True
            _raise_in_thread(self.thread, ctypes.py_object(kind))
            return True

    def settle(self, outcome: Outcome) -> None:
        for timer in self.timers:
            timer.cancel()
        if not self.answer.done():
            self.answer.set_result(Ran(outcome=outcome, ran_for=time.monotonic() - self.entered))


def _finished(value: Any) -> Any:
    """What an `async def` gives is awaited here, on a loop of its own."""

    async def wait() -> Any:
        return await value

    return asyncio.run(wait()) if hasattr(value, "__await__") else value


class ThreadExecutor:
    """Up to `threads` calls at once, in daemon threads: one that never ends does not keep the process alive."""

    name = "thread"
    capabilities = Capabilities(kill=False)

    def __init__(self, *, threads: int, slots: SlotRange, host: Host, supervised: bool = True) -> None:
        self._size = threads
        self._slots = slots
        self._host = host
        self._supervised = supervised
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._busy: dict[Ref, ThreadAttempt] = {}
        self._ended_here: deque[tuple[ThreadAttempt, Outcome]] = deque()
        self._told = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._channel: Channel = host.channel

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._channel = LoopChannel(self._host.channel, self._loop)

    async def close(self) -> None:
        for attempt in list(self._busy.values()):
            await self.stop(attempt.launch.ref, grace=0.25, reason="stopped")
        answers = [attempt.answer for attempt in self._busy.values()]
        if answers:
            await asyncio.wait(answers, timeout=1.0)
        for _ in self._threads:
            self._work.put(None)
        self._threads.clear()

    def free(self) -> int:
        return min(self._size - len(self._busy), self._slots.free())

    async def run(self, launch: Launch) -> Ran:
        loop, entry = self._loop, launch.entry
        if loop is None or entry is None:
            raise RuntimeError("open the executor first, and give the launch its entry")
        index = self._slots.take() if len(self._busy) < self._size else None
        if index is None:
            return Ran(outcome=Released())
        host = self._host
        context = Context(
            launch.claim, channel=self._channel, options=launch.options, worker=host.worker, source=host.source
        )
        attempt = ThreadAttempt(launch, context, index, loop.create_future())
        # Before the arguments are loaded: their types are user code, and may end the process or never return.
        self._enter(attempt, loop)
        call = prepare(launch, entry, context, self._host.resources)
        if isinstance(call, Ran):
            attempt.settle(call.outcome)
            self._slots.table.leave(index)
            self._slots.give(index)
            return call
        self._busy[launch.ref] = attempt
        if len(self._threads) < len(self._busy):
            self._add_thread()
        variables = copy_context()
        variables.run(running.set, context)
        self._work.put(lambda: variables.run(self._on_thread, attempt, call, loop))
        return await attempt.answer

    def _enter(self, attempt: ThreadAttempt, loop: asyncio.AbstractEventLoop) -> None:
        limits = attempt.launch.limits
        attempt.entered = self._slots.table.enter(
            attempt.index,
            worker=self._slots.worker,
            ref=attempt.launch.ref,
            soft=limits.soft,
            hard=limits.hard if self._supervised else None,
            kind=THREAD,
        )
        if limits.soft is not None:
            attempt.timers.append(loop.call_later(limits.soft, self._soft, attempt))
        if limits.hard is not None and not self._supervised:
            attempt.timers.append(loop.call_later(limits.hard, attempt.settle, timed_out(limits.hard)))

    def _add_thread(self) -> None:
        thread = threading.Thread(target=self._work_on, name="headrace-task", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work_on(self) -> None:
        while (work := self._work.get()) is not None:
            work()

    def _on_thread(self, attempt: ThreadAttempt, call: Call, loop: asyncio.AbstractEventLoop) -> None:
        self._ended_here.append((attempt, attempt.call(call, self._host.result_limit)))
        # One wake-up for whatever ends until the loop looks: each costs a system call. The order matters: an outcome
        # is there before the flag is read, and the flag is lowered before the outcomes are.
        if not self._told:
            self._told = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        self._told = False
        while self._ended_here:
            self._ended(*self._ended_here.popleft())

    def _ended(self, attempt: ThreadAttempt, outcome: Outcome) -> None:
        del self._busy[attempt.launch.ref]
        self._slots.table.leave(attempt.index)
        self._slots.give(attempt.index)
        attempt.settle(outcome)

    def _soft(self, attempt: ThreadAttempt) -> None:
        if attempt.answer.done() or self._loop is None:
            return
        if not attempt.interrupt(SoftTimeLimitExceeded):
            # Its thread has not begun, or just ended; the latter has an answer the next time.
            attempt.timers.append(self._loop.call_later(0.01, self._soft, attempt))
        else:
            soft_limit(attempt.context.control, attempt.context.task_id)
            self._slots.table.mark_interrupted(attempt.index)

    async def stop(self, ref: Ref, *, grace: float, reason: str = "user") -> None:
        attempt = self._busy.get(ref)
        if attempt is None or attempt.context.control.stop_reason is not None or self._loop is None:
            return
        attempt.context.control.stop_reason = reason
        attempt.interrupt(Stopped)
        given_up = Cancelled(reason=reason, message="its thread did not stop when told to and was given up")
        attempt.timers.append(self._loop.call_later(grace, attempt.settle, given_up))
