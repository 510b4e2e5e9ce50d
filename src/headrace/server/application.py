"""The ASGI application of one app. Everything that it serves is put together here."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from importlib import import_module

from fastapi import APIRouter, Depends, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute

from headrace._version import __version__
from headrace.app import App
from headrace.server import openapi, problems
from headrace.server.auth.authenticating import CSRF_HEADER, Authenticator, OpenDoor
from headrace.server.auth.logins import Logins
from headrace.server.auth.passwords import Passwords
from headrace.server.dashboard import Dashboard
from headrace.server.live.serving import serving
from headrace.server.middleware.bodies import Bodies
from headrace.server.middleware.rates import Rates
from headrace.server.middleware.request_ids import HEADER, RequestIds
from headrace.server.middleware.security import SecurityHeaders
from headrace.server.middleware.unexpected import Unexpected
from headrace.server.options import ServerOptions
from headrace.server.overview.keeping import keeping
from headrace.server.overview.looking import Overview
from headrace.server.parameters import known_parameters
from headrace.server.pictures import Pictures
from headrace.server.probes import Probes

# (module, prefix): each module has a `router`. Faces come first: their fixed paths must win over {id}.
_ROUTERS: tuple[tuple[str, str], ...] = (
    ("faces.asynctaskflow", ""),
    ("routes.overview", "/api/v1"),
    ("routes.registry", "/api/v1"),
    ("routes.tasks", "/api/v1"),
    ("routes.task_acts", "/api/v1"),
    ("routes.task_logs", "/api/v1"),
    ("routes.jobs", "/api/v1"),
    ("routes.job_groups", "/api/v1"),
    ("routes.queues", "/api/v1"),
    ("routes.dead_letters", "/api/v1"),
    ("routes.schedules", "/api/v1"),
    ("routes.workers", "/api/v1"),
    ("routes.breakers", "/api/v1"),
    ("routes.events", "/api/v1"),
    ("routes.results", "/api/v1"),
    ("routes.audit", "/api/v1"),
    ("routes.ledger", "/api/v1"),
    ("routes.health", ""),
    ("routes.session", "/api/v1"),
    ("routes.tokens", "/api/v1"),
    ("routes.users", "/api/v1"),
    ("documentation", ""),
    ("live.streams", "/api/v1"),
    ("live.sockets", ""),
)
_COMPRESSED_FROM = 1024  # bytes


def create_application(app: App, options: ServerOptions | None = None) -> FastAPI:
    options = options or ServerOptions()
    authenticate = Authenticator(app, options) if options.auth else OpenDoor(options)
    passwords = Passwords()

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(app.aclose)
            if isinstance(authenticate, Authenticator):
                await stack.enter_async_context(authenticate)
                await stack.enter_async_context(passwords)
            await stack.enter_async_context(serving(api))
            await stack.enter_async_context(keeping(app))
            yield

    api = FastAPI(
        title="Headrace",
        version=__version__,
        description=openapi.DESCRIPTION,
        openapi_tags=openapi.TAGS,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own page loads its scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    api.state.headrace = app
    api.state.options = options
    api.state.authenticate = authenticate
    api.state.passwords = passwords
    api.state.probes = Probes()
    api.state.overview = Overview(app)
    api.state.pictures = Pictures(app)
    api.state.logins = Logins(app, options, passwords)
    problems.install(api)
    openapi.describe(api)
    _surround(api, options, authenticate)
    api.router.routes.extend(_routes())
    api.router.default = Dashboard(api.router.default)
    return api


def _surround(api: FastAPI, options: ServerOptions, authenticate: Authenticator | OpenDoor) -> None:
    """Each goes around those before it."""
    api.add_middleware(Bodies, limit=options.body_limit)
    api.add_middleware(GZipMiddleware, minimum_size=_COMPRESSED_FROM)
    if options.requests_per_minute:
        api.add_middleware(Rates, per_minute=options.requests_per_minute, name_of=authenticate.name_of)
    if options.cors_origins:
        api.add_middleware(
            CORSMiddleware,
            allow_origins=options.cors_origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", HEADER, CSRF_HEADER],
            expose_headers=[HEADER, "Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
        )
    api.add_middleware(Unexpected)
    api.add_middleware(SecurityHeaders, cross_origin=bool(options.cors_origins))
    api.add_middleware(RequestIds)


@cache
def _routes() -> list[BaseRoute]:
    """Made once: to work out what each of them takes is most of what an application costs, and they keep nothing."""
    together = APIRouter()
    for module, prefix in _ROUTERS:
        router: APIRouter = import_module(f"headrace.server.{module}").router
        together.include_router(router, prefix=prefix, dependencies=[Depends(known_parameters)])
    return together.routes
