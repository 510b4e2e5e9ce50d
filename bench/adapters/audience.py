"""WebSocket clients of a server, all in one process: each follows the log of a job, and does nothing with it."""

import asyncio
import signal
import time
from typing import Any

from bench.adapters import OPTIONS

_HANDSHAKE = (
    "GET /ws/job/{}/logs/ HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
_AT_ONCE = 50  # connections that are being made
_TEXT, _CLOSE, _PING = 1, 8, 9


class _Watcher(asyncio.Protocol):
    """As little work as a client can have: it counts frames, and answers pings."""

    def __init__(self, job: int) -> None:
        self._job = job
        self._received = bytearray()
        self._shaken = False
        self.accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.messages = 0
        self.lost = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(_HANDSHAKE.format(self._job).encode())

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        if not self._shaken:
            end = received.find(b"\r\n\r\n")
            if end < 0:
                return
            if not received.startswith(b"HTTP/1.1 101"):
                raise RuntimeError(bytes(received[:end]).decode(errors="replace"))
            del received[: end + 4]
            self._shaken = True
            self.accepted.set_result(None)
        place = 0
        while (frame := _frame(received, place)) is not None:
            opcode, body, place = frame
            self._take(opcode, received[body:place])
        del received[:place]

    def _take(self, opcode: int, body: bytearray) -> None:
        if opcode == _TEXT:
            self.messages += 1
        elif opcode == _PING:  # its answer, masked with zeros
            self._transport.write(bytes((0x8A, 0x80 | len(body), 0, 0, 0, 0)) + body)
        elif opcode == _CLOSE:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if not self.accepted.done():
            self.accepted.set_exception(exc or ConnectionError("closed before it was accepted"))


def _frame(received: bytearray, place: int) -> tuple[int, int, int] | None:
    """Its kind, where its content begins and where it ends; None while it is not all here."""
    if len(received) - place < 2:
        return None
    size, body = received[place + 1], place + 2
    if size >= 126:
        wide = 2 if size == 126 else 8
        if len(received) - body < wide:
            return None
        size, body = int.from_bytes(received[body : body + wide]), body + wide
    return None if len(received) - body < size else (received[place] & 15, body, body + size)


async def watch() -> dict[str, float]:
    """Until it is told to stop: messages a second, seconds of CPU a second, and how many clients were sent away."""
    stop, loop, turn = asyncio.Event(), asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    jobs: list[int] = OPTIONS["jobs"]

    async def come(number: int) -> _Watcher:
        async with turn:
            job = jobs[number % len(jobs)]
            _, watcher = await loop.create_connection(lambda: _Watcher(job), "127.0.0.1", OPTIONS["port"])
            await watcher.accepted
            return watcher

    watchers = await asyncio.gather(*map(come, range(OPTIONS["clients"])))
    print("ready", flush=True)
    began, cpu, before = time.monotonic(), time.process_time(), sum(each.messages for each in watchers)
    await stop.wait()
    seconds = time.monotonic() - began
    return {
        "messages": (sum(each.messages for each in watchers) - before) / seconds,
        "cpu": (time.process_time() - cpu) / seconds,
        "lost": sum(each.lost for each in watchers),
    }
