"""Users and tokens in memory, for as long as the stores have none of their own."""

from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.core.accounts import AuditRecord, Credential, TokenRecord, UserRecord
from headrace.core.errors import NotFound, WrongState

_STATE: dict[str, Any] = {}


def _of(store: Any) -> Any:
    key = str(getattr(store, "path", None) or id(store))
    return _STATE.setdefault(key, {"users": {}, "tokens": {}, "audit": []})


async def add_user(self: Any, name: str, role: Any, *, password: str | None = None) -> UserRecord:
    users, now = _of(self)["users"], datetime.now(UTC)
    if name in users:
        raise WrongState(f"there is a user {name}")
    users[name] = UserRecord(
        name=name, role=role, password=password, disabled=False, failed_logins=0, locked_until=None, created_at=now,
        changed_at=now,
    )  # fmt: skip
    return users[name]


async def get_user(self: Any, name: str) -> UserRecord | None:
    return _of(self)["users"].get(name)


async def users(self: Any) -> list[UserRecord]:
    return [user for _, user in sorted(_of(self)["users"].items())]


async def add_token(self: Any, token: Any) -> TokenRecord:
    state, now = _of(self), datetime.now(UTC)
    if token.user not in state["users"]:
        raise NotFound(token.user)
    expires = None if token.ttl is None else now + timedelta(seconds=token.ttl)
    state["tokens"][token.digest] = TokenRecord(
        id=len(state["tokens"]) + 1, user=token.user, kind=token.kind, label=token.label, hint=token.hint,
        scopes=token.scopes, created_at=now, expires_at=expires, last_used_at=None, revoked_at=None,
    )  # fmt: skip
    return state["tokens"][token.digest]


async def find_token(self: Any, digest: str) -> Credential | None:
    state = _of(self)
    token = state["tokens"].get(digest)
    return None if token is None else Credential(user=state["users"][token.user], token=token)


async def touch_tokens(self: Any, ids: Any) -> None: ...


async def write_audit(self: Any, entries: Any) -> list[int]:
    audit = _of(self)["audit"]
    ids: list[int] = []
    for entry in entries:
        ids.append(len(audit) + 1)
        audit.append(
            AuditRecord(
                id=ids[-1], at=datetime.now(UTC), actor=entry.actor, act=entry.act, subject=entry.subject,
                detail=entry.detail, request=entry.request, outcome=None,
            )
        )  # fmt: skip
    return ids


async def close_audit(self: Any, ids: Any, outcome: str) -> None:
    for entry in _of(self)["audit"]:
        if entry.id in ids and entry.outcome is None:
            entry.outcome = outcome


VERBS = (add_user, get_user, users, add_token, find_token, touch_tokens, write_audit, close_audit)


def install() -> None:
    from headrace.store.postgres.store import PostgresStore
    from headrace.store.sqlite.store import SQLiteStore

    for kind in (PostgresStore, SQLiteStore):
        if not hasattr(kind, "find_token"):
            for verb in VERBS:
                setattr(kind, verb.__name__, verb)
