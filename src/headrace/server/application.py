"""The ASGI application of one app. Everything that it serves is put together here."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI

from headrace._version import __version__
from headrace.app import App
from headrace.server import problems
from headrace.server.options import ServerOptions

# (module, prefix): each module has a `router`. Faces come first: their fixed paths must win over {id}.
_ROUTERS: tuple[tuple[str, str], ...] = (
    ("routes.tasks", "/api/v1"),
    ("routes.jobs", "/api/v1"),
    ("routes.queues", "/api/v1"),
    ("routes.dead_letters", "/api/v1"),
    ("routes.schedules", "/api/v1"),
    ("routes.workers", "/api/v1"),
    ("routes.breakers", "/api/v1"),
    ("routes.events", "/api/v1"),
    ("routes.results", "/api/v1"),
    ("routes.audit", "/api/v1"),
    ("routes.health", ""),
)


def create_application(app: App, options: ServerOptions | None = None) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        await app.aclose()

    api = FastAPI(
        title="Headrace", version=__version__, lifespan=lifespan, docs_url="/api/docs", redoc_url=None,
        openapi_url="/api/openapi.json",
    )  # fmt: skip
    api.state.headrace = app
    api.state.options = options or ServerOptions()
    api.state.authenticate = None
    problems.install(api)
    for module, prefix in _ROUTERS:
        api.include_router(_router(module), prefix=prefix)
    return api


def _router(module: str) -> APIRouter:
    from importlib import import_module

    return import_module(f"headrace.server.{module}").router
