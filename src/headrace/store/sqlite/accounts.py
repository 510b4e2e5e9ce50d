"""Users, tokens and the audit log. The write lock makes of two at once one after the other."""

from collections.abc import Sequence

import orjson

from headrace.core.accounts import AuditRecord, Credential, NewAudit, NewToken, Role, TokenKind, TokenRecord, UserRecord
from headrace.store import account_rows as rows
from headrace.store.instants import to_micros
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.enqueueing import seconds_to_micros
from headrace.store.sqlite.inspection import instant
from headrace.store.texts import is_storable, mended

_EVER = 2**63 - 1


def add_user(transaction: Transaction, name: str, role: Role, password: str | None) -> UserRecord:
    parameters = {"name": name, "role": role, "password": password, "now": transaction.now}
    row = transaction.row("insert_user", parameters)
    if row is None:
        raise rows.name_taken(name)
    return rows.user_record(row, instant)


def add_first_admin(transaction: Transaction, name: str, token: NewToken) -> TokenRecord | None:
    if transaction.row("any_user") is not None:
        # Perhaps an earlier call with this token, whose answer was lost.
        row = transaction.row("token_of_digest", (token.digest,))
        return None if row is None else rows.token_record(row, instant)
    add_user(transaction, name, Role.ADMIN, None)
    return add_token(transaction, token, None)


def get_user(transaction: Transaction, name: str) -> UserRecord | None:
    row = transaction.row("get_user", (name,))
    return None if row is None else rows.user_record(row, instant)


def change_user(
    transaction: Transaction, name: str, role: Role | None, password: str | None, disabled: bool | None
) -> UserRecord:
    before = get_user(transaction, name)
    if before is None:
        raise rows.unknown_user(name)
    parameters = {"name": name, "role": role, "password": password, "disabled": disabled, "now": transaction.now}
    row = transaction.row("change_user", parameters)
    assert row is not None
    after = rows.user_record(row, instant)
    if rows.is_admin(before) and not rows.is_admin(after) and transaction.row("another_admin", (name,)) is None:
        raise rows.last_admin(name)
    if password is not None or disabled:
        transaction.run("revoke_sessions", {"name": name, "now": transaction.now})
    return after


def login_failed(transaction: Transaction, name: str, most: int, lock: float) -> UserRecord | None:
    parameters = {"name": name, "most": most, "lock": seconds_to_micros(lock), "now": transaction.now}
    row = transaction.row("login_failed", parameters)
    return None if row is None else rows.user_record(row, instant)


def add_token(transaction: Transaction, token: NewToken, password: str | None) -> TokenRecord:
    found = transaction.row("user_for_token", (token.user,))
    if found is None:
        raise rows.no_enabled_user(token.user)
    if password is not None and found[0] != password:
        raise rows.password_changed(token.user)
    id = _take_ids(transaction, 1)
    parameters = {
        "id": id,
        "user": token.user,
        "kind": token.kind,
        "label": mended(token.label),
        "digest": token.digest,
        "hint": token.hint,
        "scopes": rows.scopes_text(token),
        "now": transaction.now,
        "expires_at": _expires_at(token, transaction.now),
    }
    row = transaction.row("insert_token", parameters)
    assert row is not None
    return rows.token_record(row, instant)


def _expires_at(token: NewToken, now: int) -> int | None:
    ends = [] if token.ttl is None else [now + seconds_to_micros(token.ttl)]
    if token.not_after is not None:
        ends.append(to_micros(token.not_after))
    return min(ends, default=None)


def write_audit(transaction: Transaction, entries: Sequence[NewAudit]) -> list[int]:
    first = _take_ids(transaction, len(entries))
    ids = list(range(first, first + len(entries)))
    texts = map(rows.audit_texts, entries)
    transaction.run_many("insert_audit", [(id, transaction.now, *text) for id, text in zip(ids, texts, strict=True)])
    return ids


def _take_ids(transaction: Transaction, n: int) -> int:
    """The first of `n`."""
    row = transaction.row("take_account_ids", (n,))
    assert row is not None
    return int(row[0]) - n


class Accounting(Part):
    async def add_user(self, name: str, role: Role, *, password: str | None = None) -> UserRecord:
        rows.check_user_name(name)
        return await self.database.write(lambda transaction: add_user(transaction, name, role, password))

    async def add_first_admin(self, name: str, token: NewToken) -> TokenRecord | None:
        rows.check_user_name(name)
        return await self.database.write(lambda transaction: add_first_admin(transaction, name, token))

    async def users(self) -> list[UserRecord]:
        found = await self.database.read(lambda transaction: transaction.rows("all_users"))
        return [rows.user_record(row, instant) for row in found]

    async def get_user(self, name: str) -> UserRecord | None:
        if not rows.is_user_name(name):
            return None
        return await self.database.read(lambda transaction: get_user(transaction, name))

    async def change_user(
        self, name: str, *, role: Role | None = None, password: str | None = None, disabled: bool | None = None
    ) -> UserRecord:
        if not rows.is_user_name(name):
            raise rows.unknown_user(name)
        return await self.database.write(lambda transaction: change_user(transaction, name, role, password, disabled))

    async def renew_password(self, name: str, *, verified: str, fresh: str) -> UserRecord | None:
        if not rows.is_user_name(name):
            return None
        said = {"name": name, "verified": verified, "fresh": fresh}
        row = await self.database.write(lambda transaction: transaction.row("renew_password", said))
        return None if row is None else rows.user_record(row, instant)

    async def login_failed(self, name: str, *, most: int, lock: float) -> UserRecord | None:
        if not rows.is_user_name(name):
            return None
        return await self.database.write(lambda transaction: login_failed(transaction, name, most, lock))

    async def login_succeeded(self, name: str) -> None:
        if not rows.is_user_name(name):
            return
        await self.database.write(
            lambda transaction: transaction.run("login_succeeded", {"name": name, "now": transaction.now})
        )

    async def add_token(self, token: NewToken, *, password: str | None = None) -> TokenRecord:
        if not rows.is_user_name(token.user):
            raise rows.no_enabled_user(token.user)
        return await self.database.write(lambda transaction: add_token(transaction, token, password))

    async def find_token(self, digest: str) -> Credential | None:
        row = await self.database.read(
            lambda transaction: transaction.row("find_token", {"digest": digest, "now": transaction.now})
        )
        return None if row is None else rows.credential(row, instant)

    async def tokens(self, *, user: str | None = None, kind: TokenKind | None = None) -> list[TokenRecord]:
        if not is_storable(user):
            return []
        query = "tokens" if user is None else "tokens_of_user"
        found = await self.database.read(lambda transaction: transaction.rows(query, {"user": user, "kind": kind}))
        return [rows.token_record(row, instant) for row in found]

    async def touch_tokens(self, ids: Sequence[int]) -> None:
        if ids:
            text = orjson.dumps(list(ids)).decode()
            await self.database.write(
                lambda transaction: transaction.run("touch_tokens", {"ids": text, "now": transaction.now})
            )

    async def revoke_token(self, id: int) -> bool:
        return await self.database.write(
            lambda transaction: transaction.run("revoke_token", {"id": id, "now": transaction.now}) == 1
        )

    async def write_audit(self, entries: Sequence[NewAudit]) -> list[int]:
        if not entries:
            return []
        return await self.database.write(lambda transaction: write_audit(transaction, entries))

    async def close_audit(self, ids: Sequence[int], outcome: str) -> None:
        if ids:
            parameters = {"ids": orjson.dumps(list(ids)).decode(), "outcome": mended(outcome)}
            await self.database.write(lambda transaction: transaction.run("close_audit", parameters))

    async def audit(
        self,
        *,
        actor: str | None = None,
        act: str | None = None,
        subject: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[AuditRecord]:
        if not all(map(is_storable, (actor, act, subject))):
            return []
        last = _EVER if before is None else before
        wanted = {"actor": actor, "act": act, "subject": subject, "before": last, "limit": limit}
        query = rows.audit_query(actor=actor, act=act, subject=subject)
        found = await self.database.read(lambda transaction: transaction.rows(query, wanted))
        return [rows.audit_record(row, instant) for row in found]
