"""`/api/v1/live/…`: server-sent events. The same messages as on the WebSockets; `id` is where to go on from."""

import asyncio
import contextlib
from typing import Annotated, Any, override

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response
from starlette.types import Receive, Send
from starlette.types import Scope as ASGIScope

from headrace.core.accounts import Scope
from headrace.core.errors import HeadraceError
from headrace.server.access import TheApp, permit
from headrace.server.auth.caller import Caller
from headrace.server.live.admission import name_of, read_after, source_of, still_known
from headrace.server.live.hub import Hub
from headrace.server.live.messages import PING_EVENT, Message, Position
from headrace.server.live.pace import FAREWELL
from headrace.server.live.serving import the_hub
from headrace.server.live.sources import Source
from headrace.server.live.watchers import Dropped, Ended, Watcher
from headrace.server.problems import Problem

# Not in the OpenAPI document: it has no word for an answer that never ends, and who tests by it would wait for the end.
router = APIRouter(include_in_schema=False)

MayRead = Annotated[Caller, Depends(permit(Scope.READ))]
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would hold events back
]


class EventStream(Response):
    media_type = "text/event-stream"

    def __init__(
        self, request: Request, hub: Hub, source: Source, after: Position | None, *, caller: str, follow: bool
    ) -> None:
        super().__init__()
        self._request = request
        self._caller = caller
        self._hub = hub
        self._source = source
        self._after = after
        self._follow = follow

    @override
    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        last = await self._watched(receive, send)
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(FAREWELL):
                await send({"type": "http.response.body", "body": last, "more_body": False})

    async def _watched(self, receive: Receive, send: Send) -> bytes:
        """What is said last."""
        try:
            watching = self._hub.watching(self._source, ping=self._hub.pace.comment, caller=self._caller)
            async with watching as watcher:
                listener = asyncio.create_task(_listen(receive, watcher))
                try:
                    async with watcher.sending():
                        await self._send(watcher, send)
                finally:
                    listener.cancel()
        except Dropped:
            return _last_word("dropped")
        except Problem:
            return _last_word("refused")
        except HeadraceError:
            return _last_word("unavailable")
        except (Ended, OSError):
            pass
        return b""

    async def _send(self, watcher: Watcher, send: Send) -> None:
        async def write(body: bytes) -> None:
            await send({"type": "http.response.body", "body": body, "more_body": True})

        async for page in watcher.join(self._after):
            watcher.within(self._hub.pace.stall)
            await write(b"".join(message.event(buffered=True) for message in page))
            watcher.within(None)
        while self._follow:
            while (message := watcher.take()) is not None:
                await write(message.event(buffered=False))
            if watcher.ping_due:
                watcher.ping_due = False
                await still_known(self._request)
                await write(PING_EVENT)
            else:
                await watcher.wait()


def _last_word(kind: str) -> bytes:
    return Message(kind, {}).event(buffered=False)


async def _listen(receive: Receive, watcher: Watcher) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    watcher.end()


After = Annotated[str | None, Query(description="the id of the last event that was seen: go on behind it")]
LastEvent = Annotated[str | None, Header(alias="Last-Event-ID")]
Follow = Annotated[bool, Query(description="false: what is there, and the end")]


def _answer(
    request: Request, caller: Caller, source: Source, after: str | None, last: str | None, follow: bool
) -> EventStream:
    hub, name = the_hub(request), name_of(request, caller)
    hub.check_room(name)  # here it can still be answered with a status
    # A browser that comes back has the old URL, and the newer place in the header.
    return EventStream(request, hub, source, read_after(last or after, source), caller=name, follow=follow)


_RESPONSES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}


@router.get("/live/jobs/{id}/status", response_class=EventStream, responses=_RESPONSES)
async def job_status(
    request: Request, id: str, app: TheApp, caller: MayRead, after: After = None, last: LastEvent = None,
    follow: Follow = True,
) -> EventStream:  # fmt: skip
    """The job after every change of its state or its counts."""
    return _answer(request, caller, await source_of(app, caller, "status", id), after, last, follow)


@router.get("/live/jobs/{id}/logs", response_class=EventStream, responses=_RESPONSES)
async def job_logs(
    request: Request, id: str, app: TheApp, caller: MayRead, after: After = None, last: LastEvent = None,
    follow: Follow = True,
) -> EventStream:  # fmt: skip
    """What the tasks of a job log."""
    return _answer(request, caller, await source_of(app, caller, "logs", id), after, last, follow)


@router.get("/live/tasks/{id}", response_class=EventStream, responses=_RESPONSES)
async def task(
    request: Request, id: str, app: TheApp, caller: MayRead, after: After = None, last: LastEvent = None,
    follow: Follow = True,
) -> EventStream:  # fmt: skip
    """A task: its state, its progress, what it logs and streams."""
    return _answer(request, caller, await source_of(app, caller, "tasks", id), after, last, follow)


@router.get("/live/queues", response_class=EventStream, responses=_RESPONSES)
async def queues(request: Request, app: TheApp, caller: MayRead, follow: Follow = True) -> EventStream:
    """The depths of all queues, at most once a second."""
    return _answer(request, caller, await source_of(app, caller, "queues", ""), None, None, follow)


@router.get("/live/system", response_class=EventStream, responses=_RESPONSES)
async def system(request: Request, app: TheApp, caller: MayRead, follow: Follow = True) -> EventStream:
    """How many tasks are in each state, and workers, at most once a second."""
    return _answer(request, caller, await source_of(app, caller, "system", ""), None, None, follow)


@router.get("/live/overview", response_class=EventStream, responses=_RESPONSES)
async def overview(request: Request, app: TheApp, caller: MayRead, follow: Follow = True) -> EventStream:
    """What the first page shows of this moment, at most once a second."""
    return _answer(request, caller, await source_of(app, caller, "overview", ""), None, None, follow)


@router.get("/live/tasks", response_class=EventStream, responses=_RESPONSES)
async def tasks(request: Request, app: TheApp, caller: MayRead, follow: Follow = True) -> EventStream:
    """The newest task and the last that ended, whenever it is another, at most once a second. A user's own."""
    return _answer(request, caller, await source_of(app, caller, "newest", ""), None, None, follow)
