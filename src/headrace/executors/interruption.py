"""Raising into user code on the main thread, from a signal, and only into the guilty attempt.

Python runs signal handlers on the main thread, inside whatever code was interrupted and in its context: the context
variable says whose code that is. So a signal that arrives while a neighbour runs does nothing, and the watcher repeats
it until the guilty attempt has been interrupted.
"""

import signal
import threading
import time
from types import FrameType

from headrace.core.errors import SoftTimeLimitExceeded
from headrace.executors.context import Context, Control, running
from headrace.executors.invocation import Stopped

SOFT_SIGNAL = signal.SIGUSR1
STOP_SIGNAL = signal.SIGUSR2


class _Shield:
    """While a frame is being written to a pipe nothing may be raised, or the other end would read half a frame."""

    __slots__ = ("depth", "missed")

    def __init__(self) -> None:
        self.depth = 0
        self.missed = False


_shield = _Shield()


class Uninterrupted:
    """On the main thread: what a signal would raise in the block is raised at its end."""

    __slots__ = ("_main",)

    def __init__(self) -> None:
        self._main = threading.main_thread().ident

    def __enter__(self) -> None:
        if threading.get_ident() == self._main:
            _shield.depth += 1

    def __exit__(self, *_: object) -> None:
        if threading.get_ident() != self._main:
            return
        _shield.depth -= 1
        if _shield.missed and not _shield.depth:
            _shield.missed = False
            context = running.get()
            if context is not None:
                _raise_what_is_due(context)


def install_handlers() -> bool:
    """Only the main thread may. Where this gives False the process must not be signalled: it would die."""
    if threading.current_thread() is not threading.main_thread():
        return False
    signal.signal(SOFT_SIGNAL, _on_signal)
    signal.signal(STOP_SIGNAL, _on_signal)
    return True


def _on_signal(_signum: int, _frame: FrameType | None) -> None:
    context = running.get()
    if context is None or not context.control.open:
        return
    if _shield.depth:
        _shield.missed = True
        return
    _raise_what_is_due(context)


def _raise_what_is_due(context: Context) -> None:
    control = context.control
    if not control.open:
        return
    if control.stop_reason is not None and not control.stop_raised:
        control.stop_raised = True
        raise Stopped
    if not control.interrupted and time.monotonic() >= control.soft_at:
        raise soft_limit(control, context.task_id)


def soft_limit(control: Control, task: int) -> SoftTimeLimitExceeded:
    """The exception to raise; from here on the attempt counts as interrupted."""
    control.interrupted = True
    if control.on_interrupted is not None:
        control.on_interrupted()
    return SoftTimeLimitExceeded(f"task {task} reached its soft limit; clean up and return before the hard limit")
