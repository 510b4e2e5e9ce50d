"""RFC 9457: every error has one shape, whichever part of the server refused."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse


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
        return {**known, **({} if self.detail is None else {"detail": self.detail}), **self.more}


def answer(problem: Problem, request: Request) -> JSONResponse:
    return JSONResponse(
        problem.body(request.url.path),
        status_code=problem.status,
        media_type="application/problem+json",
        headers=problem.headers,
    )


def install(api: FastAPI) -> None:
    """Have every error answered in this shape: ours, FastAPI's, those of headrace, and what nobody expected."""

    async def handle(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, Problem)
        return answer(error, request)

    api.add_exception_handler(Problem, handle)
