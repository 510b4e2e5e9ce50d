"""Starts the interpreter of a worker process, which begins to import at once and waits on its standard input to be told
what to do. It imports almost nothing itself, so that a command can start the process before anything else.
"""

import contextlib
import os
import subprocess
import sys


class Spawned:
    """A process that hears lines. Made on the main thread: the kernel ties its life to the thread that forked it."""

    def __init__(self) -> None:
        self._popen = subprocess.Popen(
            # In a session of its own: a Ctrl-C is for the supervisor alone.
            [sys.executable, "-m", "headrace.worker.process", str(os.getpid())],
            stdin=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            bufsize=0,
        )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        return self._popen.returncode

    def tell(self, line: str) -> None:
        """A few hundred bytes at most in all, which a pipe takes at once. OSError when it is gone."""
        assert self._popen.stdin is not None
        if self._popen.stdin.closed:
            raise BrokenPipeError(f"process {self.pid} has been closed")
        self._popen.stdin.write(f"{line}\n".encode())

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._popen.send_signal(number)

    async def wait(self) -> int:
        import asyncio

        loop = asyncio.get_running_loop()
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # not Linux
            return await asyncio.to_thread(self._popen.wait)
        ended = asyncio.Event()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        return self._popen.wait()

    def close(self) -> None:
        """Nobody will tell it anything any more: it ends by itself, or has been killed."""
        if self._popen.stdin is not None:
            self._popen.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(5.0)


_prepared: list[Spawned] = []


def prepare() -> None:
    """Start the process that the next `take` gives."""
    _prepared.append(Spawned())


def take() -> Spawned:
    return _prepared.pop() if _prepared else Spawned()
