"""/live, /ready and /metrics, for probes and for Prometheus."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from headrace.app import App
from headrace.core.accounts import Scope
from headrace.core.errors import HeadraceError, SettingsError
from headrace.server.access import TheApp, permit
from headrace.server.auth.caller import Caller
from headrace.server.figures import look
from headrace.server.models.health import Liveness, Readiness
from headrace.server.probes import TheProbes
from headrace.server.problems import Problem
from headrace.telemetry.prometheus import load_collector

router = APIRouter(tags=["health"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
_PATIENCE = 5.0  # seconds


@router.get("/live")
async def live() -> Liveness:
    """This process answers. It says nothing of the database."""
    return Liveness()


@router.get("/ready", responses={503: {"model": Readiness, "description": "Not now"}})
async def ready(app: TheApp, probes: TheProbes, response: Response) -> Readiness:
    """The database answers, and its schema is the one that this version knows. Looked at once a second at most."""
    detail = await probes.ask("ready", lambda: _trouble(app))
    if detail is not None:
        response.status_code = 503
        return Readiness(ready=False, detail=detail)
    return Readiness(ready=True, detail="the database answers")


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(app: TheApp, caller: Reader) -> Response:
    """The ledger's figures in the text format of Prometheus. 404 where headrace[metrics] is not installed."""
    try:
        collector = load_collector()
    except SettingsError as error:
        raise Problem(404, "No metrics", str(error)) from None
    figures = await app.engine.run(lambda store: look(store, app.settings))
    tally = app.engine.counting.tally()
    made = collector(lambda: tally, lambda: figures)
    return Response(made.render(), media_type=made.content_type)


async def _trouble(app: App) -> str | None:
    try:
        async with asyncio.timeout(_PATIENCE):
            await app.engine.run(lambda store: store.now())
    except TimeoutError:
        return f"the database has not answered within {_PATIENCE:g} s"
    except HeadraceError as error:
        # What a database says of itself (hosts, users) is for its operator, who has the log.
        return f"the database cannot be used: {type(error).__name__}"
    except OSError:
        return "the database cannot be reached"
    return None
