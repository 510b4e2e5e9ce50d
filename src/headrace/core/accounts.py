"""Who may do what: users, their tokens, and the list of what was done in whose name."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from headrace.core.values import value


class Role(StrEnum):
    """What a person is to this ledger; each may do what the ones before it may, but for what is said there."""

    VIEWER = "viewer"  # sees everything, does nothing
    USER = "user"  # submits, sees and controls its own
    OPERATOR = "operator"  # sees and controls everything; approves
    ADMIN = "admin"  # users, tokens and audit as well

    @property
    def rank(self) -> int:
        return _RANKS[self]

    def reaches(self, other: "Role") -> bool:
        return self.rank >= other.rank


_RANKS = {role: rank for rank, role in enumerate(Role)}


class Scope(StrEnum):
    """What a token may be used for; never for more than its user's role allows."""

    READ = "read"
    SUBMIT = "submit"
    CONTROL = "control"  # retry, cancel, delete, pause, replay, approve
    ADMIN = "admin"


TokenKind = Literal["api", "session"]


@value
class UserRecord:
    """A name is given once: a user can be disabled, not removed, because tasks and the audit log go on naming it."""

    name: str
    role: Role
    password: str | None  # argon2, as its library writes it; None: cannot log in, only use tokens
    disabled: bool
    failed_logins: int
    locked_until: datetime | None
    created_at: datetime
    changed_at: datetime


@value
class NewToken:
    user: str
    kind: TokenKind
    label: str
    digest: str  # SHA-256 of the secret, in hex; the secret itself is nowhere
    hint: str  # its first characters, by which its owner knows it
    scopes: tuple[Scope, ...]
    ttl: float | None = None  # seconds; None: until it is revoked
    not_after: datetime | None = None  # it ends by then, whatever its ttl


@value
class TokenRecord:
    id: int
    user: str
    kind: TokenKind
    label: str
    hint: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


@value
class Credential:
    """A token that is good now, with its user."""

    user: UserRecord
    token: TokenRecord


@value
class NewAudit:
    """Written before the act, so that nothing is done that is not on the list."""

    actor: str
    act: str  # tasks.retry, queues.pause, users.add, …
    subject: str  # task/17, queue/mail, user/ada
    detail: str = "{}"  # canonical JSON, redacted
    request: str | None = None  # the id of the HTTP request


@value
class AuditRecord:
    id: int
    at: datetime
    actor: str
    act: str
    subject: str
    detail: str
    request: str | None
    outcome: str | None  # None: begun, and nobody has said how it ended
