"""Thousands of WebSocket clients in one process of their own: `python -m tests.server.live.crowd`. It reads what to do
from standard input as JSON, {"port", "paths", "last", "patience"}, says `connected` when all of them are, and at the
end what each of them saw: once every one has the message `last`, or its connection was closed, or the time is over.

The frames are read by hand: a client library for each would need more of the machine than the server that is tried.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from typing import Any, override

import orjson

_HANDSHAKE = (
    "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
_AT_ONCE = 50  # connections that are being made


class Client(asyncio.Protocol):
    def __init__(self, path: str, last: int, done: "Countdown") -> None:
        self._path = path
        self._last = last
        self._done = done
        self._buffer = b""
        self._shaken = False
        self.accepted = asyncio.get_running_loop().create_future()
        self.first: int | None = None
        self.count = 0
        self.disorder = 0
        self.seen = -1
        self.code: int | None = None
        self.latest = 0.0  # seconds from the write of a line to its arrival, at worst
        self.latency = 0.0
        self.timed = 0

    @override
    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(_HANDSHAKE.format(self._path).encode())

    @override
    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._shaken:
            head, found, rest = self._buffer.partition(b"\r\n\r\n")
            if not found:
                return
            assert head.startswith(b"HTTP/1.1 101"), head
            self._shaken, self._buffer = True, rest
            self.accepted.set_result(None)
        self._frames()

    def _frames(self) -> None:
        buffer, place = self._buffer, 0
        while len(buffer) - place >= 2:
            opcode, size, body = buffer[place] & 15, buffer[place + 1], place + 2
            if size >= 126:
                wide = 2 if size == 126 else 8
                if len(buffer) - body < wide:
                    break
                size, body = int.from_bytes(buffer[body : body + wide]), body + wide
            if len(buffer) - body < size:
                break
            self._frame(opcode, buffer[body : body + size])
            place = body + size
        self._buffer = buffer[place:]

    def _frame(self, opcode: int, body: bytes) -> None:
        if opcode == 8:
            self.code = int.from_bytes(body[:2])
            self.transport.close()
        elif opcode == 9:  # a ping: its answer, masked with zeros
            self.transport.write(bytes((0x8A, 0x80 | len(body), 0, 0, 0, 0)) + body)
        elif opcode == 1:
            self._message(orjson.loads(body))

    def _message(self, message: dict[str, Any]) -> None:
        if message["type"] != "task_log_message":
            return
        seq = message["seq"]
        if self.first is None:
            self.first = seq
        elif seq != self.seen + 1:
            self.disorder += 1
        self.seen = seq
        self.count += 1
        if not message.get("buffered"):
            late = time.time() - float(message["message"].rpartition(" ")[2])
            self.latest = max(self.latest, late)
            self.latency += late
            self.timed += 1
        if seq == self._last:
            self._done.one()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.accepted.done():
            self.accepted.set_exception(exc or ConnectionError("closed before it was accepted"))
        if self.seen != self._last:
            self._done.one()


class Countdown:
    def __init__(self, n: int) -> None:
        self._left = n
        self.over = asyncio.Event()

    def one(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self.over.set()


async def main() -> None:
    order = json.loads(sys.stdin.readline())
    loop = asyncio.get_running_loop()
    done = Countdown(len(order["paths"]))
    turn = asyncio.Semaphore(_AT_ONCE)

    async def come(path: str) -> Client:
        async with turn:
            _, client = await loop.create_connection(
                lambda: Client(path, order["last"], done), "127.0.0.1", order["port"]
            )
            await client.accepted
            return client

    clients = await asyncio.gather(*map(come, order["paths"]))
    print("connected", flush=True)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(done.over.wait(), order["patience"])
    seen = [
        {"first": c.first, "count": c.count, "seen": c.seen, "disorder": c.disorder, "code": c.code,
         "latest": c.latest, "latency": c.latency / max(1, c.timed)}
        for c in clients
    ]  # fmt: skip
    print(json.dumps(seen), flush=True)
    os._exit(0)  # two thousand farewells are not what is tried here


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())
