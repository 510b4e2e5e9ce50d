"""A page of metrics over HTTP, and nothing else: GET /metrics."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from http import HTTPStatus

from headrace.core.errors import SettingsError

_PATIENCE = 10.0
_LONGEST_LINE = 8192
_MOST_LINES = 100


@contextlib.asynccontextmanager
async def serve(
    render: Callable[[], bytes], *, content_type: str, host: str, port: int, share: bool = False
) -> AsyncGenerator[str]:
    """Yields the address of the page. Port 0 takes a free one; `share` lets another process have the same."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_PATIENCE):
                writer.write(_response(await _request(reader), render, content_type))
                await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    try:
        server = await asyncio.start_server(answer, host, port, limit=_LONGEST_LINE, reuse_port=share or None)
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"metrics cannot be served on {host} port {port}: {error}; "
            "choose another --metrics-port, or 0 for a free one"
        ) from error
    async with server:
        taken = server.sockets[0].getsockname()
        shown = f"[{taken[0]}]" if ":" in taken[0] else taken[0]
        yield f"http://{shown}:{taken[1]}/metrics"


async def _request(reader: asyncio.StreamReader) -> tuple[str, str]:
    """Method and path; the rest of the head is read and forgotten."""
    method, path, _ = (await reader.readline()).decode("latin-1").split(" ", 2)
    for _ in range(_MOST_LINES):
        if (await reader.readline()).strip() == b"":
            return method, path.partition("?")[0]
    raise ValueError("too many lines")


def _response(request: tuple[str, str], render: Callable[[], bytes], content_type: str) -> bytes:
    method, path = request
    status, body = HTTPStatus.OK, b""
    if path != "/metrics":
        status, body, content_type = HTTPStatus.NOT_FOUND, b"only /metrics is here\n", "text/plain; charset=utf-8"
    elif method not in ("GET", "HEAD"):
        status, content_type = HTTPStatus.METHOD_NOT_ALLOWED, "text/plain; charset=utf-8"
    else:
        body = render()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if method == "HEAD" else body)
