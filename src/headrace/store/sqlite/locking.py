"""Whose turn it is to write: two lock files beside the database.

With SQLite's busy timeout alone one of eight processes got one transaction in five seconds. A batch takes the turn and
then the lock; a heartbeat takes only the lock, so it competes with one holder and not with the queue of batches.
The kernel keeps the queue and frees the locks of the dead.
"""

import fcntl
import os
import struct
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager

# flock wakes whoever waits, but the one who released is already running and would take the lock again at once.
_PAUSE = 0.001
_RECENTLY = 1.0
_INSTANT = struct.Struct("=d")


class _LockFile:
    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        _LOCK_FILES.add(self)

    def acquire(self) -> bool:
        """Wait for the lock; True when it had to wait."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.note_waiting()
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            return True
        return False

    def release(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    # The note is an instant of the machine's monotonic clock: it grows old by itself when the waiter died.
    def note_waiting(self) -> None:
        os.pwrite(self.descriptor, _INSTANT.pack(time.monotonic()), 0)

    def somebody_waited(self) -> bool:
        note = os.pread(self.descriptor, _INSTANT.size, 0)
        return len(note) == _INSTANT.size and 0 <= time.monotonic() - _INSTANT.unpack(note)[0] < _RECENTLY

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


_LOCK_FILES: weakref.WeakSet[_LockFile] = weakref.WeakSet()


def _close_in_child() -> None:
    # A forked child shares the lock itself: kept open, it would hold it after its parent was killed.
    for lock in list(_LOCK_FILES):
        lock.close()


os.register_at_fork(after_in_child=_close_in_child)


class Turns:
    """The write lock between processes (and between stores of one process)."""

    def __init__(self, path: str) -> None:
        self._turn = _LockFile(f"{path}-turn")
        self._lock = _LockFile(f"{path}-lock")
        self._released_at = 0.0

    @contextmanager
    def taken(self, *, urgent: bool = False) -> Generator[None]:
        """Hold the write lock; `urgent` skips the queue of batches."""
        if not urgent:
            self._let_others_pass()
            self._turn.acquire()
        try:
            self._lock.acquire()
            try:
                yield
            finally:
                self._lock.release()
        finally:
            if not urgent:
                self._turn.release()
                self._released_at = time.monotonic()

    def _let_others_pass(self) -> None:
        remaining = self._released_at + _PAUSE - time.monotonic()
        if remaining > 0 and self._turn.somebody_waited():
            time.sleep(remaining)

    def close(self) -> None:
        self._turn.close()
        self._lock.close()
