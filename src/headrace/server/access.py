"""What routes ask for: the app, the options, and a caller who may do this.

@router.post("/tasks/{id}/retry")
async def retry(id: int, app: TheApp, caller: Annotated[Caller, Depends(permit(Scope.CONTROL))]) -> ...:
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, cast

from fastapi import Depends, Path, Request
from fastapi.requests import HTTPConnection

from headrace.app import App
from headrace.core.accounts import Role, Scope
from headrace.server.auth.caller import Caller
from headrace.server.options import ServerOptions
from headrace.server.problems import Problem

type Authenticate = Callable[[HTTPConnection], Awaitable[Caller]]


# `async`, so that FastAPI calls them on the loop: a plain function would be a thread for each request.
async def the_app(connection: HTTPConnection) -> App:
    return cast("App", connection.app.state.headrace)


async def the_options(connection: HTTPConnection) -> ServerOptions:
    return cast("ServerOptions", connection.app.state.options)


TheApp = Annotated[App, Depends(the_app)]
TheOptions = Annotated[ServerOptions, Depends(the_options)]
# The ids of tasks, jobs, tokens and audit entries, as both databases can hold them.
Id = Annotated[int, Path(ge=1, le=2**63 - 1)]


async def authenticate(connection: HTTPConnection) -> Caller:
    """The caller of this request or WebSocket. Raises Problem(401)."""
    return await cast("Authenticate", connection.app.state.authenticate)(connection)


def permit(scope: Scope, *, role: Role = Role.VIEWER) -> Callable[[Request], Awaitable[Caller]]:
    """A dependency: the caller, if their token and their role allow this kind of act. 401, 403."""

    async def check(request: Request) -> Caller:
        caller = await authenticate(request)
        if scope not in caller.scopes or not caller.role.reaches(role):
            raise Problem(403, "Forbidden", f"this needs the scope {scope.value!r} and the role {role.value!r}")
        return caller

    # For the authorisation matrix of the tests, which reads the routes.
    check.scope, check.role = scope, role  # type: ignore[attr-defined]
    return check


async def overseeing(caller: Annotated[Caller, Depends(permit(Scope.READ))]) -> Caller:
    """For things that belong to nobody: users, who see their own alone, do not see them. 401, 403."""
    if not caller.sees_all:
        raise Problem(403, "Forbidden", "you see your own things alone, and this belongs to nobody")
    return caller


Overseer = Annotated[Caller, Depends(overseeing)]
