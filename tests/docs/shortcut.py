"""`headrace` for the pages without the half second of imports: one process imports them, and forks for each command.

    python shortcut.py serve SOCKET            imports, then forks a process for each that asks
    python -S -E shortcut.py ask SOCKET WORD…  runs `headrace WORD…` there, with this process's files and variables

What runs is `headrace.cli.main` in a process of its own; only its modules were imported before. Commands that serve or
watch, which are told to stop by signals, are run without this.
"""

import array
import json
import os
import select
import signal
import socket
import struct
import sys

_LENGTH = struct.Struct("!I")


def ask(path: str, words: list[str]) -> int:
    request = json.dumps({"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}).encode()
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(path)
        files = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
        channel.sendmsg([_LENGTH.pack(len(request))], files)
        channel.sendall(request)
        answer = channel.recv(1)
    return answer[0] if answer else 70


def serve(path: str) -> None:
    from headrace.cli.root import application  # and with it nearly all that a command needs
    from headrace.client import engine  # noqa: F401
    from headrace.store.sqlite import store  # noqa: F401

    assert application
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:  # whoever started this is gone, however it ended
                return
            channel, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _attend(channel)
            channel.close()


def _attend(channel: socket.socket) -> None:
    """Fork once more, and tell how it ended."""
    code = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        head, files, _, _ = socket.recv_fds(channel, _LENGTH.size, 3)
        wanted = _LENGTH.unpack(head)[0]
        body = b""
        while len(body) < wanted:
            body += channel.recv(wanted - len(body))
        request = json.loads(body)
        child = os.fork()
        if child == 0:
            channel.close()
            _become(request, files)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF
        channel.sendall(bytes([code]))
    finally:
        os._exit(0)


def _become(request: dict, files: list[int]) -> None:
    code = 70
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = ["headrace", *request["words"]]
        sys.path[0] = request["folder"]
        from headrace.cli import main

        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:
            import traceback

            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(ask(sys.argv[2], sys.argv[3:]))
