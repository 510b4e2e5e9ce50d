"""A server inside the test's own process: its clients talk to it without a socket, or with one (`listening`)."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from headrace import App
from headrace.client.accounts import digest_of, hint_of, new_secret
from headrace.core.accounts import NewToken, Role, Scope
from headrace.server.application import create_application
from headrace.server.auth.caller import SCOPES
from headrace.server.options import ServerOptions
from tests.server.tasks import make_app
from tests.support.waiting import eventually

BASE = "http://127.0.0.1:8000"
# Two of role user, so that one can try what belongs to the other.
PEOPLE = {
    "viewer": Role.VIEWER,
    "user": Role.USER,
    "other": Role.USER,
    "operator": Role.OPERATOR,
    "admin": Role.ADMIN,
}


class Serving:
    """A client for each person; whatever a client raises inside is answered as it would be over a socket."""

    def __init__(self, app: App, api: FastAPI, secrets: dict[str, str]) -> None:
        self.app = app
        self.api = api
        self.secrets = secrets
        self._clients: dict[str, httpx.AsyncClient] = {}

    def client(self, secret: str | None = None, **options: Any) -> httpx.AsyncClient:
        headers = {**options.pop("headers", {}), **({} if secret is None else {"Authorization": f"Bearer {secret}"})}
        transport = httpx.ASGITransport(self.api, raise_app_exceptions=False, client=("127.0.0.1", 5000))
        return httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers, **options)

    def of(self, person: str) -> httpx.AsyncClient:
        """`nobody` sends no token."""
        if person not in self._clients:
            self._clients[person] = self.client(None if person == "nobody" else self.secrets[person])
        return self._clients[person]

    @property
    def nobody(self) -> httpx.AsyncClient:
        return self.of("nobody")

    @property
    def viewer(self) -> httpx.AsyncClient:
        return self.of("viewer")

    @property
    def user(self) -> httpx.AsyncClient:
        return self.of("user")

    @property
    def other(self) -> httpx.AsyncClient:
        return self.of("other")

    @property
    def operator(self) -> httpx.AsyncClient:
        return self.of("operator")

    @property
    def admin(self) -> httpx.AsyncClient:
        return self.of("admin")

    async def token(self, person: str, *scopes: Scope, ttl: float | None = None) -> str:
        """One more token of theirs, with these scopes alone."""
        return await _add_token(self.app, person, scopes or tuple(SCOPES[PEOPLE[person]]), ttl)

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()


class Serve:
    def __init__(self, url: str) -> None:
        self.url = url

    @asynccontextmanager
    async def __call__(self, *, app: App | None = None, **options: Any) -> AsyncGenerator[Serving]:
        app = make_app(self.url) if app is None else app
        checked = ServerOptions(**{"requests_per_minute": 0, **options})
        secrets = await _people(app) if checked.auth else {}
        api = create_application(app, checked)
        async with api.router.lifespan_context(api):
            serving = Serving(app, api, secrets)
            try:
                yield serving
            finally:
                await serving.aclose()


@asynccontextmanager
async def listening(api: FastAPI) -> AsyncGenerator[str]:
    """The same application on a socket, for what ASGITransport cannot do (streams, WebSockets); its URL. Inside
    `serve`, which has started it: the lifespan is not run again.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(api, lifespan="off", log_config=None, ws="websockets-sansio"))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await eventually(lambda: server.started or running.done())
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


async def _people(app: App) -> dict[str, str]:
    secrets: dict[str, str] = {}
    known = {user.name for user in await app.engine.run(lambda store: store.users())}
    for name, role in PEOPLE.items():
        if name not in known:  # from a server on this database before
            await app.engine.run(lambda store, name=name, role=role: store.add_user(name, role))
        secrets[name] = await _add_token(app, name, tuple(SCOPES[role]), None)
    return secrets


async def _add_token(app: App, user: str, scopes: tuple[Scope, ...], ttl: float | None) -> str:
    secret = new_secret()
    token = NewToken(
        user=user, kind="api", label="test", digest=digest_of(secret), hint=hint_of(secret), scopes=scopes, ttl=ttl
    )
    await app.engine.run(lambda store: store.add_token(token))
    return secret
