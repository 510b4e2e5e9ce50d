"""One attempt in the process of the test: what a worker's child would do, without the child.

Arguments come from the stored text, the result becomes text, exceptions become outcomes, by the same functions as in a
worker. An `async def` has its limits of time. A `def` cannot be killed here: it is judged when it returns.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import Context as Variables
from dataclasses import dataclass
from typing import Any

from headrace.client.bridge import must_block
from headrace.core.outcome import Outcome
from headrace.executors.base import Launch, Ran, Source
from headrace.executors.command import CommandExecutor
from headrace.executors.context import Channel, Context, running
from headrace.executors.coroutine import Attempt
from headrace.executors.invocation import (
    RESULT_LIMIT,
    Call,
    Host,
    outcome_of_exception,
    outcome_of_value,
    permanent,
    prepare,
    resolve,
    timed_out,
)
from headrace.executors.slots import SlotRange, SlotTable
from headrace.testing.rooms import Rooms
from headrace.testing.tally import Around, Tally, around
from headrace.worker.directories import private_directory

EXECUTOR = "inline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What the attempts of one runner share."""

    source: Source
    rooms: Rooms
    worker: str


async def run(launch: Launch, place: Place, channel: Channel, tally: Tally) -> Ran:
    """From a caller that awaits, an `async def` runs on its loop and a `def` on a thread, so that the loop turns. From
    one that blocks, a `def` runs on the very thread, and an `async def` on the loop of `rooms`.
    """
    blocking = must_block()
    if launch.claim.kind == "command":
        return await _command(launch, place, channel, blocking=blocking)
    entry = launch.entry or resolve(place.source, launch.claim.name, launch.options, launch.policy)
    if isinstance(entry, Ran):
        return entry
    if launch.entry is None:
        launch = Launch(
            claim=launch.claim, entry=entry, options=launch.options, limits=launch.limits, policy=launch.policy
        )
    resources: Mapping[str, Any] = await place.rooms.resources(blocking=blocking)
    context = Context(launch.claim, channel=channel, options=launch.options, worker=place.worker, source=place.source)
    call = prepare(launch, entry, context, resources)
    if isinstance(call, Ran):
        return call
    outside = around.get()
    inside = Around(1, tally) if outside is None else Around(outside.level + 1, tally)
    if entry.is_async:
        if blocking:
            return place.rooms.thread.call(lambda: _coroutine(launch, call, context, inside))
        return await _coroutine(launch, call, context, inside)
    if blocking:
        return _function(launch, call, context, inside)
    return await _on_thread(lambda: _function(launch, call, context, inside))


def _variables(context: Context, inside: Around) -> Variables:
    """Empty but for what a worker sets: a task that needed a variable of its caller would not find it there either."""
    variables = Variables()
    variables.run(running.set, context)
    variables.run(around.set, inside)
    return variables


async def _coroutine(launch: Launch, call: Call, context: Context, inside: Around) -> Ran:
    loop, entered = asyncio.get_running_loop(), time.monotonic()
    attempt = Attempt(launch, call, context, limit=RESULT_LIMIT, entered=entered)
    context.control.open = True
    attempt.task = asyncio.Task(attempt.drive(), loop=loop, context=_variables(context, inside))
    try:
        await attempt.wait(loop)
    except asyncio.CancelledError:
        attempt.task.cancel()
        raise
    assert attempt.outcome is not None
    return Ran(outcome=attempt.outcome, ran_for=time.monotonic() - entered)


def _function(launch: Launch, call: Call, context: Context, inside: Around) -> Ran:
    entered = time.monotonic()
    try:
        outcome = _outcome(launch, call, context, inside)
    finally:
        context.control.open = False
    ran_for, hard = time.monotonic() - entered, launch.limits.hard
    if hard is not None and ran_for > hard:
        outcome = timed_out(hard)
    return Ran(outcome=outcome, ran_for=ran_for)


def _outcome(launch: Launch, call: Call, context: Context, inside: Around) -> Outcome:
    context.control.open = True
    try:
        value = _variables(context, inside).run(call)
    except KeyboardInterrupt:  # the person at the keyboard means the test run
        raise
    except BaseException as error:
        # Without this frame: a worker's traceback begins with the user's code.
        return outcome_of_exception(
            error.with_traceback(error.__traceback__ and error.__traceback__.tb_next), launch.policy
        )
    if hasattr(value, "__await__"):
        return permanent(
            TypeError(f"{call.entry.name} is a `def` that returned an awaitable; declare it `async def`"),
            launch.policy,
        )
    return outcome_of_value(value, call.entry, launch.policy, context=context)


async def _on_thread[T](work: Callable[[], T]) -> T:
    """One of its own: tasks that wait for each other must not wait for a place in a pool."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="headrace-testing-task", daemon=True).start()
    return await asyncio.wrap_future(future)


async def _command(launch: Launch, place: Place, channel: Channel, *, blocking: bool) -> Ran:
    """A real process, by the executor that workers use."""

    async def run() -> Ran:
        with private_directory() as directory:
            table = SlotTable.create(directory / "slots", 1)
            executor = CommandExecutor(
                concurrency=1, slots=SlotRange(table), host=Host(channel=channel, worker=place.worker)
            )
            try:
                await executor.open()
                return await executor.run(launch)
            finally:
                await executor.close()
                table.close()

    return place.rooms.thread.call(run) if blocking else await run()
