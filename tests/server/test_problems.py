"""Every refusal has the same shape, whoever refused."""

import json
from typing import Annotated

import pytest
from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field, SecretStr

from headrace.core import errors
from headrace.core.accounts import Role, Scope
from headrace.server.access import Id, permit
from headrace.server.auth.caller import Caller
from headrace.server.problems import Problem
from tests.server.serving import Serve, Serving

router = APIRouter()


class Body(BaseModel):
    name: Annotated[str, Field(max_length=10)]
    password: SecretStr = SecretStr("")
    count: int = 0


@router.post("/echo")
async def echo(body: Body) -> dict[str, str]:
    return {"name": body.name}


@router.get("/things/{id}")
async def thing(id: Id, limit: Annotated[int, Query(le=10)] = 1) -> dict[str, int]:
    return {"id": id}


@router.get("/raise/{kind}")
async def fails(kind: str) -> None:
    raise RAISED[kind]


@router.get("/operators")
async def operators(caller: Annotated[Caller, Depends(permit(Scope.READ, role=Role.OPERATOR))]) -> str:
    return caller.name


SECRET = "postgresql://ada:hunter2@db.internal/x"
RAISED: dict[str, Exception] = {
    "problem": Problem(418, "Teapot", "short and stout", headers={"X-Pot": "1"}, spout=1),
    "missing": errors.NotFound("no task 17"),
    "state": errors.WrongState("task 17 is running"),
    "denied": errors.NotAllowed("not yours to decide"),
    "payload": errors.PayloadError("$.x: NaN"),
    "unknown": errors.UnknownTask("no task 'x'"),
    "option": errors.OptionError("priority must fit 32 bits"),
    "duplicate": errors.DuplicateTask("k", 7),
    "store": errors.StoreUnavailable(f"cannot reach {SECRET}"),
    "settings": errors.SettingsError(f"bad url {SECRET}"),
    "bug": RuntimeError(f"at {SECRET}"),
}


def with_routes(server: Serving) -> None:
    server.api.include_router(router, prefix="/try")


SHAPES: list[tuple[str, int, dict[str, object]]] = [
    ("problem", 418, {"detail": "short and stout", "spout": 1}),
    ("missing", 404, {"detail": "no task 17", "error": "NotFound"}),
    ("state", 409, {"error": "WrongState"}),
    ("denied", 403, {"error": "NotAllowed"}),
    ("payload", 422, {"error": "PayloadError"}),
    ("unknown", 422, {"error": "UnknownTask"}),
    ("option", 422, {"error": "OptionError"}),
    ("duplicate", 409, {"error": "DuplicateTask", "task_id": 7, "key": "k"}),
    ("store", 503, {"error": "StoreUnavailable"}),
    ("settings", 500, {}),
    ("bug", 500, {}),
]


async def test_every_error_has_one_shape(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        with_routes(server)
        for kind, status, more in SHAPES:
            answer = await server.nobody.get(f"/try/raise/{kind}", headers={"X-Request-ID": "mine-1"})
            body = answer.json()
            assert (answer.status_code, body["status"]) == (status, status)
            assert answer.headers["content-type"] == "application/problem+json"
            assert {"type", "title", "instance"} <= body.keys()
            assert body["instance"] == f"/try/raise/{kind}"
            assert body["request_id"] == answer.headers["x-request-id"] == "mine-1"
            assert more.items() <= body.items()
            assert "hunter2" not in answer.text
            assert ("retry-after" in answer.headers) == (status == 503)


async def test_an_unexpected_error_is_logged_with_its_traceback(
    serve_sqlite: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve_sqlite() as server:
        with_routes(server)
        answer = await server.nobody.get("/try/raise/bug", headers={"X-Request-ID": "find-me"})
    assert answer.status_code == 500
    [record] = [record for record in caplog.records if "find-me" in record.getMessage()]
    assert record.exc_info is not None
    assert record.exc_info[0] is RuntimeError


BODIES = [
    (b"{", "application/json", 400),
    (b'{"name": NaN2}', "application/json", 400),
    (b"\xff\xfe", "application/json", 400),
    (b"[" * 100_000, "application/json", 422),
    (b'{"name":' + b"[" * 300 + b"]" * 300 + b"}", "application/json", 422),
    (rb'{"name": "a\ud800b"}', "application/json", 422),
    (rb'{"name": "a\udc00\ud800"}', "application/json", 422),
    (rb'{"name": "a\u0000"}', "application/json", 422),
    (rb'{"name": "\\u0000"}', "application/json; charset=utf-8", 200),
    (rb'{"name": "\ud83d\ude00"}', "application/vnd.headrace+json", 200),
    (b'{"name": "x"}', "text/plain", 415),
    (b"name=x", "application/x-www-form-urlencoded", 415),
    (b'{"name": "x"}', "", 415),
    (b'{"name": "' + b"x" * 150_000 + b'"}', "application/json", 413),
    (b'{"name": "much too long"}', "application/json", 422),
    (b"{}", "application/json", 422),
    (b"", "application/json", 422),
    (b"null", "application/json", 422),
    (b'{"name": "x", "count": 1e400}', "application/json", 422),
]


async def test_a_bad_body_is_refused_with_a_problem(serve_sqlite: Serve) -> None:
    async with serve_sqlite(body_limit=150_000) as server:
        with_routes(server)
        for content, kind, status in BODIES:
            headers = {"Content-Type": kind} if kind else {}
            answer = await server.nobody.post("/try/echo", content=content, headers=headers)
            assert answer.status_code == status, (content[:100], answer.text)
            assert answer.json().get("status", 200) == status


async def test_a_chunked_body_has_the_same_limit(serve_sqlite: Serve) -> None:
    sent = 0

    async def chunks():
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield b"x" * 1000

    async with serve_sqlite(body_limit=10_000) as server:
        with_routes(server)
        answer = await server.nobody.post("/try/echo", content=chunks(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert answer.json()["limit"] == 10_000
    assert sent < 20, "the rest is not read"


async def test_what_is_wrong_is_named_by_pointer_and_values_are_not_echoed(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        with_routes(server)
        answer = await server.nobody.post("/try/echo", json={"password": ["hunter2"], "count": "many"})
        query = await server.nobody.get("/try/things/5", params={"limit": 99})
    assert answer.status_code == 422
    found = {(each["where"], each["pointer"]) for each in answer.json()["errors"]}
    assert found == {("body", "/name"), ("body", "/password"), ("body", "/count")}
    assert "hunter2" not in answer.text
    assert "many" not in answer.text.replace("things", "")
    assert [(each["where"], each["pointer"]) for each in query.json()["errors"]] == [("query", "/limit")]


async def test_an_id_that_no_database_can_hold_is_refused_and_nul_in_an_address(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        with_routes(server)
        for id in ("0", "-1", "9223372036854775808", "1e3", "x", "1" * 5000):
            assert (await server.nobody.get(f"/try/things/{id}")).status_code == 422, id
        for path in ("/try/raise/a%00b", "/try/things/1?limit=%00"):
            answer = await server.nobody.get(path)
            assert answer.status_code == 422
            assert "NUL" in answer.json()["detail"]


async def test_unknown_routes_and_methods_have_the_same_shape(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        with_routes(server)
        missing = await server.nobody.get("/api/v1/nowhere")
        method = await server.nobody.put("/try/echo", json={})
    assert (missing.status_code, missing.json()["title"]) == (404, "Not Found")
    assert (method.status_code, method.json()["title"]) == (405, "Method Not Allowed")
    assert method.headers["allow"] == "POST"


async def test_a_role_that_does_not_reach_is_refused(serve: Serve) -> None:
    async with serve() as server:
        with_routes(server)
        answers = {
            who: (await server.of(who).get("/try/operators")).status_code
            for who in ("nobody", "viewer", "user", "operator", "admin")
        }
    assert answers == {"nobody": 401, "viewer": 403, "user": 403, "operator": 200, "admin": 200}


async def test_a_request_id_that_is_none_is_replaced(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        with_routes(server)
        for given in ("", "x" * 129, "a b", "ä", "a\tb"):
            answer = await server.nobody.get("/try/things/1", headers=[(b"X-Request-ID", given.encode())])
            assert len(answer.headers["x-request-id"]) == 16
            assert json.loads(answer.text) == {"id": 1}
