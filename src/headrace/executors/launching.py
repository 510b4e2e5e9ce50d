"""The worker's side of the launcher: it starts it with the first command, and hears how each command goes."""

import asyncio
import contextlib
import itertools
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.executors.wire import LoopWire
from headrace.runtime import parents

_LENGTH = struct.Struct("<I")
_LAUNCHER = Path(__file__).with_name("launcher.py")
_RUNTIME = Path(parents.__file__).parent


@dataclass(slots=True, eq=False)
class Launched:
    """A command that was asked for. `exited` holds its code; it leads a group of its own number."""

    started: asyncio.Future[int]
    exited: asyncio.Future[int]
    pid: int | None = None

    def signal_group(self, number: int) -> None:
        if self.pid is not None and not self.exited.done():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


class Launching:
    """Commands by way of one launcher process, which is replaced when it dies."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._launched: dict[int, Launched] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._wire: LoopWire | None = None
        self._turn = asyncio.Lock()
        self._writing: asyncio.Future[None] | None = None

    async def launch(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None, descriptors: Sequence[int]
    ) -> Launched:
        """Start `argv` with these as stdin, stdout and stderr, which are closed here.

        Raises OSError or ValueError where the program cannot be started.
        """
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        launched = Launched(loop.create_future(), loop.create_future())
        self._launched[number] = launched
        request = (number, list(argv), dict(env), _absolute(cwd))
        # To its end, whoever is cancelled meanwhile: half a request would spoil those after it.
        sending = asyncio.ensure_future(self._send(request, descriptors))
        try:
            await asyncio.shield(sending)
            await launched.started
        except asyncio.CancelledError:
            launched.started.cancel()  # should it start nevertheless, `_hear` ends it
            raise
        return launched

    async def _send(self, request: tuple[Any, ...], descriptors: Sequence[int]) -> None:
        try:
            body = pickle.dumps(request, protocol=5)
            async with self._turn:
                control = self._control or self._start()
                while True:
                    try:
                        socket.send_fds(control, [_LENGTH.pack(len(body))], list(descriptors))
                        break
                    except BlockingIOError:
                        await asyncio.sleep(0.01)
                self._writing = asyncio.ensure_future(asyncio.get_running_loop().sock_sendall(control, body))
                await self._writing
        except (OSError, asyncio.CancelledError) as error:
            launched = self._launched.pop(request[0], None)
            if launched is not None and not launched.started.done():
                launched.started.set_exception(error if isinstance(error, OSError) else _died())
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(_LAUNCHER), str(theirs.fileno()), str(_RUNTIME)],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
        except OSError:
            ours.close()
            raise
        self._control = ours
        self._wire = LoopWire(ours, asyncio.get_running_loop(), self._hear, self._ended)
        return ours

    def _hear(self, message: Any) -> None:
        match message:
            case ("started", int(number), int(pid)):
                launched = self._launched[number]
                launched.pid = pid
                if launched.started.cancelled():
                    launched.signal_group(signal.SIGKILL)
                else:
                    launched.started.set_result(pid)
            case ("refused", int(number), Exception() as error):
                launched = self._launched.pop(number)
                if not launched.started.done():
                    launched.started.set_exception(error)
            case ("exited", int(number), int(code)):
                self._launched.pop(number).exited.set_result(code)
            case _:
                pass

    def _ended(self) -> None:
        """The launcher was killed. The kernel ended its commands, and here ends what those had started."""
        if self._writing is not None:
            self._writing.cancel()  # its wire is closed: nobody else would tell who waits to write
        self._control = self._wire = None
        process, self._process = self._process, None
        left, self._launched = list(self._launched.values()), {}
        for launched in left:
            launched.signal_group(signal.SIGKILL)
            if not launched.started.done():
                launched.started.set_exception(_died())
            launched.exited.set_result(-signal.SIGKILL)
        if process is not None:
            process.kill()
            process.wait()

    async def close(self) -> None:
        """Whatever still runs is ended by the launcher, which hears the end of its socket."""
        if self._wire is not None:
            self._wire.close()
        self._control = self._wire = None
        process, self._process = self._process, None
        if process is not None:
            await asyncio.to_thread(process.wait)


def _died() -> ConnectionError:
    return ConnectionError("the process that starts commands has died")


def _absolute(cwd: str | None) -> str | None:
    """As seen from here: the launcher stays where the worker was when it started it."""
    try:
        return os.path.join(os.getcwd(), cwd or "")
    except OSError:
        return cwd
