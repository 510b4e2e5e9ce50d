"""The part of the seam that knows people: users, tokens, audit."""

from collections.abc import Sequence
from typing import Protocol

from headrace.core.accounts import AuditRecord, Credential, NewAudit, NewToken, Role, TokenKind, TokenRecord, UserRecord


class Accounts(Protocol):
    async def add_user(self, name: str, role: Role, *, password: str | None = None) -> UserRecord:
        """WrongState when the name is taken."""
        ...

    async def add_first_admin(self, name: str, token: NewToken) -> TokenRecord | None:
        """The first user of a ledger, an admin with this token, in one transaction; None, and nothing is written, when
        there is a user already. Of many at once, one gets its token. Whoever lost the answer asks again with the same
        token, and gets it."""
        ...

    async def users(self) -> list[UserRecord]:
        """All of them, by name."""
        ...

    async def get_user(self, name: str) -> UserRecord | None: ...

    async def change_user(
        self, name: str, *, role: Role | None = None, password: str | None = None, disabled: bool | None = None
    ) -> UserRecord:
        """What is None stays. A new password, and disabling, revoke every session of theirs in the same transaction; a
        new password lifts a lock. NotFound; WrongState when no enabled admin would be left."""
        ...

    async def renew_password(self, name: str, *, verified: str, fresh: str) -> UserRecord | None:
        """The same password hashed anew: `fresh` in place of `verified`, and nothing else changes; sessions go on.
        None, and nothing is written, when the user has another hash by now, is disabled, or is not there."""
        ...

    async def login_failed(self, name: str, *, most: int, lock: float) -> UserRecord | None:
        """Count a wrong password; the `most`-th in a row locks the user for `lock` seconds and starts counting anew.
        One conditional update. None when there is no such user."""
        ...

    async def login_succeeded(self, name: str) -> None:
        """Forget the wrong passwords."""
        ...

    async def add_token(self, token: NewToken, *, password: str | None = None) -> TokenRecord:
        """NotFound when there is no such user, or it is disabled. A login says by which `password` (its hash) it came:
        WrongState when that has been changed meanwhile, or the session would outlive the change."""
        ...

    async def find_token(self, digest: str) -> Credential | None:
        """By its digest, when it is neither revoked nor expired by the store's clock, and its user is enabled."""
        ...

    async def tokens(self, *, user: str | None = None, kind: TokenKind | None = None) -> list[TokenRecord]:
        """Newest first; revoked and expired ones, too."""
        ...

    async def touch_tokens(self, ids: Sequence[int]) -> None:
        """They were used now. Callers gather them: at most once a minute for each."""
        ...

    async def revoke_token(self, id: int) -> bool:
        """False when there is none, or it was revoked before."""
        ...

    async def write_audit(self, entries: Sequence[NewAudit]) -> list[int]:
        """Durable when this returns; the ids."""
        ...

    async def close_audit(self, ids: Sequence[int], outcome: str) -> None:
        """How the acts ended: `done`, or what went wrong. The first outcome of each stands."""
        ...

    async def audit(
        self,
        *,
        actor: str | None = None,
        act: str | None = None,
        subject: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[AuditRecord]:
        """Newest first; `before` is the id of the last one seen."""
        ...
