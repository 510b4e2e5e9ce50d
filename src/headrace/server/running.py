"""The server as a process: Uvicorn on a socket of ours, until it is told to stop."""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, override

import uvicorn
from fastapi import FastAPI

from headrace.app import App
from headrace.client.accounts import digest_of, hint_of, new_secret
from headrace.core.accounts import NewAudit, NewToken, Scope
from headrace.core.errors import SchemaError, StoreError
from headrace.runtime import collector
from headrace.runtime.signals import stop_signals
from headrace.server.application import create_application
from headrace.server.auditing import DONE
from headrace.server.options import ServerOptions

FIRST_ADMIN = "admin"
SERVER_NAME = "headrace server"  # in the audit log, where the server itself acts
_GRACE = 10  # seconds that requests get to end
_PAUSE = 0.5
log = logging.getLogger("headrace.server")


def run(
    app: App,
    options: ServerOptions,
    listener: socket.socket,
    *,
    made_admin: Callable[[str], None] | None = None,
    serving: Callable[[], None] | None = None,
) -> int:
    """Blocks until SIGTERM or SIGINT; the exit code. `made_admin` is given the secret of the first user's token, when
    this server was the one that made it; `serving` is called when requests are answered.
    """
    api = create_application(app, options)
    server = _Server(
        uvicorn.Config(
            api,
            log_config=None,
            access_log=False,
            server_header=False,
            # Uvicorn by itself believes whoever is on this machine, and an environment variable of its own.
            proxy_headers=bool(options.trust_proxy),
            forwarded_allow_ips=list(options.trust_proxy),
            timeout_graceful_shutdown=_GRACE,
            ws_max_size=max(options.body_limit, 65_536),
            # A message goes to thousands as it is: to compress it for each of them costs more than the server has.
            ws_per_message_deflate=False,
            lifespan="on",
        ),
        serving,
    )
    work = _serve(api, server, listener, lambda: _prepare(app, options, made_admin))
    return asyncio.run(work, loop_factory=server.config.get_loop_factory())  # uvloop where it is installed


class _Server(uvicorn.Server):
    """Signals are handled by whoever runs it: Uvicorn would raise them again at the end, and die of them."""

    def __init__(self, config: uvicorn.Config, serving: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._serving = serving

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        collector.relieve()
        if self.started and self._serving is not None:
            self._serving()

    @override
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _serve(
    api: FastAPI, server: _Server, listener: socket.socket, prepare: Callable[[], Coroutine[Any, Any, None]]
) -> int:
    preparing = asyncio.create_task(prepare(), name="headrace.server.prepare")
    preparing.add_done_callback(_say_why)

    def ask() -> None:
        server.should_exit = True
        preparing.cancel()
        # Streams never end by themselves, and would be waited for.
        hub: Any = getattr(api.state, "hub", None)
        if hub is not None:
            hub.end()

    def insist() -> None:
        ask()
        server.force_exit = True

    with stop_signals(ask, insist):
        try:
            await server.serve(sockets=[listener])
        finally:
            preparing.cancel()
            await asyncio.gather(preparing, return_exceptions=True)
    return 0 if server.started else 1


def _say_why(preparing: asyncio.Task[None]) -> None:
    if not preparing.cancelled() and (error := preparing.exception()) is not None:
        log.error("the first user could not be looked for", exc_info=error)


async def _prepare(app: App, options: ServerOptions, made_admin: Callable[[str], None] | None) -> None:
    """The first user, as soon as the database is there: until then requests are told to come again."""
    said = False
    secret = new_secret()  # one for every try: one that was written and not answered is known again by it
    while options.auth:
        try:
            made = await add_first_admin(app, secret)
        except StoreError as error:
            # Beside a supervisor that is about to make the schema it is missing for a moment.
            if not said and not isinstance(error, SchemaError):
                log.warning("the store cannot be used yet, and requests are answered with 503: %s", error)
                said = True
            await asyncio.sleep(_PAUSE)
        else:
            if made:
                await _note_first_admin(app)
                if made_admin is not None:
                    made_admin(secret)
            return


async def _note_first_admin(app: App) -> None:
    """On the list of acts as well, by the server itself: nobody else was there to do it."""
    entry = NewAudit(
        actor=SERVER_NAME, act="users.add", subject=f"user/{FIRST_ADMIN}", detail='{"role":"admin"}', request=None
    )
    try:
        ids = await app.engine.run(lambda store: store.write_audit([entry]))
        await app.engine.run(lambda store: store.close_audit(ids, DONE))
    except StoreError as error:
        # The secret must be told all the same: nobody else ever will.
        log.warning("that the first admin was made could not be written to the audit log: %s", error)


async def add_first_admin(app: App, secret: str) -> bool:
    """Whether the first user has the token of this secret, by this call or an earlier one; else there are users."""
    token = NewToken(
        user=FIRST_ADMIN,
        kind="api",
        label="first run",
        digest=digest_of(secret),
        hint=hint_of(secret),
        scopes=tuple(Scope),
    )
    return await app.engine.run(lambda store: store.add_first_admin(FIRST_ADMIN, token)) is not None
