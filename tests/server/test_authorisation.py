"""Every route, called by nobody, by each role, and by another of the owner's role."""

import asyncio
import itertools
from typing import Any

import pytest

from headrace.core.accounts import Scope
from headrace.server.auth.caller import SCOPES
from tests.server.matrix import CALLERS, ROWS, SOCKETS, Row, Things, filled, routes_of, sockets_of
from tests.server.routed import make_app, routed
from tests.server.serving import PEOPLE, Serve, Serving

_NUMBERS = itertools.count(1)
REFUSED = {"nobody": 401, "viewer": 403}  # others of the role user by the row


def path_of(template: str, thing: str) -> str:
    """A thing that is below another says both, with a space between: their places in the path."""
    path = template
    for part in thing.split(" "):
        before, brace, rest = path.partition("{")
        path = path if not brace else f"{before}{part}{rest.partition('}')[2]}"
    return path


async def call(server: Serving, things: Things, method: str, template: str, row: Row, caller: str) -> Any:
    thing = await things.makers()[row.thing]() if row.thing else ""
    body = filled(row.body, next(_NUMBERS))
    url = path_of(template, thing) + row.query
    return await server.of(caller).request(method, url, **({} if body is None else {"json": body}))


@pytest.mark.requirement("K106", "D71")
async def test_every_route_and_every_caller(serve_sqlite: Serve):
    """K106: things of `user` answer `other`, of the same role, with 403, and the operator and the admin as they answer
    the owner. D71: nothing that acts lets a viewer or nobody in; nothing of the admin's lets anybody else in."""
    async with routed(serve_sqlite) as server:
        assert routes_of(server.api) == set(ROWS), (
            "each route has a row in tests/server/matrix.py, and each row a route"
        )
        things = Things(server)
        dead = sum(row.thing.startswith("dead") for row in ROWS.values()) * len(CALLERS)
        await things.prepare(dead)
        wrong: list[str] = []
        for (method, template), row in ROWS.items():
            for caller in CALLERS:
                answer = await call(server, things, method, template, row, caller)
                expected = row.status if caller in row.allowed else REFUSED.get(caller, row.refusal)
                if answer.status_code != expected:
                    wrong.append(
                        f"{method} {template} as {caller}: {answer.status_code}, not {expected}: {answer.text[:200]}"
                    )
                if expected in (401, 403) and answer.headers["content-type"] != "application/problem+json":
                    wrong.append(f"{method} {template} as {caller}: a refusal that is no problem document")
        assert not wrong, "\n".join(wrong)


async def test_a_token_allows_no_more_than_its_scopes(serve_sqlite: Serve):
    """An admin's token without the scope of a route is refused there, whatever the admin may do."""
    async with routed(serve_sqlite) as server:
        things = Things(server)
        await things.prepare(sum(row.thing.startswith("dead") for row in ROWS.values()))
        without: dict[Scope, Any] = {}
        for scope in Scope:
            others = SCOPES[PEOPLE["admin"]] - {scope}
            without[scope] = server.client(await server.token("admin", *others))
        tried = 0
        for path, operations in server.api.openapi()["paths"].items():
            for method, operation in operations.items():
                if "x-scope" not in operation:
                    continue
                row = ROWS[method.upper(), path]
                thing = await things.makers()[row.thing]() if row.thing else ""
                url, body = path_of(path, thing) + row.query, filled(row.body, next(_NUMBERS))
                more = {} if body is None else {"json": body}
                answer = await without[Scope(operation["x-scope"])].request(method.upper(), url, **more)
                assert answer.status_code == 403, (method, path, answer.status_code)
                tried += 1
        assert tried > 50
        for client in without.values():
            await client.aclose()


async def test_without_users_nobody_is_refused(serve_sqlite: Serve):
    async with routed(serve_sqlite, make_app(serve_sqlite.url), auth=False) as server:
        things = Things(server)
        await things.prepare(sum(row.thing.startswith("dead") for row in ROWS.values()))
        for (method, template), row in ROWS.items():
            if "/session" in template or "/tokens" in template:
                continue  # there is nobody to have one
            answer = await call(server, things, method, template, row, "nobody")
            # There are no users to look at or to change, either.
            assert answer.status_code == row.status or "/users/" in template, (method, template, answer.text)
            assert answer.status_code not in (401, 403), (method, template)


async def test_every_socket_and_every_caller(serve_sqlite: Serve):
    async with routed(serve_sqlite) as server:
        assert sockets_of(server.api) == set(SOCKETS), "each WebSocket has a row in tests/server/matrix.py"
        things = Things(server)
        for template, (allowed, thing) in SOCKETS.items():
            for caller in CALLERS:
                path = path_of(template, await things.makers()[thing]() if thing else "")
                code = await close_code(server, path, server.secrets.get(caller))
                expected = None if caller in allowed else 4401 if caller == "nobody" else 4403
                assert code == expected, (template, caller)


async def close_code(server: Serving, path: str, secret: str | None) -> int | None:
    """The code with which a socket is closed before it says anything; None when it speaks."""
    headers = [(b"host", b"127.0.0.1:8000")]
    if secret is not None:
        headers.append((b"authorization", f"Bearer {secret}".encode()))
    scope = {
        "type": "websocket", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers,
        "client": ("127.0.0.1", 5000), "server": ("127.0.0.1", 8000), "scheme": "ws", "subprotocols": [],
        "extensions": {}, "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    said: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
    received = asyncio.Queue[dict[str, Any]]()
    received.put_nowait({"type": "websocket.connect"})

    async def send(message: Any) -> None:
        if said.done():
            return
        if message["type"] == "websocket.close":
            said.set_result(message["code"])
        elif message["type"] == "websocket.send":
            said.set_result(None)

    running = asyncio.create_task(server.api(scope, received.get, send))
    try:
        async with asyncio.timeout(60):
            return await said
    finally:
        received.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await running
