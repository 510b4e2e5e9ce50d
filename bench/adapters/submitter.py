"""A crowd of HTTP clients on keep-alive connections, each of which waits for its answer before it sends again."""

import asyncio
import json
import time

from bench.adapters import OPTIONS

_CONNECTIONS = 64
_WARM = 5  # requests of each connection before the clock starts


def _request() -> bytes:
    body = json.dumps({"name": "noop", "kwargs": {"sent": 0.0}}).encode()
    head = (
        "POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
    )
    if token := OPTIONS.get("token"):
        head += f"Authorization: Bearer {token}\r\n"
    return head.encode() + b"\r\n" + body


class _Connection(asyncio.Protocol):
    """As little work as an HTTP client can have: what is measured is the server."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._received = bytearray()
        self._answered: asyncio.Future[None] | None = None
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(exc or ConnectionError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._received[:end]).lower()
        length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        if len(self._received) < end + 4 + length or self._answered is None:
            return
        status, self._received = head.split(b" ", 2)[1], self._received[end + 4 + length :]
        answered, self._answered = self._answered, None
        if status == b"201":
            answered.set_result(None)
        else:
            answered.set_exception(RuntimeError(head.decode(errors="replace")))

    async def submit(self) -> None:
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(self._request)  # pyright: ignore[reportAttributeAccessIssue]
        await self._answered


async def submit(n: int) -> dict[str, float]:
    """Answers per second of the whole crowd, and the wait of one, in milliseconds."""
    request, loop, port = _request(), asyncio.get_running_loop(), OPTIONS["port"]
    pairs = [await loop.create_connection(lambda: _Connection(request), "127.0.0.1", port) for _ in range(_CONNECTIONS)]
    connections = [connection for _, connection in pairs]
    waits: list[float] = []

    async def client(connection: _Connection, requests: int, kept: list[float]) -> None:
        for _ in range(requests):
            sent = time.perf_counter()
            await connection.submit()
            kept.append((time.perf_counter() - sent) * 1000)

    await asyncio.gather(*(client(each, _WARM, []) for each in connections))
    each = max(1, n // _CONNECTIONS)
    began = time.perf_counter()
    await asyncio.gather(*(client(connection, each, waits) for connection in connections))
    seconds = time.perf_counter() - began
    for transport, _ in pairs:
        transport.close()
    waits.sort()
    return {
        "rate": len(waits) / seconds,
        "p50": waits[len(waits) // 2],
        "p99": waits[int(len(waits) * 0.99)],
        "sent": len(waits) + _WARM * _CONNECTIONS,
    }
