"""How one supervisor takes over from another when code is reloaded: the words between it and the reloader.

`can begin`: its processes have the new code and could take tasks. `begin`: the one before takes none any more, start.
`left`: told to stop, it starts nothing any more; what runs still ends. One word a line, over one socket.
"""

import asyncio
import os
import socket
from collections.abc import Callable

CAN_BEGIN, BEGIN, LEFT = "can begin", "begin", "left"


class Handover:
    """The supervisor's end."""

    def __init__(self, descriptor: int, *, number: int = 1) -> None:
        self.number = number  # 1 is the first that the reloader started
        os.set_inheritable(descriptor, False)
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.begun = asyncio.Event()

    def open(self, gone: Callable[[], None]) -> None:
        """Listen on the running loop; `gone` is called when the reloader has ended, where the kernel ends nobody."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._hear, gone)

    def _hear(self, gone: Callable[[], None]) -> None:
        try:
            words = self._socket.recv(1024)
        except BlockingIOError:
            return
        except OSError:
            words = b""
        if not words:
            self.close()
            gone()
        else:
            self.begun.set()

    def say(self, word: str) -> None:
        try:
            self._socket.send(f"{word}\n".encode())
        except OSError:  # nobody listens any more; its end is heard by whoever reads
            return

    def close(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._socket)
            self._loop = None
