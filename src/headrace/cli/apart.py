"""What shows or measures the engine runs apart: without the settings of the user's shell, and it cleans up when told to
end."""

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

_PREFIX = "HEADRACE_"
_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def own_settings(**variables: str) -> Generator[None]:
    """Of all HEADRACE_* only these, for the apps made inside and the processes started there."""
    theirs = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(_PREFIX)}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ.update(theirs)


@contextmanager
def ended_like_ctrl_c() -> Generator[None]:
    """SIGTERM and SIGHUP interrupt what is inside, which then cleans up.

    Only the first does: systemd sends both, and a terminal that is closed one to each, which must not break off the
    cleaning. Ctrl-C still insists. A signal that somebody ignores (nohup) or handles stays theirs.
    """
    told = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if not told:
            told = True
            raise KeyboardInterrupt

    here = threading.current_thread() is threading.main_thread()
    ours = [number for number in _ENDING if here and signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def undisturbed() -> Generator[None]:
    """SIGTERM and SIGHUP that come while something is cleaned up come too late to matter: it is about to end."""
    here = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, _nothing) for number in _ENDING} if here else {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _nothing(number: int, frame: FrameType | None) -> None:
    """A handler, not SIG_IGN, which processes started meanwhile would inherit."""
