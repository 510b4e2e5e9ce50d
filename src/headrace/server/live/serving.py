"""The hub of an application, for as long as that serves."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from fastapi import FastAPI
from fastapi.requests import HTTPConnection

from headrace.server.live.hub import Hub
from headrace.server.problems import Problem


@asynccontextmanager
async def serving(api: FastAPI) -> AsyncGenerator[Hub]:
    """Part of the application's lifespan. `api.state.pace` changes the figures, for tests."""
    async with Hub(api.state.headrace, api.state.options, getattr(api.state, "pace", None)) as hub:
        api.state.hub = hub
        try:
            yield hub
        finally:
            api.state.hub = None


def the_hub(connection: HTTPConnection) -> Hub:
    hub = cast("Hub | None", getattr(connection.app.state, "hub", None))
    if hub is None:
        raise Problem(503, "Service Unavailable", "this server shows nothing live: it has not started, or it stops")
    return hub
