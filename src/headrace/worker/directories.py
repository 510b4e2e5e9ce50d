"""The directory of a supervisor's shared memory and sockets, and the removal of those that a kill -9 left behind.

Whoever owns one holds a lock on a file in it, which the kernel lets go with the process, however it ends. A directory
whose lock can be taken is garbage; one without the file is not ours.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

PREFIX = "headrace-"
_LOCK = "owner"
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS)


@contextlib.contextmanager
def private_directory() -> Generator[Path]:
    remove_forgotten()
    while True:
        with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
            path = Path(name)
            with _locked(path / _LOCK, os.O_CREAT, without_locks=True) as owned:
                if owned:
                    yield path
                    return
        # Someone who cleans up came between the file and its lock: take another.


def remove_forgotten() -> None:
    """Those of this user whose owner is gone."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.is_symlink() or path.stat().st_uid != os.geteuid():
                continue
            with _locked(path / _LOCK) as owned:
                if owned:
                    shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path, flags: int = 0, *, without_locks: bool = False) -> Generator[bool]:
    """Whether the lock was to be had, and the file is still there; `without_locks` where the file system has none."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    except FileNotFoundError:
        yield False
        return
    try:
        yield _lock(descriptor, path, without_locks=without_locks)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, *, without_locks: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        # Nobody can lock it, so nobody takes it for garbage: its owner may use it, and what a kill leaves stays there.
        return without_locks
