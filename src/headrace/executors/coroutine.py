"""`async def` on the event loop of the worker process.

Each attempt is one asyncio task, started eagerly, whose coroutine is a driver around the user's. The driver turns the
cancellation by which a timer wakes the coroutine into SoftTimeLimitExceeded, and every ending into an outcome.

- soft limit: raised at the `await` where the coroutine waits, or, while it blocks the loop, by SIGUSR1 (interruption).
- hard limit: cancelled for good; one that does not end within `hard_grace` is closed. A coroutine that blocks the loop
  is ended with its process, by the watcher of the slot table.
- stop: the same with the caller's grace. A coroutine that swallows the cancellation and refuses to be closed is
  abandoned: it gives `Cancelled` all the same, and what is left of it runs on without anyone listening.
"""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from functools import partial
from inspect import CO_COROUTINE
from mmap import mmap
from types import CoroutineType, FunctionType
from typing import Any

from headrace.core.errors import SoftTimeLimitExceeded
from headrace.core.outcome import Cancelled, Outcome, Released
from headrace.core.task import Ref
from headrace.executors.base import Capabilities, Entry, Launch, Ran
from headrace.executors.context import Channel, Context, LogLine, Progress, running
from headrace.executors.interruption import install_handlers, soft_limit
from headrace.executors.invocation import (
    Call,
    Host,
    outcome_of_exception,
    outcome_of_value,
    prepare,
    timed_out,
)
from headrace.executors.slots import LOOP, NEVER, SlotRange
from headrace.executors.subtasks import SubTaskFactory

HARD_GRACE = 0.25


def enter(call: Call) -> "CoroutineType[Any, Any, Any]":  # quoted: Python 3.12 cannot subscript it
    """The coroutine to drive. Calling an `async def` runs nothing of it yet, so what that gives needs no frame around
    it; whatever else there is to call is called by the driven frame. (`inspect.iscoroutinefunction` takes 2 µs.)
    """
    function = call.entry.function
    # The very type: an object that stands for a function shows its code, and runs its own when it is called.
    if type(function) is FunctionType and function.__code__.co_flags & CO_COROUTINE:
        try:
            return function(*call.args, **call.kwargs)
        except TypeError:  # the arguments do not fit; below, that is the attempt's failure
            pass
    return _awaited(call)


async def _awaited(call: Call) -> Any:
    """Something else that is called: what it gives is waited for if it can be."""
    value = call()
    return await value if call.entry.is_async or hasattr(value, "__await__") else value


class Attempt:
    """One running coroutine: what its asyncio task drives, and what timers and `stop` act on."""

    __slots__ = (
        "_done", "_limit", "_mark", "_timer", "_user", "context", "entered", "hard_at", "launch", "outcome", "task",
        "timed_out",
    )  # fmt: skip

    def __init__(
        self,
        launch: Launch,
        call: Call,
        context: Context,
        limit: int,
        entered: float,
        mark: tuple[mmap | bytearray, int] | None = None,
    ) -> None:
        self.launch = launch
        self.entered = entered
        self._mark = mark or (bytearray(1), 0)
        self.context = context
        self._user = enter(call)
        self._limit = limit
        self._done: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None
        self.outcome: Outcome | None = None
        self.timed_out = False
        limits = launch.limits
        self.hard_at = NEVER if limits.hard is None else entered + limits.hard
        context.control.soft_at = NEVER if limits.soft is None else entered + limits.soft

    # --- driven by the asyncio task -----------------------------------------------------------------------------------

    async def drive(self) -> None:
        """The coroutine of the asyncio task."""
        await self

    def __await__(self) -> Generator[Any, Any, None]:
        """Step by step, so that the slot says when the loop executes this attempt's code. A generator, because asyncio
        steps those for half of what an object with `send` and `throw` costs.
        """
        user = self._user
        memory, place = self._mark
        step: Callable[[Any], Any] = user.send
        argument: Any = None
        while self.outcome is None:  # else it was closed from outside
            memory[place] = 1
            try:
                waits_for = step(argument)
            except StopIteration as end:
                argument = None  # an exception that this frame held would hold this frame
                self._returned(end.value)
                return
            except BaseException as error:
                if not self._is_to_be_told(error):
                    argument = None
                    self._raised(error)
                    return
                step, argument = user.throw, error
                continue
            finally:
                memory[place] = 0
            try:
                step, argument = user.send, (yield waits_for)
            except GeneratorExit:
                user.close()
                raise
            except BaseException as error:
                step, argument = user.throw, self._as_seen(error)

    def _as_seen(self, error: BaseException) -> BaseException:
        """What the coroutine is to see of an exception that asyncio throws into it."""
        if isinstance(error, asyncio.CancelledError) and self._soft_is_due():
            # This cancellation is ours: it only served to wake the coroutine.
            assert self.task is not None
            self.task.uncancel()
            return soft_limit(self.context.control, self.context.task_id)
        return error

    def _soft_is_due(self) -> bool:
        control = self.context.control
        ending = self.timed_out or control.stop_reason is not None
        return not ending and not control.interrupted and time.monotonic() >= control.soft_at

    def _is_to_be_told(self, error: BaseException) -> bool:
        """Whether the signal arrived between the driver and the coroutine, which has not seen it yet."""
        return isinstance(error, SoftTimeLimitExceeded) and self._user.cr_frame is not None

    # --- how it ends --------------------------------------------------------------------------------------------------

    def _returned(self, value: Any) -> None:
        self.context.control.open = False
        launch = self.launch
        if self.timed_out:
            self.finish(timed_out(launch.limits.hard))
            return
        assert launch.entry is not None
        self.finish(outcome_of_value(value, launch.entry, launch.policy, self.context, self._limit))

    def _raised(self, error: BaseException) -> None:
        self.context.control.open = False
        self.finish(self._outcome_of_error(error))

    def _outcome_of_error(self, error: BaseException) -> Outcome:
        if self.timed_out:
            return timed_out(self.launch.limits.hard, detail=error)
        return outcome_of_exception(error, self.launch.policy, stop_reason=self.context.control.stop_reason)

    def finish(self, outcome: Outcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            if self._timer is not None:
                self._timer.cancel()
            if self._done is not None and not self._done.done():
                self._done.set_result(None)

    def task_ended(self, task: asyncio.Task[None]) -> None:
        """The net below: an exception that a signal raised in the driver itself, after the user's code had ended; or
        a cancellation before its first step.
        """
        if self.outcome is None:
            with contextlib.suppress(BaseException):
                self._user.close()
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            self._raised(error or RuntimeError("the attempt ended without an outcome"))

    async def wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self._done = loop.create_future()
        assert self.task is not None
        self.task.add_done_callback(self.task_ended)
        self._arm(loop)
        await self._done
        context, durable = self.context, self.context.durable
        suspended = durable is not None and durable.suspend is not None
        if self.timed_out or context.control.interrupted or context.cancelled or suspended:
            self._cancel_what_it_started(loop)

    # --- limits and stop ----------------------------------------------------------------------------------------------

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        control = self.context.control
        due = self.hard_at if control.interrupted else min(control.soft_at, self.hard_at)
        if due != NEVER:
            self._timer = loop.call_later(max(0.0, due - time.monotonic()), self._on_time, loop)

    def _on_time(self, loop: asyncio.AbstractEventLoop) -> None:
        now = time.monotonic()
        if now >= self.hard_at:
            self.timed_out = True
            self.end(HARD_GRACE, loop)
            return
        if self._soft_is_due() and self.task is not None:
            self.task.cancel()
            # Where what it waits for swallows the cancellation, ask again until it has been told.
            self._timer = loop.call_later(min(0.05, self.hard_at - now), self._on_time, loop)
            return
        self._arm(loop)

    def end(self, grace: float, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel for good; after `grace`, close."""
        if self._timer is not None:
            self._timer.cancel()
        if self.task is not None:
            self.task.cancel()
        self._timer = loop.call_later(grace, self.abandon)

    def stop(self, reason: str, grace: float, loop: asyncio.AbstractEventLoop) -> None:
        control = self.context.control
        if self.outcome is None and control.stop_reason is None:
            control.stop_reason = reason
            control.stop_raised = True  # told by cancellation, not by a signal
            self.end(min(grace, max(0.0, self.hard_at - time.monotonic())), loop)

    def abandon(self) -> None:
        if self.outcome is not None:
            return
        self.context.control.open = False
        with contextlib.suppress(BaseException):  # it ignored GeneratorExit, or raised while closing
            self._user.close()
        reason = self.context.control.stop_reason
        self.finish(
            Cancelled(reason=reason, message="it did not stop when told to and was closed")
            if reason is not None and not self.timed_out
            else timed_out(self.launch.limits.hard)
        )
        if self.task is not None:
            self.task.cancel()

    def _cancel_what_it_started(self, loop: asyncio.AbstractEventLoop) -> None:
        """An exception raised at an `await` inside a task group leaves the group's tasks behind. What goes on beside a
        suspended task would do its work, and the next attempt would do it again.
        """
        for task in asyncio.all_tasks(loop):
            if task is not self.task and task.get_context().get(running) is self.context:
                task.cancel()


class CoroutineExecutor:
    """Up to `concurrency` coroutines at once, each with a slot of the table while it runs."""

    name = "coroutine"
    capabilities = Capabilities(kill=False)

    def __init__(self, *, concurrency: int, slots: SlotRange, host: Host) -> None:
        self._concurrency = concurrency
        self._slots = slots
        self._host = host
        self._running: dict[Ref, Attempt] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._channel: Channel = host.channel
        self._signals = False
        self._pid = os.getpid()
        self._places: dict[int, tuple[tuple[mmap | bytearray, int], Callable[[], None]]] = {}

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pid = os.getpid()
        self._channel = LoopChannel(self._host.channel, self._loop)
        self._signals = install_handlers()
        SubTaskFactory.install(self._loop)

    async def close(self) -> None:
        running_now = list(self._running.values())
        for attempt in running_now:
            await self.stop(attempt.launch.ref, grace=HARD_GRACE, reason="stopped")
        waits = [attempt.task for attempt in running_now if attempt.task is not None]
        if waits:
            await asyncio.wait(waits, timeout=2 * HARD_GRACE)

    def free(self) -> int:
        return min(self._concurrency - len(self._running), self._slots.free())

    async def run(self, launch: Launch) -> Ran:
        begun = self.begin(launch)
        return begun if isinstance(begun, Ran) else await begun

    def begin(self, launch: Launch) -> Ran | Coroutine[Any, Any, Ran]:
        """Run it until it first waits: what came of it, or what to await for the rest."""
        loop, entry = self._loop, launch.entry
        if loop is None or entry is None:
            raise RuntimeError("open the executor first, and give the launch its entry")
        slots = self._slots
        index = slots.take()
        if index is None:
            return Ran(outcome=Released())
        waits = False
        try:
            attempt = self._entered(launch, entry, index)
            if isinstance(attempt, Ran):
                return attempt
            self._drive(attempt, loop)
            if attempt.outcome is not None:
                return Ran(attempt.outcome, time.monotonic() - attempt.entered)
            waits = True
            self._running[launch.ref] = attempt
            return self._rest(attempt, index, loop)
        finally:
            if not waits:
                slots.table.leave(index)
                slots.give(index)

    def _entered(self, launch: Launch, entry: Entry, index: int) -> "Attempt | Ran":
        claim, host, table, limits = launch.claim, self._host, self._slots.table, launch.limits
        # By places, here and below: in CPython 3.13 a call by names takes the slow way.
        context = Context(claim, self._channel, launch.options, host.worker, host.source)
        soft = limits.soft if self._signals else None  # elsewhere than on the main thread a signal would only kill
        entered = table.enter(index, self._slots.worker, claim[:2], soft, limits.hard, self._pid, LOOP)
        # From here on, because types that load arguments are user code: what kills the process there is charged.
        mark, interrupted = self._places.get(index) or self._place(index)
        memory, place = mark
        memory[place] = 1
        call = prepare(launch, entry, context, host.resources)
        memory[place] = 0
        if isinstance(call, Ran):
            return call
        control = context.control
        control.mark = mark
        control.on_interrupted = interrupted
        return Attempt(launch, call, context, host.result_limit, entered, mark)

    def _place(self, index: int) -> tuple[tuple[mmap | bytearray, int], Callable[[], None]]:
        """What every attempt in that slot writes to, made once."""
        table = self._slots.table
        made = self._places[index] = (table.mark(index), partial(table.mark_interrupted, index))
        return made

    def _drive(self, attempt: Attempt, loop: asyncio.AbstractEventLoop) -> None:
        variables = copy_context()
        variables.run(running.set, attempt.context)
        attempt.context.control.open = True
        # Eager: a coroutine that never waits costs no turn of the loop.
        task: asyncio.Task[None] = asyncio.Task(attempt.drive(), loop=loop, context=variables, eager_start=True)
        if attempt.outcome is None:
            attempt.task = task
            if task.done():
                attempt.task_ended(task)

    async def _rest(self, attempt: Attempt, index: int, loop: asyncio.AbstractEventLoop) -> Ran:
        try:
            await attempt.wait(loop)
        except asyncio.CancelledError:
            if attempt.task is not None:
                attempt.task.cancel()
            raise
        finally:
            del self._running[attempt.launch.ref]
            self._slots.table.leave(index)
            self._slots.give(index)
        assert attempt.outcome is not None
        return Ran(outcome=attempt.outcome, ran_for=time.monotonic() - attempt.entered)

    async def stop(self, ref: Ref, *, grace: float, reason: str = "user") -> None:
        attempt = self._running.get(ref)
        if attempt is not None and self._loop is not None:
            attempt.stop(reason, grace, self._loop)


class LoopChannel:
    """Brings what other threads say to the thread of the loop."""

    __slots__ = ("_channel", "_loop", "_thread")

    def __init__(self, channel: Channel, loop: asyncio.AbstractEventLoop) -> None:
        self._channel = channel
        self._loop = loop
        self._thread = threading.get_ident()

    def _call(self, method: Callable[..., None], *arguments: object) -> None:
        if threading.get_ident() == self._thread:
            method(*arguments)
        else:
            self._loop.call_soon_threadsafe(method, *arguments)

    def log(self, ref: Ref, line: LogLine, /) -> None:
        self._call(self._channel.log, ref, line)

    def progress(self, ref: Ref, progress: Progress, /) -> None:
        self._call(self._channel.progress, ref, progress)

    def stream(self, ref: Ref, value: str, /) -> None:
        self._call(self._channel.stream, ref, value)

    def heartbeat(self, ref: Ref, /) -> None:
        self._call(self._channel.heartbeat, ref)
