"""Who may watch what: the same answer for a WebSocket and an event stream."""

import math
from contextlib import suppress
from uuid import UUID

from fastapi import WebSocket
from fastapi.requests import HTTPConnection

from headrace.app import App
from headrace.core.accounts import Scope
from headrace.core.errors import StoreError
from headrace.server.access import authenticate
from headrace.server.auth.authenticating import TOKEN_SUBPROTOCOL
from headrace.server.auth.caller import Caller
from headrace.server.faces.ids import id_of
from headrace.server.live.messages import Position, read_position
from headrace.server.live.pace import Pace
from headrace.server.live.sources import (
    JobLogs,
    JobStatus,
    NewestTasks,
    OverviewFigures,
    QueueFigures,
    Source,
    SystemFigures,
    TaskSource,
)
from headrace.server.middleware.rates import address_of
from headrace.server.problems import Problem

SUBPROTOCOL = "headrace.live"
_LARGEST_ID = 2**63 - 1


async def caller_of(connection: HTTPConnection) -> Caller:
    """Problem(401); Problem(403), also when a page of another origin uses the cookie of its visitor."""
    caller = await authenticate(connection)
    if Scope.READ not in caller.scopes:
        raise Problem(403, "Forbidden", "this needs the scope 'read'")
    return caller


def name_of(connection: HTTPConnection, caller: Caller) -> str:
    """Whose watchers are counted together."""
    return address_of(connection.scope) if caller.token is None else f"token {caller.token}"


async def source_of(app: App, caller: Caller, kind: str, id: str) -> Source:
    """What they ask for. Problem(404); Problem(403) when it is another's."""
    match kind:
        case "queues":
            return QueueFigures()
        case "system":
            return SystemFigures()
        case "overview":
            return OverviewFigures(app.settings)
        case "newest":
            return NewestTasks(caller.only_own)
        case "tasks":
            number = _task_number(id)
            task = (await app.engine.run(lambda store: store.get([number]))).get(number)
            if task is None:
                raise Problem(404, "Not Found", f"no task {id}")
            _check(caller, task.owner, f"task {id}")
            return TaskSource(number, app.redaction)
        case _:
            number = _number(id, "job")
            job = await app.engine.run(lambda store: store.get_job(number))
            if job is None:
                raise Problem(404, "Not Found", f"no job {id}")
            _check(caller, job.owner, f"job {id}")
            return JobStatus(number) if kind == "status" else JobLogs(number, app.redaction)


async def still_known(connection: HTTPConnection) -> None:
    """Whoever has watched for long: a token that was revoked meanwhile shows nothing more. Problem."""
    with suppress(StoreError):  # nobody is sent away because nobody can be asked
        await caller_of(connection)


def read_after(text: str | None, source: Source) -> Position | None:
    """Where they want to go on from. Problem(422)."""
    if not text or not source.parts:
        return None
    try:
        return read_position(text, parts=source.parts)
    except ValueError:
        raise Problem(422, "Unprocessable Content", f"after={text[:50]} is no place in this sequence") from None


def read_ping(text: str | None, pace: Pace) -> float:
    """How many seconds may pass without a word to them. Problem(422)."""
    if not text:
        return pace.ping
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not pace.least_ping <= seconds <= pace.ping:
        detail = f"ping={text[:10]} is not from {pace.least_ping:g} to {pace.ping:g} seconds"
        raise Problem(422, "Unprocessable Content", detail)
    return seconds


def subprotocol(websocket: WebSocket) -> str | None:
    """The one to answer with: a browser that offers some goes on only when one is taken."""
    offered: list[str] = websocket.scope.get("subprotocols") or []
    tokens = (each for each in offered if each.startswith(TOKEN_SUBPROTOCOL))
    return SUBPROTOCOL if SUBPROTOCOL in offered else next(tokens, None)


def _task_number(id: str) -> int:
    """By its number, or by the UUID under which a face of the API shows it."""
    try:
        number = id_of(UUID(id)) if id.count("-") == 4 else None
    except ValueError:
        number = None
    return _number(id, "task") if number is None else number


def _number(id: str, what: str) -> int:
    if not (id.isascii() and id.isdigit() and int(id[:20]) <= _LARGEST_ID and len(id) < 20):
        raise Problem(404, "Not Found", f"no {what} {id[:50]!r}")
    return int(id)


def _check(caller: Caller, owner: str | None, what: str) -> None:
    if not caller.may_see(owner):
        raise Problem(403, "Forbidden", f"{what} belongs to somebody else")
