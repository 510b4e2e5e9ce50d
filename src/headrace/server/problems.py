"""RFC 9457: every error has one shape, whichever part of the server refused."""

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError, ResponseValidationError
from fastapi.requests import HTTPConnection
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Scope
from starlette.websockets import WebSocket

from headrace.core import errors
from headrace.server.fields import advice
from headrace.server.middleware.request_ids import request_id

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger("headrace.server")


class Problem(Exception):
    """Raised anywhere below a route; answered as application/problem+json."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str | None = None,
        *,
        type: str = "about:blank",
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail or title)
        self.status = status
        self.title = title
        self.detail = detail
        self.type = type
        self.headers = dict(headers or {})
        self.more = more

    def body(self, instance: str) -> dict[str, Any]:
        known = {"type": self.type, "title": self.title, "status": self.status, "instance": instance}
        said = {} if self.detail is None else {"detail": self.detail}
        named = {} if (id := request_id()) is None else {"request_id": id}
        return {**known, **said, **named, **self.more}


class Wrong(BaseModel):
    """One thing that is wrong with a request."""

    where: str = Field(description="`body`, `query`, `path`, `header` or `cookie`", examples=["body"])
    pointer: str = Field(description="JSON Pointer to it, below `where`", examples=["/role"])
    detail: str = Field(examples=["Field required"])


class ProblemDocument(BaseModel):
    """RFC 9457. `error` is the class of the Python error, where one is behind it."""

    model_config = ConfigDict(
        extra="allow",
        title="Problem",
        json_schema_extra={
            "examples": [
                {
                    "type": "about:blank",
                    "title": "Not Found",
                    "status": 404,
                    "detail": "no task 17",
                    "instance": "/api/v1/tasks/17",
                    "request_id": "0f8a3c5d9e7b4a61",
                    "error": "NotFound",
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    instance: str
    detail: str | None = None
    request_id: str | None = None
    error: str | None = None
    errors: list[Wrong] | None = None


# What each error of headrace is to an HTTP client; the nearest class counts. Whoever calls cannot mend the rest: 500.
_STATUSES: Mapping[type[errors.HeadraceError], int] = {
    errors.NotFound: 404,
    errors.WrongState: 409,
    errors.NotAllowed: 403,
    errors.EnqueueError: 422,
    errors.DuplicateTask: 409,
    errors.MovedAway: 409,
    errors.UniqueBusy: 409,
    errors.OptionError: 422,  # by now the options of tasks are those that the request gave
    errors.DataError: 422,
    errors.ObjectExists: 409,
    errors.TaskFailed: 409,
    errors.TaskCancelled: 409,
    errors.ResultExpired: 410,
    errors.StoreUnavailable: 503,
    errors.SchemaError: 503,
    errors.BreakerOpen: 503,
}
_AGAIN_AFTER: Mapping[type[errors.HeadraceError], str] = {
    errors.UniqueBusy: "1",
    errors.StoreUnavailable: "2",
    errors.SchemaError: "5",
    errors.BreakerOpen: "5",
}
_FROM_NOBODY = "the server failed; its log has more under this request id"


def problem_of(error: Exception) -> Problem | None:
    """The answer to an error that is known; None for what nobody expected."""
    match error:
        case Problem():
            return error
        case RequestValidationError():
            return _invalid(error)
        case HTTPException():
            return Problem(error.status_code, _phrase(error.status_code), _said(error), headers=error.headers)
        case errors.HeadraceError():
            return _of_headrace(error)
        case _:
            return None


@contextmanager
def named_by(pointer: str) -> Generator[None]:
    """Of one part of a body: what is refused of it is told with its place."""
    try:
        yield
    except Exception as error:
        problem = problem_of(error)
        if problem is None or problem.status >= 500:
            raise
        said = problem.detail or problem.title
        wrong = {"where": "body", "pointer": pointer, "detail": said}
        named = Problem(
            problem.status, problem.title, f"{pointer}: {said}", type=problem.type, headers=problem.headers,
            **{**problem.more, "errors": [wrong]},
        )  # fmt: skip
        raise named from error


def unexpected(error: Exception) -> Problem:
    """Logged in full, told without detail: it may hold anything."""
    log.error("request %s failed", request_id(), exc_info=error)
    return Problem(500, _phrase(500), _FROM_NOBODY)


def answer(problem: Problem, request: HTTPConnection | Scope) -> JSONResponse:
    scope = request.scope if isinstance(request, HTTPConnection) else request
    return JSONResponse(
        problem.body(scope.get("path", "")),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=problem.headers,
    )


def install(api: FastAPI) -> None:
    """Have every known error answered in this shape. Those that nobody expected are caught around the application."""

    async def handle(connection: Request | WebSocket, error: Exception) -> JSONResponse | None:
        problem = problem_of(error)
        if isinstance(error, RequestValidationError) and problem is not None:
            _name_fields(problem, error, connection.scope)
        if problem is None:
            problem = unexpected(error)
        elif problem.status >= 500:
            log.error("request %s: %s: %s", request_id(), type(error).__name__, error)
        if problem.detail is not None:
            problem.detail = connection.app.state.headrace.redaction.text(problem.detail)
        if isinstance(connection, WebSocket):
            await refuse(connection, problem)
            return None
        return answer(problem, connection)

    for kind in (Problem, RequestValidationError, ResponseValidationError, HTTPException, errors.HeadraceError):
        api.add_exception_handler(kind, cast("Any", handle))
    api.add_exception_handler(ClientDisconnect, _nobody_listens)


async def refuse(socket: WebSocket, problem: Problem) -> None:
    """Before it is accepted a socket is answered like any request; after, all that can be said is a close code."""
    if socket.client_state.name == "CONNECTING" and "websocket.http.response" in socket.scope.get("extensions", {}):
        await socket.send_denial_response(answer(problem, socket))
    else:
        await socket.close(1008 if problem.status < 500 else 1011, problem.title)


def phrase(status: int) -> str:
    return _phrase(status)


async def _nobody_listens(_: Request, __: Exception) -> JSONResponse:
    """The client has gone in the middle of its request: whatever is answered, nobody reads it."""
    return JSONResponse(None, status_code=499)


def _of_headrace(error: errors.HeadraceError) -> Problem | None:
    kind = next((kind for kind in type(error).__mro__ if kind in _STATUSES), None)
    if kind is None:
        return None
    status = _STATUSES[kind]
    more: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, errors.DuplicateTask | errors.MovedAway):
        more |= {"key": error.key, "task_id": error.task_id}
    after = next((_AGAIN_AFTER[each] for each in type(error).__mro__ if each in _AGAIN_AFTER), None)
    headers = {} if after is None else {"Retry-After": after}
    # What a database says of itself (hosts, users) is for its operator, who has the log.
    detail = "the database cannot be reached now; try again" if status == 503 and after == "2" else str(error)
    return Problem(status, _phrase(status), detail, headers=headers, **more)


def _invalid(error: RequestValidationError) -> Problem:
    """What is wrong, by place. The values are left out: one of them may be a password."""
    found = cast("Sequence[Mapping[str, Any]]", error.errors())
    if any(each["type"] == "json_invalid" for each in found):
        place = next((each["loc"][-1] for each in found if each["type"] == "json_invalid"), 0)
        return Problem(400, _phrase(400), f"the body is not JSON: it goes wrong at character {place}")
    wrong = [_wrong(each) for each in found]
    count = "one thing is" if len(wrong) == 1 else f"{len(wrong)} things are"
    return Problem(422, _phrase(422), f"{count} wrong with the request; `errors` says what and where", errors=wrong)


def _name_fields(problem: Problem, error: RequestValidationError, scope: Scope) -> None:
    """Of a field that there is none of: those that there are."""
    body: Any = getattr(getattr(scope.get("route"), "body_field", None), "field_info", None)
    places = cast("Sequence[Mapping[str, Any]]", error.errors())
    wrong = cast("Sequence[dict[str, str]]", problem.more.get("errors", ()))
    for place, told in zip(places, wrong, strict=False):
        if body is not None and place["type"] == "extra_forbidden" and place["loc"][0] == "body":
            told["detail"] = _plain(advice(body.annotation, place["loc"][1:]) or told["detail"])[:500]


def _wrong(error: Mapping[str, Any]) -> dict[str, str]:
    where, *path = (str(part) for part in error["loc"]) if error["loc"] else ("body",)
    pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)
    return {"where": where, "pointer": _plain(pointer)[:500], "detail": _plain(str(error["msg"]))[:500]}


def _plain(text: str) -> str:
    """The name of a member comes from the request, and may hold what UTF-8 cannot carry."""
    return text.encode(errors="replace").decode()


def _said(error: HTTPException) -> str | None:
    known = _phrase(error.status_code)
    return None if error.detail in ("", known) else str(error.detail)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
