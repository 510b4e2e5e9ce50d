"""Tokens: everyone's own; admins see and revoke those of all.

To make and revoke them takes a session, or a token with the scope control or admin. Any token may revoke itself.
"""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request

from headrace.client.accounts import digest_of, hint_of, new_secret
from headrace.core.accounts import NewToken, Role, Scope, TokenRecord
from headrace.core.errors import NotFound
from headrace.server.access import Id, TheApp, permit
from headrace.server.auditing import audited
from headrace.server.auth.authenticating import Authenticator
from headrace.server.auth.caller import SCOPES, Caller
from headrace.server.models.accounts import CreatedToken, CreateToken, TokenAnswer, TokensAnswer, UserName
from headrace.server.problems import Problem

router = APIRouter(prefix="/tokens", tags=["tokens"])
Anybody = Annotated[Caller, Depends(permit(Scope.READ))]


def _managing(caller: Caller) -> Caller:
    if not caller.manages_tokens:
        raise Problem(
            403, "Forbidden", "to make tokens and to revoke others than this one takes a login, or the scope 'control'"
        )
    return caller


async def managing(caller: Anybody) -> Caller:
    return _managing(caller)


Manager = Annotated[Caller, Depends(managing)]


@router.get("")
async def list_tokens(
    app: TheApp,
    caller: Anybody,
    user: Annotated[UserName | None, Query(description="Whose; yours without it. Others' are for admins.")] = None,
    everyone: Annotated[bool, Query(description="Those of all users; for admins.")] = False,
    kind: Annotated[Literal["api", "session"] | None, Query()] = None,
) -> TokensAnswer:
    """Newest first, with those that are revoked or have expired."""
    whose = None if everyone else user or caller.name
    _of_others(caller, whose)
    found = await app.engine.run(lambda store: store.tokens(user=whose, kind=kind))
    return TokensAnswer(items=[TokenAnswer.of(token) for token in found])


@router.post("", status_code=201)
async def create_token(
    body: CreateToken,
    app: TheApp,
    caller: Manager,
    user: Annotated[UserName | None, Query(description="For whom; for you without it. Others' are for admins.")] = None,
) -> CreatedToken:
    """A new secret, which is shown in this answer and never again. It allows no more than what makes it does, and made
    with a token it ends no later than that one: `expires_at` says when. A session is for people, and sets no end.
    """
    whose = user or caller.name
    _of_others(caller, whose)
    most = caller.scopes if whose == caller.name else await _scopes_of(app, whose)
    wanted = most if body.scopes is None else frozenset(body.scopes)
    if not wanted:
        raise Problem(422, "Unprocessable Content", "a token without a scope allows nothing")
    if not wanted <= most:
        more = ", ".join(sorted(wanted - most))
        raise Problem(403, "Forbidden", f"a token allows no more than what it is made with, which has no scope {more}")
    secret = new_secret()
    new = NewToken(
        user=whose,
        kind="api",
        label=body.label,
        digest=digest_of(secret),
        hint=hint_of(secret),
        scopes=tuple(sorted(wanted)),
        ttl=body.ttl,
        not_after=None if caller.is_session else caller.until,
    )
    said = {"label": body.label, "scopes": sorted(wanted), "ttl": body.ttl}
    async with audited(app, caller, "tokens.create", f"user/{whose}", said):
        made = await app.engine.run(lambda store: store.add_token(new))
    return CreatedToken(**TokenAnswer.of(made).model_dump(), secret=secret)


@router.delete("/{id}", status_code=204)
async def revoke_token(id: Id, request: Request, app: TheApp, caller: Anybody) -> None:
    """It is refused from now on; on other servers within five seconds. With the scope read alone: the token itself."""
    if id != caller.token:
        _managing(caller)
    # What is not theirs is not there for them: ids of others' tokens are not to be counted.
    whose = None if _is_admin(caller) else caller.name
    mine = await app.engine.run(lambda store: store.tokens(user=whose))
    token = _by_id(mine, id)
    async with audited(app, caller, "tokens.revoke", f"token/{id}", {"user": token.user, "label": token.label}):
        await app.engine.run(lambda store: store.revoke_token(id))
    if isinstance(found := request.app.state.authenticate, Authenticator):
        found.forget(token=id)


def _by_id(tokens: list[TokenRecord], id: int) -> TokenRecord:
    found = next((token for token in tokens if token.id == id), None)
    if found is None:
        raise NotFound(f"no token {id} of yours")
    return found


def _is_admin(caller: Caller) -> bool:
    return caller.role is Role.ADMIN and Scope.ADMIN in caller.scopes


def _of_others(caller: Caller, whose: str | None) -> None:
    if whose == "":
        raise Problem(409, "Conflict", "this server has no users, and so no tokens of yours; say ?user=…")
    if whose != caller.name and not _is_admin(caller):
        raise Problem(403, "Forbidden", "the tokens of others are for admins")


async def _scopes_of(app: TheApp, name: str) -> frozenset[Scope]:
    user = await app.engine.run(lambda store: store.get_user(name))
    if user is None:
        raise NotFound(f"no user {name!r}")
    return SCOPES[user.role]
