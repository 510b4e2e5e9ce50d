"""Frames over a socket between a worker process and its children: a length, then a pickle.

Both ends are the same code of the same user; nothing else can reach the socket.
"""

import asyncio
import pickle
import socket
import struct
from collections.abc import Callable
from typing import Any

_LENGTH = struct.Struct("<I")
_CHUNK = 256 * 1024
_GATHER = 0.001


def encode(message: Any) -> bytes:
    body = pickle.dumps(message, protocol=5)
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """Bytes in, whole messages out."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        buffer = self._buffer
        buffer += data
        messages: list[Any] = []
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            end = start + _LENGTH.size + length
            if len(buffer) < end:
                break
            messages.append(_decoded(memoryview(buffer)[start + _LENGTH.size : end]))
            start = end
        if start:
            del buffer[:start]
        return messages


def _decoded(body: memoryview) -> Any:
    """One message that cannot be read must not take those around it along: it becomes one that nobody understands."""
    try:
        return pickle.loads(body)
    except Exception as error:
        return ("unreadable", repr(error))
    finally:
        body.release()  # the buffer is cut afterwards


class LoopWire:
    """The worker's end, on its event loop. `drain` reads what is left when the other end is known to be gone."""

    def __init__(
        self,
        connection: socket.socket,
        loop: asyncio.AbstractEventLoop,
        on_message: Callable[[Any], None],
        on_end: Callable[[], None],
        *,
        pace: Callable[[], bool] = lambda: False,
    ) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._loop = loop
        self._on_message = on_message
        self._on_end = on_end
        self._pace = pace
        self._decoder = Decoder()
        self._unsent = bytearray()
        self._open = True
        loop.add_reader(connection.fileno(), self._readable)

    def send(self, message: Any) -> None:
        if not self._open:
            return
        data = encode(message)
        if self._unsent:
            self._unsent += data
            return
        sent = self._try_send(data)
        if sent < len(data) and self._open:
            self._unsent += data[sent:]
            self._loop.add_writer(self._socket.fileno(), self._writable)

    def _try_send(self, data: bytes | bytearray) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:  # the other end is gone; its death is seen by the reader
            return len(data)

    def _writable(self) -> None:
        del self._unsent[: self._try_send(self._unsent)]
        if not self._unsent:
            self._loop.remove_writer(self._socket.fileno())

    def _readable(self) -> None:
        if not self._read():
            self.close()
            self._on_end()
        elif self._pace() and self._open:
            # Many reports are coming: let them gather for a moment, rather than wake up for each.
            self._loop.remove_reader(self._socket.fileno())
            self._loop.call_later(_GATHER, self._resume)

    def _resume(self) -> None:
        if self._open:
            self._loop.add_reader(self._socket.fileno(), self._readable)

    def _read(self) -> bool:
        """False at the end of the stream."""
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._take(data)
        return bool(data)

    def _take(self, data: bytes) -> None:
        for message in self._decoder.feed(data):
            try:
                self._on_message(message)
            except Exception as error:
                # The report of an attempt may come next: it must be heard.
                what = {"message": "a message from a child could not be taken in", "exception": error}
                self._loop.call_exception_handler(what)

    def drain(self) -> None:
        self._open = self._open and self._socket.fileno() >= 0
        while self._open:
            try:
                data = self._socket.recv(_CHUNK)
            except OSError:
                return
            if not data:
                return
            self._take(data)

    def close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
