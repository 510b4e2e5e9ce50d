"""One async core, two faces.

All work with the store happens on one background event loop of this process, whatever thread or loop asked for it: one
store, one pool of connections, and callers on different threads share a commit. Public methods are written once, as
coroutines that await nothing but `on_store` (or the user's own async connection); `sync_form` makes the blocking face
by running that same coroutine on the caller's thread, so that user code (key functions, middleware, context variables)
is always met where the caller is.
"""

import asyncio
import atexit
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from functools import wraps
from typing import Any, Concatenate, cast

from headrace.core.errors import RunningLoop

# Name of the method whose blocking face runs on this thread; None in async code.
_blocking: ContextVar[str | None] = ContextVar("headrace_blocking", default=None)


class Bridge:
    """A background loop, started when it is first needed, once per process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self.forks = 0  # that led from the process that imported this to the one we are in
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closers: list[Callable[[], Coroutine[Any, Any, None]]] = []
        # Loops of the parent process after a fork. They are kept, because destroying one would touch the parent's
        # epoll and sockets, which a fork shares.
        self._abandoned: list[object] = []

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is not None and self._pid == os.getpid():
            return self._loop
        with self._lock:
            if self._pid != os.getpid():
                if self._loop is not None:
                    self._abandoned.append(self._loop)
                self._loop = self._start()
                self._pid = os.getpid()
            assert self._loop is not None
            return self._loop

    @property
    def running(self) -> bool:
        """In this process."""
        return self._loop is not None and self._pid == os.getpid()

    def submit[T](self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def at_exit(self, closer: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this on the loop when the interpreter ends."""
        self._closers.append(closer)

    def stop_at_exit(self) -> None:
        if not self.running:
            return
        for closer in self._closers:
            try:
                self.submit(closer()).result(timeout=5)
            except Exception:  # the process ends, and what is committed is committed
                continue

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = _new_loop()
        threading.Thread(target=_run, args=(loop,), name="headrace-client", daemon=True).start()
        return loop

    def after_fork(self) -> None:
        # Another thread may have held the lock at the moment of the fork; here it is nobody's.
        self._lock = threading.Lock()
        self.forks += 1


def _new_loop() -> asyncio.AbstractEventLoop:
    """Faster by a quarter per call where uvloop is installed (the extra `fast`)."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


BRIDGE = Bridge()
os.register_at_fork(after_in_child=BRIDGE.after_fork)
atexit.register(BRIDGE.stop_at_exit)


async def on_store[T](work: Callable[[], Coroutine[Any, Any, T]], *, may_block: bool = False) -> T:
    """Run `work()` on the background loop and wait for it, blocking the thread when a blocking face asked.

    A thread that runs an event loop is not blocked, unless `may_block` says that it is a moment at most.
    """
    if not must_block(even_a_loop=may_block):
        if running_loop() is BRIDGE.loop:
            return await work()
        return await asyncio.wrap_future(BRIDGE.submit(work()))
    future = BRIDGE.submit(work())
    try:
        return future.result()
    except BaseException:
        future.cancel()  # Ctrl-C while waiting: nobody wants the answer any more
        raise


def must_block(*, even_a_loop: bool = False) -> bool:
    """Whether a blocking face is at work on this thread. RunningLoop when it would stop an event loop."""
    caller = _blocking.get()
    if caller is None:
        return False
    if not even_a_loop and running_loop() is not None:
        raise RunningLoop(
            f"{caller.removeprefix('a')}() would block this thread, which runs an event loop: use `await {caller}()`"
        )
    return True


def refuse_blocking(what: str) -> None:
    """RunningLoop where a blocking face is at work: `what` can only be awaited."""
    caller = _blocking.get()
    if caller is not None:
        raise RunningLoop(f"{what} needs the async form: use `await {caller}()`")


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def sync_form[S, **P, R](method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[S, P], R]:
    """The blocking face of an async method whose name starts with `a`."""
    name = method.__name__

    @wraps(method)
    def call(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
        return run_blocking(name, method(self, *args, **kwargs))

    call.__name__ = name.removeprefix("a").removesuffix("_")
    call.__qualname__ = f"{method.__qualname__.rpartition('.')[0]}.{call.__name__}"
    call.__doc__ = method.__doc__
    cast("Any", call).async_form = name
    return call


def run_blocking[R](name: str, work: Coroutine[Any, Any, R]) -> R:
    """Drive a coroutine that never suspends: in this mode everything it awaits blocks instead."""
    token = _blocking.set(name)
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    finally:
        _blocking.reset(token)
        work.close()
    raise RunningLoop(f"an async connection needs the async form: use `await {name}()`")
