"""What a command says and hears: the worker's ends of its three pipes."""

import asyncio
import os
from contextlib import ExitStack
from typing import override

from headrace.executors.invocation import visible

KEPT_BYTES = 64 * 1024


class Tail:
    """The last bytes of a stream, and how many there were."""

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._kept = kept
        self._data = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self._data += data
        if len(self._data) > 2 * self._kept:
            del self._data[: -self._kept]

    @property
    def text(self) -> str:
        return visible(self._data[-self._kept :].decode("utf-8", "backslashreplace"))


class Stream(asyncio.Protocol):
    def __init__(self) -> None:
        self.tail = Tail()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @override
    def data_received(self, data: bytes) -> None:
        self.tail.add(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


class Output:
    """`open` gives the command's ends away, `connect` listens on the others, `close` may come at any time."""

    def __init__(self) -> None:
        self.stdout, self.stderr = Stream(), Stream()
        self._ours: list[int] = []  # those that no transport owns yet: stdout, stderr, and stdin if there is one
        self._stdin = Stream()
        self._readers: list[asyncio.ReadTransport] = []
        self._writer: asyncio.WriteTransport | None = None

    def open(self, *, stdin: bool) -> tuple[int, int, int]:
        """The ends for the command's stdin, stdout and stderr, to be closed by whom they are given to."""
        with ExitStack() as undo:

            def pipe() -> tuple[int, int]:
                ends = os.pipe()
                for end in ends:
                    undo.callback(os.close, end)
                return ends

            from_command = [pipe(), pipe()]
            ours = [read for read, _ in from_command]
            if stdin:
                theirs, write = pipe()
                ours.append(write)
            else:
                theirs = os.open(os.devnull, os.O_RDONLY)
            undo.pop_all()
        self._ours = ours
        return theirs, from_command[0][1], from_command[1][1]

    async def connect(self, stdin: str | None) -> None:
        loop = asyncio.get_running_loop()
        for stream in (self.stdout, self.stderr):
            pipe = os.fdopen(self._ours.pop(0), "rb", 0)
            reader, _ = await loop.connect_read_pipe(lambda stream=stream: stream, pipe)
            self._readers.append(reader)
        if stdin is not None:
            pipe = os.fdopen(self._ours.pop(0), "wb", 0)
            self._writer, _ = await loop.connect_write_pipe(lambda: self._stdin, pipe)
            self._writer.write(stdin.encode("utf-8", "surrogateescape"))
            self._writer.write_eof()

    async def closed(self, timeout: float) -> None:
        """Everyone who inherited the command's ends has closed them, or that takes too long."""
        await asyncio.wait([self.stdout.closed, self.stderr.closed], timeout=timeout)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
        if self._writer is not None and not self._stdin.closed.done():
            self._writer.abort()  # nobody will read the rest of it
        while self._ours:
            os.close(self._ours.pop())
