"""What rows and values of users, tokens and the audit log have in common, whatever the database."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import orjson

from headrace.core.accounts import AuditRecord, Credential, NewAudit, NewToken, Role, Scope, TokenRecord, UserRecord
from headrace.core.errors import NotFound, OptionError, WrongState
from headrace.store.texts import mended

# An instant as the database gives it, or None.
type AsInstant = Callable[[Any], datetime | None]

_USER_COLUMNS = 8  # of a row that has a token behind its user
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")


def is_user_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_user_name(name: str) -> None:
    if not is_user_name(name):
        raise OptionError(
            f"{name!r} cannot be the name of a user: it begins with a letter or a digit, goes on with those and "
            ". _ @ + - and has 64 characters at most; nothing was written"
        )


def user_record(row: Sequence[Any], instant: AsInstant) -> UserRecord:
    """A row of: name, role, password, disabled, failed_logins, locked_until, created_at, changed_at."""
    name, role, password, disabled, failed_logins, locked_until, created_at, changed_at = row
    return UserRecord(
        name=name,
        role=Role(role),
        password=password,
        disabled=bool(disabled),
        failed_logins=failed_logins,
        locked_until=instant(locked_until),
        created_at=_known(instant(created_at)),
        changed_at=_known(instant(changed_at)),
    )


def token_record(row: Sequence[Any], instant: AsInstant) -> TokenRecord:
    """A row of: id, user, kind, label, hint, scopes, created_at, expires_at, last_used_at, revoked_at."""
    id, user, kind, label, hint, scopes, created_at, expires_at, last_used_at, revoked_at = row
    return TokenRecord(
        id=id,
        user=user,
        kind=kind,
        label=label,
        hint=hint,
        scopes=tuple(Scope(scope) for scope in orjson.loads(scopes)),
        created_at=_known(instant(created_at)),
        expires_at=instant(expires_at),
        last_used_at=instant(last_used_at),
        revoked_at=instant(revoked_at),
    )


def credential(row: Sequence[Any], instant: AsInstant) -> Credential:
    """The columns of a user, and then those of a token."""
    return Credential(user=user_record(row[:_USER_COLUMNS], instant), token=token_record(row[_USER_COLUMNS:], instant))


def audit_record(row: Sequence[Any], instant: AsInstant) -> AuditRecord:
    """A row of: id, at, actor, act, subject, detail, request, outcome."""
    id, at, actor, act, subject, detail, request, outcome = row
    return AuditRecord(
        id=id,
        at=_known(instant(at)),
        actor=actor,
        act=act,
        subject=subject,
        detail=detail,
        request=request,
        outcome=outcome,
    )


def _known(instant: datetime | None) -> datetime:
    assert instant is not None, "the column may not be empty"
    return instant


def scopes_text(token: NewToken) -> str:
    return orjson.dumps([scope.value for scope in token.scopes]).decode()


def audit_texts(entry: NewAudit) -> tuple[str, str, str, str, str | None]:
    """What somebody sent may be on the list whatever it is made of: what no database stores is marked."""
    request = None if entry.request is None else mended(entry.request)
    return mended(entry.actor), mended(entry.act), mended(entry.subject), mended(entry.detail), request


def audit_query(*, actor: str | None, act: str | None, subject: str | None) -> str:
    """The name of the query whose index leaves the least to look at."""
    if subject is not None:
        return "audit_of_subject"
    if actor is not None:
        return "audit_of_actor"
    return "audit" if act is None else "audit_of_act"


def is_admin(user: UserRecord) -> bool:
    return user.role is Role.ADMIN and not user.disabled


def name_taken(name: str) -> WrongState:
    return WrongState(f"there is a user {name!r} already (a name is given once); nothing was written")


def unknown_user(name: str) -> NotFound:
    return NotFound(f"there is no user {name!r}; nothing was written")


def no_enabled_user(name: str) -> NotFound:
    return NotFound(f"there is no user {name!r}, or it is disabled; no token was made")


def password_changed(name: str) -> WrongState:
    return WrongState(f"the password of user {name!r} has been changed meanwhile; no token was made")


def last_admin(name: str) -> WrongState:
    return WrongState(
        f"user {name!r} is the last enabled admin: without one nobody could add users; nothing changed. "
        "Make another user an admin first"
    )
