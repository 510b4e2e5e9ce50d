"""`/ws/…`: WebSockets. What is refused is accepted first and then closed, so that a browser sees the code."""

import asyncio
import contextlib
import logging
from enum import IntEnum

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from headrace.core.errors import HeadraceError
from headrace.server.access import the_app
from headrace.server.live.admission import (
    caller_of,
    name_of,
    read_after,
    read_ping,
    source_of,
    still_known,
    subprotocol,
)
from headrace.server.live.messages import PING, Position
from headrace.server.live.pace import FAREWELL
from headrace.server.live.serving import the_hub
from headrace.server.live.watchers import Dropped, Ended, Watcher
from headrace.server.problems import Problem

router = APIRouter()
_LOG = logging.getLogger("headrace.live")
_LONGEST_REASON = 60  # characters: a close frame takes 123 bytes


class Close(IntEnum):
    MALFORMED = 4400
    NOT_AUTHENTICATED = 4401
    NO_ACCESS = 4403
    NOT_FOUND = 4404
    TOO_SLOW = 4408
    TOO_MANY = 4429
    RESTARTING = 1012
    TRY_AGAIN = 1013


_CODES = {
    422: Close.MALFORMED,
    401: Close.NOT_AUTHENTICATED,
    403: Close.NO_ACCESS,
    404: Close.NOT_FOUND,
    429: Close.TOO_MANY,
}


@router.websocket("/ws/job/{id}/status/")
async def job_status(websocket: WebSocket, id: str) -> None:
    await _serve(websocket, "status", id)


@router.websocket("/ws/job/{id}/logs/")
async def job_logs(websocket: WebSocket, id: str) -> None:
    await _serve(websocket, "logs", id)


@router.websocket("/ws/task/{id}/")
async def task(websocket: WebSocket, id: str) -> None:
    await _serve(websocket, "tasks", id)


@router.websocket("/ws/queues/")
async def queues(websocket: WebSocket) -> None:
    await _serve(websocket, "queues", "")


@router.websocket("/ws/system/")
async def system(websocket: WebSocket) -> None:
    await _serve(websocket, "system", "")


@router.websocket("/ws/overview/")
async def overview(websocket: WebSocket) -> None:
    await _serve(websocket, "overview", "")


@router.websocket("/ws/tasks/")
async def tasks(websocket: WebSocket) -> None:
    await _serve(websocket, "newest", "")


async def _serve(websocket: WebSocket, kind: str, id: str) -> None:
    await websocket.accept(subprotocol=subprotocol(websocket))
    # Whoever is gone needs no last word, and one that does not read is not waited for.
    with contextlib.suppress(WebSocketDisconnect, OSError):
        code, reason = await _watched(websocket, kind, id)
        with contextlib.suppress(RuntimeError, TimeoutError):
            async with asyncio.timeout(FAREWELL):
                await websocket.close(code, reason[:_LONGEST_REASON])


async def _watched(websocket: WebSocket, kind: str, id: str) -> tuple[int, str]:
    """Why it is over."""
    try:
        caller = await caller_of(websocket)
        source = await source_of(await the_app(websocket), caller, kind, id)
        after, hub = read_after(websocket.query_params.get("after"), source), the_hub(websocket)
        ping = read_ping(websocket.query_params.get("ping"), hub.pace)
        async with hub.watching(source, ping=ping, caller=name_of(websocket, caller)) as watcher:
            listener = asyncio.create_task(_listen(websocket, watcher))
            try:
                async with watcher.sending():
                    await _send(websocket, watcher, after, stall=hub.pace.stall)
            finally:
                listener.cancel()
    except Problem as problem:
        return _CODES.get(problem.status, Close.TRY_AGAIN), problem.detail or problem.title
    except Dropped:
        return Close.TOO_SLOW, "too slow: go on with ?after=<last seq>"
    except Ended:
        return Close.RESTARTING, "server stops: go on with ?after=<last seq>"
    except HeadraceError as error:
        _LOG.warning("live updates: %s", error)
        return Close.TRY_AGAIN, "the database does not answer"
    return 1000, ""


async def _send(websocket: WebSocket, watcher: Watcher, after: Position | None, *, stall: float) -> None:
    send = websocket.send_text
    async for page in watcher.join(after):
        watcher.within(stall)
        for message in page:
            await send(message.buffered)
        watcher.within(None)
    while True:
        while (message := watcher.take()) is not None:
            await send(message.text)
        if watcher.ping_due:
            watcher.ping_due = False
            await still_known(websocket)
            await send(PING)
        else:
            await watcher.wait()


async def _listen(websocket: WebSocket, watcher: Watcher) -> None:
    """Nothing that a client says matters, only that it is there."""
    try:
        while True:
            if (await websocket.receive())["type"] == "websocket.disconnect":
                break
    finally:
        watcher.end()
