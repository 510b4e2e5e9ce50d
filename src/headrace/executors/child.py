"""The life of one killable child: receive launches, run one at a time, send each outcome.

Launches arrive in batches over the socket, read by a thread, which also hears `stop` and sees the worker's death. A
launch may be started only with its token, a number read from a pipe that the worker reads too: what it takes back from
the pipe can never start here, even while this process holds the GIL in a C call and hears nothing.
"""

import asyncio
import importlib
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from headrace.core.memory import shown_memory
from headrace.core.outcome import Completed
from headrace.core.retry import DEFAULT_RETRY, Retry
from headrace.core.task import ClaimedTask, Ref
from headrace.executors import wire
from headrace.executors.base import Launch, Limits, Ran, Source
from headrace.executors.context import Context, LogLine, Progress, running
from headrace.executors.coroutine import Attempt
from headrace.executors.interruption import STOP_SIGNAL, Uninterrupted, install_handlers
from headrace.executors.invocation import (
    Call,
    outcome_of_exception,
    outcome_of_value,
    permanent,
    prepare,
    resolve,
)
from headrace.executors.slots import CHILD, SlotTable
from headrace.runtime.memory import resident
from headrace.telemetry import relay, tracing

TOKEN = struct.Struct("<q")
EXIT_TOKEN = 0
_LONGEST_ANSWER = 5.0  # seconds; a worker whose loop is blocked must not keep a child from its tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildConfig:
    target: str
    table: str  # path of the slot table
    slot: int
    worker_index: int
    worker: str
    result_limit: int
    memory_limit: int | None
    kill_memory: int | None


class TooLarge(Exception):
    """It has more in use before its first task than a child may have: each task would be killed and charged for it."""


class Order(NamedTuple):
    """A launch as it travels. `policy` is None where the task's own, found in the child, applies.

    It is sent as a plain tuple, which pickles several times faster than a dataclass.
    """

    number: int
    claim: tuple[Any, ...]
    options: Mapping[str, Any]
    soft: float | None
    hard: float | None
    policy: Retry | None


def packed(ran: Ran) -> Any:
    """A report as it travels; the common one is a plain tuple, for the same reason."""
    outcome = ran.outcome
    return (outcome.result, ran.ran_for) if type(outcome) is Completed and outcome.result_ref is None else ran


def unpacked(report: Any) -> Ran:
    return report if isinstance(report, Ran) else Ran(outcome=Completed(result=report[0]), ran_for=report[1])


def load_source(target: str) -> Source:
    """The Source that "module:attribute" names."""
    module, _, attribute = target.partition(":")
    if not module or not attribute:
        raise ValueError(f"a target is 'module:attribute', not {target!r}")
    working_directory = os.getcwd()
    if working_directory not in sys.path:
        sys.path.insert(0, working_directory)
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found if hasattr(found, "resolve") else found.source


def main(config: ChildConfig, *, connection: int, tokens: int) -> None:
    install_handlers()
    worker = socket.socket(fileno=connection)
    try:
        child = Child(config, worker, tokens)
        child.open()
        child.refuse_to_be_killed()
    except TooLarge as error:
        worker.sendall(wire.encode(("failed", str(error))))
        return
    except BaseException:
        worker.sendall(wire.encode(("failed", traceback.format_exc())))
        raise
    child.live()
    relay.flush_before_exit()
    tracing.flush_before_exit()


class Child:
    """Everything here but `_listen` runs on the main thread, where signals raise."""

    def __init__(self, config: ChildConfig, connection: socket.socket, tokens: int) -> None:
        self._config = config
        self._socket = connection
        self._tokens = tokens
        # `poll`, because `select` takes no descriptor above 1023, and the user's module may hold as many.
        self._waits = select.poll()
        self._waits.register(tokens, select.POLLIN)
        self._send_lock = threading.Lock()
        self._uninterrupted = Uninterrupted()
        self._retired = threading.Event()
        self._orders: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
        self._table = SlotTable.attach(Path(config.table))
        self._source = load_source(config.target)
        self._lifespan: Any = None
        self._resources: Mapping[str, Any] = {}
        self._runner: asyncio.Runner | None = None
        self._running: Context | None = None
        self._attempt: Attempt | None = None
        self._main = threading.get_ident()

    def open(self) -> None:
        threading.Thread(target=self._listen, name="headrace-listener", daemon=True).start()
        make = getattr(self._source, "resources", None)
        self._lifespan = make() if callable(make) else None
        if self._lifespan is not None:
            self._resources = self._loop_runner().run(self._lifespan.__aenter__())

    def refuse_to_be_killed(self) -> None:
        limit = self._config.kill_memory
        if limit is not None and (used := resident() or 0) > limit:
            raise TooLarge(
                f"kill_memory {shown_memory(limit)} is less than the {shown_memory(used)} that a child has in use "
                "before its first task: every task would be killed; raise kill_memory, or import less"
            )

    def live(self) -> None:
        self._send(("ready", os.getpid()))
        while (number := self._next_token()) != EXIT_TOKEN:
            order = self._order(number)
            # Sent before the slot is left: whoever finds the slot used and no report knows that it was inside.
            try:
                self._send(("ran", number, packed(self._run(order))))
            finally:
                self._table.leave(self._config.slot)
            self._retire_when_fat()
        if self._lifespan is not None:
            self._loop_runner().run(self._lifespan.__aexit__(None, None, None))
        if self._runner is not None:
            self._runner.close()

    def _loop_runner(self) -> asyncio.Runner:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner

    def _next_token(self) -> int:
        # Without blocking in the read: the worker's end of this pipe is the same open file, and must never block.
        while True:
            try:
                data = os.read(self._tokens, TOKEN.size)
            except BlockingIOError:
                self._waits.poll()
                continue
            return TOKEN.unpack(data)[0] if len(data) == TOKEN.size else EXIT_TOKEN

    def _order(self, number: int) -> Order:
        """The order of that number; earlier ones were taken back by the worker."""
        while True:
            order = self._orders.get()
            if order[0] == number:
                return Order._make(order)

    # --- one attempt --------------------------------------------------------------------------------------------------

    def _run(self, order: Order) -> Ran:
        claim = ClaimedTask._make(order.claim)
        # Before anything is imported or loaded: both are user code, and have to end at the hard limit, too.
        entered = self._table.enter(
            self._config.slot,
            worker=self._config.worker_index,
            ref=Ref(claim.id, claim.claim_no),
            soft=order.soft,
            hard=order.hard,
            kind=CHILD,
        )
        entry = resolve(self._source, claim.name, order.options, order.policy or DEFAULT_RETRY)
        if isinstance(entry, Ran):
            return entry
        policy = order.policy or entry.retry
        limits = Limits(soft=order.soft, hard=order.hard)
        launch = Launch(claim=claim, entry=entry, options=order.options, limits=limits, policy=policy)
        context = Context(claim, channel=self, options=order.options, worker=self._config.worker, source=self._source)
        call = prepare(launch, entry, context, self._resources)
        if isinstance(call, Ran):
            return call
        return self._enter(launch, call, context, entered)

    def _enter(self, launch: Launch, call: Call, context: Context, entered: float) -> Ran:
        limits, control, slot = launch.limits, context.control, self._config.slot
        control.on_interrupted = lambda: self._table.mark_interrupted(slot)
        if limits.soft is not None:
            control.soft_at = entered + limits.soft
        self._running = context
        try:
            if call.entry.is_async:
                outcome = self._loop_runner().run(self._drive(launch, call, context, entered))
            else:
                outcome = self._call(launch, call, context)
        except BaseException as error:
            # A signal that arrived in the last moment of the attempt.
            outcome = outcome_of_exception(error, launch.policy, stop_reason=control.stop_reason)
        finally:
            control.open = False
            self._running = None
        return Ran(outcome=outcome, ran_for=time.monotonic() - entered)

    def _call(self, launch: Launch, call: Call, context: Context) -> Any:
        control = context.control
        variables = copy_context()
        variables.run(running.set, context)
        try:
            value = variables.run(self._inside, call, context)
        except BaseException as error:
            return outcome_of_exception(error, launch.policy, stop_reason=control.stop_reason)
        if hasattr(value, "__await__"):
            return permanent(
                TypeError(f"{call.entry.name} is a `def` that returned an awaitable; declare it `async def`"),
                launch.policy,
            )
        return outcome_of_value(
            value, call.entry, launch.policy, context=context, result_limit=self._config.result_limit
        )

    @staticmethod
    def _inside(call: Call, context: Context) -> Any:
        control = context.control
        try:
            control.open = True
            if control.stop_reason is not None:
                os.kill(os.getpid(), STOP_SIGNAL)  # told to stop before it could hear it
            return call()
        finally:
            control.open = False

    async def _drive(self, launch: Launch, call: Call, context: Context, entered: float) -> Any:
        loop = asyncio.get_running_loop()
        attempt = Attempt(launch, call, context, limit=self._config.result_limit, entered=entered)
        variables = copy_context()
        variables.run(running.set, context)
        context.control.open = True
        attempt.task = asyncio.Task(attempt.drive(), loop=loop, context=variables)
        self._attempt = attempt
        try:
            await attempt.wait(loop)
        finally:
            self._attempt = None
        return attempt.outcome

    def _retire_when_fat(self) -> None:
        limit = self._config.memory_limit
        if limit is None:
            return
        used = resident()
        if used is None:  # no /proc: the most it ever had is all that can be known
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if used > limit:
            self._send(("retire", used))
            self._retired.wait(_LONGEST_ANSWER)  # until what it was handed beside has been taken back

    # --- the channel of `current` -------------------------------------------------------------------------------------

    def log(self, ref: Ref, line: LogLine, /) -> None:
        # Fields may be anything, also what only this process could unpickle; in the end they are kept as JSON anyway.
        plain: dict[str, Any] = json.loads(json.dumps(dict(line.fields), default=str)) if line.fields else {}
        self._send(("log", ref, replace(line, fields=plain)))

    def progress(self, ref: Ref, progress: Progress, /) -> None:
        self._send(("progress", ref, progress))

    def stream(self, ref: Ref, value: str, /) -> None:
        self._send(("value", ref, value))

    def heartbeat(self, ref: Ref, /) -> None:
        self._send(("heartbeat", ref))

    def _send(self, message: Any) -> None:
        data = wire.encode(message)
        with self._uninterrupted, self._send_lock:
            try:
                self._socket.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                os._exit(0)  # the worker is gone, and nobody would hear an outcome

    # --- the listening thread -----------------------------------------------------------------------------------------

    def _listen(self) -> None:
        decoder = wire.Decoder()
        while True:
            try:
                data = self._socket.recv(256 * 1024)
            except OSError:
                data = b""
            if not data:
                os._exit(0)  # the worker is gone, and nobody would hear an outcome
            for message in decoder.feed(data):
                match message:
                    case ("orders", orders):
                        for order in orders:
                            self._orders.put(order)
                    case ("retired",):
                        self._retired.set()
                    case ("stop", ref, reason, grace):
                        self._stop(ref, reason, grace)
                    case _:
                        pass

    def _stop(self, ref: Ref, reason: str, grace: float) -> None:
        context, attempt = self._running, self._attempt
        if context is None or (context.task_id, context.claim_no) != tuple(ref):
            return
        if attempt is not None and self._runner is not None:
            loop = self._runner.get_loop()
            loop.call_soon_threadsafe(attempt.stop, reason, grace, loop)
            return
        context.control.stop_reason = reason
        signal.pthread_kill(self._main, STOP_SIGNAL)
