"""Log in with a password, for pages; who am I; log out."""

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Request, Response

from headrace._version import __version__
from headrace.core.accounts import Credential, Role, Scope
from headrace.server.access import TheApp, TheOptions, permit
from headrace.server.auditing import audited
from headrace.server.auth.authenticating import COOKIE, CSRF_COOKIE, Authenticator, secret_of
from headrace.server.auth.caller import Caller, caller_of
from headrace.server.auth.logins import Logins
from headrace.server.auth.origins import require_same_origin
from headrace.server.auth.tokens import csrf_of
from headrace.server.models.accounts import LogIn, Permissions, SessionAnswer
from headrace.server.options import ServerOptions
from headrace.server.problems import Problem

router = APIRouter(prefix="/session", tags=["session"])


@router.post("", status_code=201)
async def log_in(body: LogIn, request: Request, response: Response, app: TheApp, options: TheOptions) -> SessionAnswer:
    """Gives two cookies: `headrace_session`, which only the browser sees, and `headrace_csrf`, whose value every act
    sends back as `X-CSRF-Token`.
    """
    if not options.auth:
        raise Problem(409, "Conflict", "this server has no users: nobody needs to log in")
    require_same_origin(request)
    logins = cast("Logins", request.app.state.logins)
    user = await logins.verified(body.name, body.password.get_secret_value())
    async with audited(app, user.name, "session.begin", f"user/{user.name}"):
        login = await logins.begin(user, label=request.headers.get("user-agent", ""))
    _set_cookies(response, login.secret, options)
    return SessionAnswer(
        name=login.user.name,
        role=login.user.role,
        scopes=sorted(login.token.scopes),
        auth=True,
        kind="session",
        csrf=csrf_of(login.secret),
        expires_at=login.token.expires_at,
        version=__version__,
        permissions=_permissions(caller_of(Credential(user=login.user, token=login.token))),
    )


@router.get("")
async def who_am_i(
    request: Request, options: TheOptions, caller: Annotated[Caller, Depends(permit(Scope.READ))]
) -> SessionAnswer:
    """The caller's name and role, and what the token or the session that they use allows. Without users: `auth` is
    false, and everybody may do everything."""
    expires_at = None
    if isinstance(found := request.app.state.authenticate, Authenticator):
        credential = await found.of(request.scope)
        expires_at = None if credential is None else credential.token.expires_at
    shown = secret_of(request.scope) if caller.is_session else None
    return SessionAnswer(
        name=caller.name,
        role=caller.role,
        scopes=sorted(caller.scopes),
        auth=options.auth,
        kind=None if caller.token is None else "session" if caller.is_session else "api",
        csrf=None if shown is None else csrf_of(shown[0]),
        expires_at=expires_at,
        version=__version__,
        permissions=_permissions(caller),
    )


@router.delete("", status_code=204)
async def log_out(
    request: Request,
    response: Response,
    app: TheApp,
    options: TheOptions,
    caller: Annotated[Caller, Depends(permit(Scope.READ))],
) -> None:
    """Ends the session of the cookie. A token is not ended by this: revoke it."""
    if not caller.is_session or caller.token is None:
        raise Problem(409, "Conflict", "there is no session to end; a token is revoked with DELETE /api/v1/tokens/{id}")
    token = caller.token
    async with audited(app, caller, "session.end", f"token/{token}"):
        await app.engine.run(lambda store: store.revoke_token(token))
    cast("Authenticator", request.app.state.authenticate).forget(token=token)
    for name in (COOKIE, CSRF_COOKIE):
        response.delete_cookie(name, path="/", secure=options.secure_cookies, samesite="lax", httponly=name == COOKIE)


def _permissions(caller: Caller) -> Permissions:
    scopes = caller.scopes
    return Permissions(
        submit=Scope.SUBMIT in scopes and caller.role.reaches(Role.USER),
        control=Scope.CONTROL in scopes and caller.role.reaches(Role.USER),
        operate=Scope.CONTROL in scopes and caller.role.reaches(Role.OPERATOR),
        administer=Scope.ADMIN in scopes and caller.role.reaches(Role.ADMIN),
        see_all=caller.sees_all,
        manage_tokens=caller.manages_tokens and caller.token is not None,
    )


def _set_cookies(response: Response, secret: str, options: ServerOptions) -> None:
    for name, text, hidden in ((COOKIE, secret, True), (CSRF_COOKIE, csrf_of(secret), False)):
        response.set_cookie(
            name,
            text,
            max_age=int(options.session_ttl),
            path="/",
            secure=options.secure_cookies,
            httponly=hidden,
            samesite="lax",
        )
