"""One start of the user's code below a reloader: a supervisor of its own, from its first line to its last task."""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Sequence

from headrace.worker.handover import BEGIN, CAN_BEGIN, LEFT

_KILL_AFTER = 10.0


class Generation:
    """`ready`, `left` and `ended` are set as it comes so far; `code` is its exit code then."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.ready, self.left, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.code: int | None = None
        self.started = time.monotonic()
        self._process = process
        self._writer = writer
        self._told = False
        self._parts = [asyncio.create_task(self._hear(reader)), asyncio.create_task(self._wait())]

    @classmethod
    async def start(cls, command: Sequence[str], *, number: int) -> "Generation":
        """`command` with `--reload-channel`, on the main thread: the kernel ties its life to the thread that forked."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *command,
                "--reload-channel",
                f"{os.getpid()},{theirs.fileno()},{number}",
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C is for the reloader alone
                # Bytecode is taken for fresh if the time (in whole seconds) and the size of its source are what they
                # were: of two saves within a second the first would be run.
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            )
        return cls(process, *await asyncio.open_connection(sock=ours))

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while word := (await reader.readline()).decode().strip():
                {CAN_BEGIN: self.ready, LEFT: self.left}[word].set()

    async def _wait(self) -> None:
        self.code = await self._process.wait()
        self.left.set()
        self.ended.set()
        self._writer.close()

    def begin(self) -> None:
        self._writer.write(f"{BEGIN}\n".encode())

    def stop(self) -> None:
        """Take no more tasks, end when those that run have ended. Once: a second signal would mean more."""
        if not self._told:
            self._told = True
            self._signal(signal.SIGTERM)

    def stop_now(self) -> None:
        self._told = True
        self._signal(signal.SIGINT)

    async def give_up(self) -> None:
        """End one that has not begun: it holds no task."""
        self.stop()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), _KILL_AFTER)
        self._signal(signal.SIGKILL)
        await self.ended.wait()

    def _signal(self, number: int) -> None:
        if not self.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
