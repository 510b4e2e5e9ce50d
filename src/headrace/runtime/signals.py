"""SIGTERM and SIGINT as a wish to stop: the first asks, the second insists."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Generator

STOPPING = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def stop_signals(ask: Callable[[], None], insist: Callable[[], None]) -> Generator[None]:
    """Calls `ask` at the first signal and `insist` at every later one, on the running loop."""
    loop = asyncio.get_running_loop()
    asked = False

    def received() -> None:
        nonlocal asked
        act = insist if asked else ask
        asked = True
        act()

    for number in STOPPING:
        loop.add_signal_handler(number, received)
    try:
        yield
    finally:
        for number in STOPPING:
            loop.remove_signal_handler(number)
