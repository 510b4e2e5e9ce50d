"""A small process that starts a worker's commands and ends them with it.

`python -I -S launcher.py <descriptor> <folder of headrace.runtime>`

It is the parent of every command and lives in a session of its own, so that neither kill -9 of the worker process nor
of its whole group ends it; the end of the worker's socket tells it, and it kills each command's group. Being the
parent, it kills before it reaps: a number in its hands is never somebody else's.

It knows nothing of Headrace: beside the standard library it imports one file, because commands wait for its start.

Requests: (number, argv, env, cwd) with three descriptors (stdin, stdout, stderr).
Reports: ("started", number, pid) | ("refused", number, OSError or ValueError), then ("exited", number, code).
"""

import array
import contextlib
import importlib
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable

_DESCRIPTORS = 3
_LENGTH = struct.Struct("<I")

type Request = tuple[int, list[str], dict[str, str], str | None]


def _ignore(*_: object) -> None:
    pass


class Launcher:
    def __init__(self, control: socket.socket, die_with_parent: Callable[[int], None]) -> None:
        self._control = control
        self._die_with_parent = die_with_parent
        self._pid = os.getpid()
        self._commands: dict[int, tuple[int, subprocess.Popen[bytes]]] = {}  # by pid
        self._received = bytearray()
        self._descriptors = array.array("i")

    def serve(self) -> None:
        # A service manager's TERM goes to everybody; the worker decides what it means. Not SIG_IGN, which commands
        # would inherit.
        signal.signal(signal.SIGTERM, _ignore)
        signal.signal(signal.SIGINT, _ignore)
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        # `poll`, because `select` takes no descriptor above 1023, and the worker may hold as many.
        waits = select.poll()
        waits.register(self._control, select.POLLIN)
        waits.register(wake_read, select.POLLIN)
        try:
            while True:
                readable = {descriptor for descriptor, _ in waits.poll()}
                if wake_read in readable:
                    os.read(wake_read, 4096)
                self._reap()
                if self._control.fileno() in readable and not self._hear():
                    return
        except OSError:  # nobody listens any more
            return
        finally:
            for pid in self._commands:
                _end_group(pid)

    def _hear(self) -> bool:
        """False at the end of the stream: the worker is gone."""
        data, ancillary, _, _ = self._control.recvmsg(256 * 1024, socket.CMSG_SPACE(4096))
        for level, kind, body in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self._descriptors.frombytes(body[: len(body) - len(body) % self._descriptors.itemsize])
        self._received += data
        while len(self._received) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._received)[0]
            if len(self._received) < end:
                break
            request: Request = pickle.loads(self._received[_LENGTH.size : end])
            del self._received[:end]
            self._launch(request)
        return bool(data)

    def _launch(self, request: Request) -> None:
        number, argv, env, cwd = request
        taken = self._descriptors[:_DESCRIPTORS]
        del self._descriptors[:_DESCRIPTORS]
        try:
            # preexec_fn is safe here: this process has one thread.
            process = subprocess.Popen(
                argv,
                env=env,
                cwd=cwd,
                stdin=taken[0],
                stdout=taken[1],
                stderr=taken[2],
                start_new_session=True,
                preexec_fn=self._die_with_launcher,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            refused = error if isinstance(error, OSError | ValueError) else OSError(str(error))
            self._report(("refused", number, refused))
        else:
            self._commands[process.pid] = number, process
            self._report(("started", number, process.pid))
        finally:
            for descriptor in taken:
                os.close(descriptor)

    def _die_with_launcher(self) -> None:
        """Should this process be killed too, at least the command itself ends with it."""
        self._die_with_parent(self._pid)

    def _reap(self) -> None:
        for pid, (number, process) in list(self._commands.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                # What it left behind in its group would hold the pipes open and outlive the attempt.
                _end_group(pid)
                del self._commands[pid]
                self._report(("exited", number, process.wait()))

    def _report(self, message: tuple[object, ...]) -> None:
        body = pickle.dumps(message, protocol=5)
        self._control.sendall(_LENGTH.pack(len(body)) + body)


def _end_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    sys.path.insert(0, sys.argv[2])
    Launcher(control, importlib.import_module("parents").die_with_parent).serve()
    os._exit(0)  # at once, without an orderly end that nobody waits for
