"""`app.users`, `app.tokens`, `app.audit`: who may do what through a server, by which tokens, and what they did.

Whoever has the code or the database needs none of them: they are for those who come by HTTP.
"""

import hashlib
import secrets
from collections.abc import Iterable, Sequence

from headrace.client.bridge import sync_form
from headrace.client.engine import Engine
from headrace.core.accounts import AuditRecord, NewToken, Role, Scope, TokenKind, TokenRecord, UserRecord
from headrace.core.durations import Duration, seconds
from headrace.core.errors import NotFound, OptionError
from headrace.core.values import value

PREFIX = "hr_"
_HINT = 8  # characters that stay known
# Without a word on it, a token does what its user does, but for letting others in.
USUAL_SCOPES = (Scope.READ, Scope.SUBMIT, Scope.CONTROL)


@value
class MadeToken:
    """A new token. Its secret is here and nowhere else: who loses it makes another."""

    secret: str
    record: TokenRecord


def new_secret() -> str:
    """256 random bits: nothing to guess, so that a plain digest is enough."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    """What the ledger keeps of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def hint_of(secret: str) -> str:
    return secret[:_HINT]


def drafted(
    user: str,
    secret: str,
    *,
    label: str = "",
    scopes: Iterable[Scope | str] = USUAL_SCOPES,
    expires_in: Duration | None = None,
) -> NewToken:
    """A token of this secret, as a store takes it. OptionError when it would be good for nothing."""
    wanted = tuple(dict.fromkeys(_scope(scope) for scope in scopes))
    if not wanted:
        raise OptionError("a token without a scope is good for nothing; give it one of: " + ", ".join(Scope))
    ttl = None if expires_in is None else seconds(expires_in, name="expires_in")
    if ttl is not None and ttl <= 0:
        raise OptionError(f"a token that expires in {ttl:g} s is good for nothing")
    return NewToken(
        user=user,
        kind="api",
        label=label,
        digest=digest_of(secret),
        hint=hint_of(secret),
        scopes=wanted,
        ttl=ttl,
    )


def role_of(text: Role | str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise OptionError(f"there is no role {text!r}; there are: {', '.join(Role)}") from None


def _scope(text: Scope | str) -> Scope:
    try:
        return Scope(text)
    except ValueError:
        raise OptionError(f"there is no scope {text!r}; there are: {', '.join(Scope)}") from None


class Users:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def alist(self) -> Sequence[UserRecord]:
        """All of them, by name."""
        return await self._engine.run(lambda store: store.users())

    async def aget(self, name: str) -> UserRecord:
        """One of them. NotFound when there is none of that name."""
        record = await self._engine.run(lambda store: store.get_user(name))
        if record is None:
            raise NotFound(absent_user(name))
        return record

    async def aadd(self, name: str, role: Role | str = Role.USER, *, password_hash: str | None = None) -> UserRecord:
        """Let somebody in. Without a password (a hash by `headrace.server.auth.passwords`) only by tokens.

        WrongState when the name is taken: it is given once.
        """
        wanted = role_of(role)
        return await self._engine.run(lambda store: store.add_user(name, wanted, password=password_hash))

    async def achange_role(self, name: str, role: Role | str) -> UserRecord:
        """NotFound; WrongState when no enabled admin would be left."""
        wanted = role_of(role)
        return await self._engine.run(lambda store: store.change_user(name, role=wanted))

    async def aset_password_hash(self, name: str, password_hash: str) -> UserRecord:
        """Ends every session of theirs, and lifts a lock. NotFound when there is none of that name."""
        return await self._engine.run(lambda store: store.change_user(name, password=password_hash))

    async def adisable(self, name: str) -> UserRecord:
        """Nobody gets in by that name any more: sessions end, tokens are refused. Their tasks go on.

        NotFound; WrongState when no enabled admin would be left.
        """
        return await self._engine.run(lambda store: store.change_user(name, disabled=True))

    async def aenable(self, name: str) -> UserRecord:
        """Let them in again; their tokens are good again, too. NotFound when there is none of that name."""
        return await self._engine.run(lambda store: store.change_user(name, disabled=False))

    get = sync_form(aget)
    add = sync_form(aadd)
    change_role = sync_form(achange_role)
    set_password_hash = sync_form(aset_password_hash)
    disable = sync_form(adisable)
    enable = sync_form(aenable)
    # Last: below this line `list` in an annotation would mean the method.
    list = sync_form(alist)


class Tokens:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def acreate(
        self,
        user: str,
        *,
        label: str = "",
        scopes: Iterable[Scope | str] = USUAL_SCOPES,
        expires_in: Duration | None = None,
    ) -> MadeToken:
        """A token for programs. It never allows more than the role of its user does, whatever its scopes are.

        NotFound when there is no such user, or it is disabled.
        """
        secret = new_secret()
        new = drafted(user, secret, label=label, scopes=scopes, expires_in=expires_in)
        return MadeToken(secret=secret, record=await self._engine.run(lambda store: store.add_token(new)))

    async def alist(self, *, user: str | None = None, kind: TokenKind | None = None) -> Sequence[TokenRecord]:
        """Newest first; revoked and expired ones too, until they are pruned."""
        return await self._engine.run(lambda store: store.tokens(user=user, kind=kind))

    async def arevoke(self, id: int) -> bool:
        """It is refused from now on. False when there is none, or it was revoked before."""
        return await self._engine.run(lambda store: store.revoke_token(id))

    create = sync_form(acreate)
    revoke = sync_form(arevoke)
    list = sync_form(alist)


class Audit:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def alist(
        self,
        *,
        actor: str | None = None,
        act: str | None = None,
        subject: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[AuditRecord]:
        """What was done in whose name, newest first. For the next page give `before` the id of the last."""
        return await self._engine.run(
            lambda store: store.audit(actor=actor, act=act, subject=subject, before=before, limit=limit)
        )

    list = sync_form(alist)


def absent_user(name: str) -> str:
    return f"no user {name!r}; `headrace users list` shows those that are there"
