"""The OpenAPI document: what FastAPI derives from the routes, with what it cannot know: who may call, and problems."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from fastapi import FastAPI, routing
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from headrace.server.auth.authenticating import COOKIE, CSRF_HEADER
from headrace.server.problems import MEDIA_TYPE, ProblemDocument, phrase

DESCRIPTION = """\
Tasks, jobs, queues, schedules and workers of one ledger.

- **Who calls**: `Authorization: Bearer hr_…`, or the cookie of a session, then with `X-CSRF-Token` for every act.
- **Errors** are problem documents (RFC 9457) with the id of the request, which is in `X-Request-ID` of every answer.
- **Lists** are read page by page: give `cursor` the `next` of the page before.
"""
TAGS: list[dict[str, Any]] = [
    {"name": "overview", "description": "Rates, latencies, depths and failures at a glance."},
    {"name": "registry", "description": "Which tasks can be submitted, and with which arguments."},
    {"name": "tasks", "description": "Submit, look at, retry, cancel and delete tasks."},
    {"name": "jobs", "description": "Groups and graphs of tasks."},
    {"name": "queues", "description": "Depths and lanes; pause, resume and limit."},
    {"name": "dead letters", "description": "What failed for good: replay it or discard it."},
    {"name": "schedules", "description": "What is enqueued by itself."},
    {"name": "workers", "description": "Who works."},
    {"name": "breakers", "description": "Services that are spared for a while."},
    {"name": "events", "description": "What tasks wait for, and who is told what happened."},
    {"name": "results", "description": "What tasks returned."},
    {"name": "live", "description": "What is shown while it happens."},
    {"name": "session", "description": "Log in, log out, who am I."},
    {"name": "tokens", "description": "Secrets for programs."},
    {"name": "users", "description": "Who may do what."},
    {"name": "audit", "description": "Who did what, and how it ended."},
    {"name": "health", "description": "For probes and Prometheus."},
]
_STATUSES = (400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503)
_PROBLEM = "#/components/schemas/ProblemDocument"
_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer", "description": "An API token: `hr_…`"},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE,
        "description": f"From `POST /api/v1/session`. Acts need the header `{CSRF_HEADER}`, too.",
    },
}


def describe(api: FastAPI) -> None:
    """Replaces `api.openapi`; the document is made when it is first asked for."""

    def document() -> dict[str, Any]:
        if api.openapi_schema is None:
            api.openapi_schema = _document(api)
        return api.openapi_schema

    api.openapi = document


def routes_of(api: FastAPI) -> Iterator[APIRoute]:
    """Every route that has a shape, with its full path, whatever router it came with."""
    contexts: Any = getattr(routing, "iter_route_contexts", None)
    found = cast("Iterable[Any]", api.routes if contexts is None else contexts(api.routes))
    for route in found:
        # A context stands for the route as it was included, and has what the route has.
        if isinstance(getattr(route, "original_route", route), APIRoute):
            yield route


def permission_of(route: APIRoute) -> Any:
    """The check that `permit(…)` made, with its `scope` and `role`; None for a route that anybody may call."""
    return _permission(route.dependant)


def _permission(dependant: Dependant) -> Any:
    if hasattr(dependant.call, "scope") and hasattr(dependant.call, "role"):
        return dependant.call
    found = (_permission(each) for each in dependant.dependencies)
    return next((each for each in found if each is not None), None)


def _document(api: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title=api.title, version=api.version, description=api.description, routes=api.routes, tags=api.openapi_tags
    )
    components = made.setdefault("components", {})
    components["securitySchemes"] = _SCHEMES
    _add_problem(components.setdefault("schemas", {}))
    for path in made["paths"].values():
        for operation in path.values():
            for status in _STATUSES:
                operation["responses"][str(status)] = _refusal(status, operation["responses"].get(str(status), {}))
    for route in routes_of(api):
        if route.include_in_schema:
            _secure(made["paths"][route.path_format], route)
    return made


def _refusal(status: int, declared: dict[str, Any]) -> dict[str, Any]:
    """What a route says itself of when it refuses stays; that it answers with a problem holds for all."""
    described = declared.get("description", phrase(status))
    if status == 422 and described == "Validation Error":  # FastAPI's own, which is not what is answered here
        described = phrase(status)
    return {"description": described, "content": {MEDIA_TYPE: {"schema": {"$ref": _PROBLEM}}}}


def _add_problem(schemas: dict[str, Any]) -> None:
    """By hand: declared as a model for each route and status it would take a second of every start."""
    schema = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs", {}))
    schemas["ProblemDocument"] = schema
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)


def _secure(path: dict[str, Any], route: APIRoute) -> None:
    permission = permission_of(route)
    for method in route.methods or ():
        operation = path.get(method.lower())
        if operation is None:
            continue
        operation["security"] = [] if permission is None else [{"token": []}, {"session": []}]
        if permission is not None:
            operation["x-scope"], operation["x-role"] = permission.scope.value, permission.role.value
