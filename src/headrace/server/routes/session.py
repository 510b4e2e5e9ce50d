"""Log in with a password or a token, for pages; who am I; log out."""

from datetime import UTC, datetime
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
from headrace.server.models.accounts import LogIn, LogInByToken, Permissions, SessionAnswer
from headrace.server.options import ServerOptions
from headrace.server.problems import Problem

router = APIRouter(prefix="/session", tags=["session"])


@router.post("", status_code=201)
async def log_in(body: LogIn, request: Request, response: Response, app: TheApp, options: TheOptions) -> SessionAnswer:
    """Gives two cookies: `headrace_session`, which only the browser sees, and `headrace_csrf`, whose value every act
    sends back as `X-CSRF-Token`.
    """
    _require_page(request, options)
    logins = cast("Logins", request.app.state.logins)
    user = await logins.verified(body.name, body.password.get_secret_value())
    async with audited(app, user.name, "session.begin", f"user/{user.name}"):
        login = await logins.begin(user, label=request.headers.get("user-agent", ""))
    return _let_in(response, Credential(user=login.user, token=login.token), login.secret, options)


@router.post("/token", status_code=201)
async def log_in_by_token(
    body: LogInByToken, request: Request, response: Response, app: TheApp, options: TheOptions
) -> SessionAnswer:
    """The same with a token, for whoever has no password: the first admin. The cookies hold for as long as the token
    does, at most as long as a session, and allow what it allows; logging out does not revoke it.
    """
    _require_page(request, options)
    secret = body.token.get_secret_value()
    credential = await cast("Authenticator", request.app.state.authenticate).find(secret)
    if credential is None or credential.token.kind != "api":
        raise Problem(401, "Unauthorized", "this token is not known, or was revoked, or has expired")
    async with audited(app, credential.user.name, "session.begin", f"token/{credential.token.id}"):
        return _let_in(response, credential, secret, options)


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
    shown = secret_of(request.scope) if caller.by_cookie else None
    return SessionAnswer(
        name=caller.name,
        role=caller.role,
        scopes=sorted(caller.scopes),
        auth=options.auth,
        kind=None if caller.token is None else "session" if caller.is_session else "api",
        csrf=None if shown is None else csrf_of(shown.secret),
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
    if not caller.by_cookie or caller.token is None:
        raise Problem(409, "Conflict", "there is no session to end; a token is revoked with DELETE /api/v1/tokens/{id}")
    token = caller.token
    async with audited(app, caller, "session.end", f"token/{token}"):
        if caller.is_session:
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


def _require_page(request: Request, options: ServerOptions) -> None:
    if not options.auth:
        raise Problem(409, "Conflict", "this server has no users: nobody needs to log in")
    require_same_origin(request)


def _let_in(response: Response, credential: Credential, secret: str, options: ServerOptions) -> SessionAnswer:
    token, caller = credential.token, caller_of(credential, by_cookie=True)
    ends_at = token.expires_at
    left = options.session_ttl if ends_at is None else (ends_at - datetime.now(UTC)).total_seconds()
    _set_cookies(response, secret, seconds=max(1, int(min(options.session_ttl, left))), secure=options.secure_cookies)
    return SessionAnswer(
        name=caller.name,
        role=caller.role,
        scopes=sorted(caller.scopes),
        auth=True,
        kind=token.kind,
        csrf=csrf_of(secret),
        expires_at=ends_at,
        version=__version__,
        permissions=_permissions(caller),
    )


def _set_cookies(response: Response, secret: str, *, seconds: int, secure: bool) -> None:
    for name, text, hidden in ((COOKIE, secret, True), (CSRF_COOKIE, csrf_of(secret), False)):
        response.set_cookie(
            name,
            text,
            max_age=seconds,
            path="/",
            secure=secure,
            httponly=hidden,
            samesite="lax",
        )
