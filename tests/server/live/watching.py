"""Clients: a WebSocket and an event stream, as a program would use them."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

CEILING = 60.0


@asynccontextmanager
async def watching(url: str, path: str, token: str | None = None, **options: Any) -> AsyncGenerator[ClientConnection]:
    headers = {**options.pop("headers", {}), **({} if token is None else {"Authorization": f"Bearer {token}"})}
    address = url.replace("http://", "ws://") + path
    async with connect(address, additional_headers=headers, compression=None, **options) as connection:
        yield connection


async def receive(connection: ClientConnection) -> dict[str, Any]:
    """The next message that is no ping."""
    async with asyncio.timeout(CEILING):
        while True:
            message = json.loads(await connection.recv())
            if message["type"] != "ping":
                return message


async def receive_until(connection: ClientConnection, last: int) -> list[dict[str, Any]]:
    """Everything up to the message with this number."""
    found = [await receive(connection)]
    while found[-1]["seq"] < last:
        found.append(await receive(connection))
    return found


async def closed(connection: ClientConnection, before: list[int] | None = None) -> int | None:
    """The code that it is closed with; the numbers of what comes before go into `before`."""
    async with asyncio.timeout(CEILING):
        try:
            while True:
                message = json.loads(await connection.recv())
                if before is not None and "seq" in message:
                    before.append(message["seq"])
        except ConnectionClosed as error:
            return None if error.rcvd is None else error.rcvd.code


def numbers(messages: list[dict[str, Any]]) -> list[int]:
    return [message["seq"] for message in messages]


@asynccontextmanager
async def streaming(
    url: str, path: str, token: str | None = None, *, last: str | None = None
) -> AsyncGenerator[AsyncGenerator[dict[str, str]]]:
    """Server-sent events as their fields; a comment has the field `comment`."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    headers |= {} if last is None else {"Last-Event-ID": last}
    async with (
        httpx.AsyncClient(base_url=url, headers=headers, timeout=CEILING) as client,
        client.stream("GET", f"/api/v1/live{path}") as response,
    ):
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield _events(response)


async def _events(response: httpx.Response) -> AsyncGenerator[dict[str, str]]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if not line:
            if fields:
                yield fields
            fields = {}
        elif line.startswith(":"):
            fields["comment"] = line[1:].strip()
        else:
            name, _, text = line.partition(": ")
            fields[name] = text
