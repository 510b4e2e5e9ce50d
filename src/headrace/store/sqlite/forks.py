"""A fork waits for the moment between two transactions."""

import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

# A fork copies SQLite's idea of which locks this process holds. Made in the middle of a transaction it would leave the
# child with a write lock that nobody ever releases, and the child would hold everybody's turn while it waits for it. So
# a fork waits for the moment between two transactions, but not for ever: one that waits for a user's own transaction
# holds no lock yet, and that user may be the one who forks.
_PATIENCE = 2.0
_BETWEEN: set[threading.Lock] = set()
_STILL: dict[int, list[threading.Lock]] = {}


def _before_fork() -> None:
    until = time.monotonic() + _PATIENCE
    _STILL[threading.get_ident()] = [
        lock for lock in list(_BETWEEN) if lock.acquire(timeout=max(0.0, until - time.monotonic()))
    ]


def _after_fork() -> None:
    for lock in _STILL.pop(threading.get_ident(), ()):
        lock.release()


def _after_fork_in_child() -> None:
    _STILL.clear()
    _BETWEEN.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


@contextmanager
def forks_wait_for(between: threading.Lock) -> Generator[None]:
    """While this lasts, whoever forks waits until the lock is free; it is held while SQLite is at work."""
    _BETWEEN.add(between)
    try:
        yield
    finally:
        _BETWEEN.discard(between)
