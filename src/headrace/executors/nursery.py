"""The worker's side of the forkserver: it starts it, asks it for children, and holds what belongs to each."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.core.task import Ref
from headrace.executors.base import Launch, Ran
from headrace.executors.child import EXIT_TOKEN, TOKEN, ChildConfig, Order
from headrace.executors.wire import LoopWire, encode

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[4]); from headrace.executors.forkserver import main; main()"
)
_PIPE_READ = 64 * 1024
_MANY = 4


class ChildrenFailed(RuntimeError):
    """No child can be started: the message holds what the child or the forkserver said."""


@dataclass(slots=True, eq=False)
class Item:
    """A launch on its way through the executor."""

    launch: Launch
    answer: asyncio.Future[Ran]
    since: float = field(default_factory=time.monotonic)
    restarts: int = 0
    stop_reason: str | None = None
    kill_timer: asyncio.TimerHandle | None = None

    @property
    def ref(self) -> Ref:
        return self.launch.ref

    def settle(self, ran: Ran) -> None:
        if self.kill_timer is not None:
            self.kill_timer.cancel()
        if not self.answer.done():
            self.answer.set_result(ran)


@dataclass(slots=True, eq=False)
class ChildProcess:
    """One child as the worker sees it. `given` maps the numbers of unreported orders to their items, oldest first."""

    slot: int
    tokens_read: int
    tokens_write: int
    wire: LoopWire | None = None
    pid: int | None = None
    ready: bool = False
    retiring: bool = False
    given: dict[int, Item] = field(default_factory=dict[int, Item])
    reported: int = 0
    last_report: float = 0.0

    def give(self, orders: list[tuple[Order, Item]]) -> None:
        assert self.wire is not None
        if not self.given:
            self.last_report = time.monotonic()
        self.given.update((order.number, item) for order, item in orders)
        self.wire.send(("orders", [tuple(order) for order, _ in orders]))
        os.write(self.tokens_write, b"".join(TOKEN.pack(order.number) for order, _ in orders))

    def take_back(self) -> list[Item]:
        """The items that the child has not started, and now never will."""
        try:
            data = os.read(self.tokens_read, _PIPE_READ)
        except OSError:  # nothing there
            return []
        numbers = [TOKEN.unpack_from(data, at)[0] for at in range(0, len(data), TOKEN.size)]
        if EXIT_TOKEN in numbers:
            self.retire()  # that one is for the child
        return [self.given.pop(number) for number in numbers if number in self.given]

    def retire(self) -> None:
        self.retiring = True
        with contextlib.suppress(OSError):
            os.write(self.tokens_write, TOKEN.pack(EXIT_TOKEN))

    def kill(self) -> None:
        """The child and what its tasks left running: it leads a process group."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        if self.wire is not None:
            self.wire.close()
        for descriptor in (self.tokens_read, self.tokens_write):
            with contextlib.suppress(OSError):
                os.close(descriptor)


class Nursery:
    """Starts children and tells when one has ended, with its exit code (negative: the signal; None: not known)."""

    def __init__(
        self,
        target: str,
        *,
        on_message: Callable[[ChildProcess, Any], None],
        on_exit: Callable[[ChildProcess, int | None], None],
        on_end: Callable[[], None],
    ) -> None:
        self._target = target
        self._on_message = on_message
        self._on_exit = on_exit
        self._on_end = on_end
        self._forking: deque[ChildProcess] = deque()
        self._by_pid: dict[int, ChildProcess] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._wire: LoopWire | None = None

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        arguments = [
            str(theirs.fileno()),
            self._target,
            str(os.getpid()),
            json.dumps([path for path in sys.path if path]),
        ]
        self._control = ours
        with theirs:
            # On this thread: the kernel ties «die with your parent» to the thread that forked, not to the process.
            self._process = subprocess.Popen(  # noqa: ASYNC220
                [sys.executable, "-c", _START, *arguments],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # it outlives a kill of the worker's group for long enough to end its children
            )
        self._ready: asyncio.Future[str | None] = loop.create_future()
        self._wire = LoopWire(ours, loop, self._hear, self._ended)
        failure = await self._ready
        if failure is not None:
            raise ChildrenFailed(f"children cannot import {self._target!r}:\n{failure}")

    def _hear(self, message: Any) -> None:
        match message:
            case ("ready", None):
                self._ready.set_result(None)
            case ("failed", str(text)):
                self._ready.set_result(text)
            case ("forked", int(pid)):
                child = self._forking.popleft()
                child.pid = pid
                self._by_pid[pid] = child
            case ("exited", int(pid), int(status)):
                child = self._by_pid.pop(pid, None)
                if child is not None:
                    self._gone(child, status)
            case _:
                pass

    def _gone(self, child: ChildProcess, status: int | None) -> None:
        child.kill()
        if child.wire is not None:
            child.wire.drain()
        self._on_exit(child, status)
        child.close()

    def _ended(self) -> None:
        """The forkserver is gone, and the kernel has ended its children with it."""
        if not self._ready.done():
            # Whoever opens it hears that, and decides whether to try again.
            self._ready.set_result("the forkserver ended before it was ready")
            return
        left = [*self._by_pid.values(), *self._forking]
        self._by_pid.clear()
        self._forking.clear()
        for child in left:
            self._gone(child, None)
        self._on_end()

    def start_child(self, config: ChildConfig) -> ChildProcess:
        assert self._control is not None
        ours, theirs = socket.socketpair()
        tokens_read, tokens_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        child = ChildProcess(slot=config.slot, tokens_read=tokens_read, tokens_write=tokens_write)
        with theirs:
            self._forking.append(child)
            with contextlib.suppress(OSError):  # the forkserver is gone; `_ended` hears it too and cleans up
                socket.send_fds(self._control, [encode({"config": config})], [theirs.fileno(), tokens_read])
        child.wire = LoopWire(
            ours,
            asyncio.get_running_loop(),
            lambda message: self._on_message(child, message),
            lambda: self._silent(child),
            pace=lambda: len(child.given) > _MANY,
        )
        return child

    def _silent(self, child: ChildProcess) -> None:
        """The stream ended: the child exits, or its code closed descriptors that are not its own. Both must end it."""
        asyncio.get_running_loop().call_later(0.5, self._end_silent, child)

    def _end_silent(self, child: ChildProcess) -> None:
        if child.pid is not None and self._by_pid.get(child.pid) is child:
            child.kill()

    async def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
        if self._control is not None:
            self._control.close()
        for child in [*self._by_pid.values(), *self._forking]:
            child.kill()
            child.close()
        self._by_pid.clear()
        self._forking.clear()
        if self._process is not None:
            # The end of the socket makes it end its children and itself; while it imports, or could not, it does not
            # listen.
            if not self._ready.done() or self._ready.cancelled() or self._ready.result() is not None:
                self._process.kill()
            await asyncio.to_thread(self._process.wait)
            self._process = None
