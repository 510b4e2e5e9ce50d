"""Users, tokens and the audit log."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from headrace.core.accounts import AuditRecord, Credential, NewAudit, NewToken, Role, TokenKind, TokenRecord, UserRecord
from headrace.store import account_rows as rows
from headrace.store.postgres.connection import Connection, Database, column
from headrace.store.postgres.enqueueing import Enqueueing
from headrace.store.texts import is_storable, mended

_EVER = 2**63 - 1


def _instant(value: Any) -> datetime | None:
    return value


class Accounts:
    def __init__(self, database: Database, queries: Mapping[str, str], enqueueing: Enqueueing) -> None:
        self._database = database
        self._queries = queries
        self._enqueueing = enqueueing

    async def add_user(self, name: str, role: Role, *, password: str | None = None) -> UserRecord:
        rows.check_user_name(name)
        # Not repeatable: a second try could not tell its own row from that of somebody else.
        found = await self._database.fetch(self._queries["insert_user"], name, role, password)
        if not found:
            raise rows.name_taken(name)
        return rows.user_record(found[0], _instant)

    async def add_first_admin(self, name: str, token: NewToken) -> TokenRecord | None:
        rows.check_user_name(name)
        [id] = await self._enqueueing.take_ids(1)

        async def write(connection: Connection) -> TokenRecord | None:
            await connection.execute(self._queries["lock_users"])
            if await connection.fetch(self._queries["any_user"]):
                # Perhaps an earlier call with this token, whose answer was lost.
                found = await connection.fetch(self._queries["token_of_digest"], token.digest)
                return rows.token_record(found[0], _instant) if found else None
            await connection.fetch(self._queries["insert_user"], name, Role.ADMIN, None)
            return await self._written(connection, id, token)

        return await self._database.run(write, repeatable=True)

    async def users(self) -> list[UserRecord]:
        found = await self._database.fetch(self._queries["all_users"], repeatable=True)
        return [rows.user_record(row, _instant) for row in found]

    async def get_user(self, name: str) -> UserRecord | None:
        if not rows.is_user_name(name):
            return None
        found = await self._database.fetch(self._queries["get_user"], name, repeatable=True)
        return rows.user_record(found[0], _instant) if found else None

    async def change_user(
        self, name: str, *, role: Role | None = None, password: str | None = None, disabled: bool | None = None
    ) -> UserRecord:
        if not rows.is_user_name(name):
            raise rows.unknown_user(name)
        lessens = disabled is True or (role is not None and role is not Role.ADMIN)

        async def write(connection: Connection) -> UserRecord:
            # Before the row itself, in one order, so that no two wait for each other.
            admins = column(await connection.fetch(self._queries["hold_admins"])) if lessens else []
            found = await connection.fetch(self._queries["change_user"], name, role, password, disabled)
            if not found:
                raise rows.unknown_user(name)
            if admins == [name]:
                raise rows.last_admin(name)
            if password is not None or disabled:
                await connection.execute(self._queries["revoke_sessions"], name)
            return rows.user_record(found[0], _instant)

        return await self._database.run(write, repeatable=True)

    async def renew_password(self, name: str, *, verified: str, fresh: str) -> UserRecord | None:
        if not rows.is_user_name(name):
            return None
        found = await self._database.fetch(self._queries["renew_password"], name, verified, fresh, repeatable=True)
        return rows.user_record(found[0], _instant) if found else None

    async def login_failed(self, name: str, *, most: int, lock: float) -> UserRecord | None:
        if not rows.is_user_name(name):
            return None
        found = await self._database.fetch(self._queries["login_failed"], name, most, lock)
        return rows.user_record(found[0], _instant) if found else None

    async def login_succeeded(self, name: str) -> None:
        if rows.is_user_name(name):
            await self._database.fetch(self._queries["login_succeeded"], name, repeatable=True)

    async def add_token(self, token: NewToken, *, password: str | None = None) -> TokenRecord:
        if not rows.is_user_name(token.user):
            raise rows.no_enabled_user(token.user)
        [id] = await self._enqueueing.take_ids(1)

        async def write(connection: Connection) -> TokenRecord:
            found = await connection.fetch(self._queries["user_for_token"], token.user)
            if not found:
                raise rows.no_enabled_user(token.user)
            if password is not None and found[0][0] != password:
                raise rows.password_changed(token.user)
            return await self._written(connection, id, token)

        return await self._database.run(write, repeatable=True)

    async def _written(self, connection: Connection, id: int, token: NewToken) -> TokenRecord:
        said = (
            token.user,
            token.kind,
            mended(token.label),
            token.digest,
            token.hint,
            rows.scopes_text(token),
            token.ttl,
            token.not_after,
        )
        await connection.execute(self._queries["insert_token"], id, *said)
        [row] = await connection.fetch(self._queries["token_of_digest"], token.digest)
        return rows.token_record(row, _instant)

    async def find_token(self, digest: str) -> Credential | None:
        found = await self._database.fetch(self._queries["find_token"], digest, repeatable=True)
        return rows.credential(found[0], _instant) if found else None

    async def tokens(self, *, user: str | None = None, kind: TokenKind | None = None) -> list[TokenRecord]:
        if not is_storable(user):
            return []
        found = await self._database.fetch(self._queries["tokens"], user, kind, repeatable=True)
        return [rows.token_record(row, _instant) for row in found]

    async def touch_tokens(self, ids: Sequence[int]) -> None:
        if ids:
            await self._database.fetch(self._queries["touch_tokens"], list(ids), repeatable=True)

    async def revoke_token(self, id: int) -> bool:
        return bool(await self._database.fetch(self._queries["revoke_token"], id))

    async def write_audit(self, entries: Sequence[NewAudit]) -> list[int]:
        if not entries:
            return []
        taken = await self._database.fetch(self._queries["take_audit_ids"], len(entries), repeatable=True)
        ids = sorted(column(taken))
        columns = (list(texts) for texts in zip(*map(rows.audit_texts, entries), strict=True))
        await self._database.fetch(self._queries["insert_audit"], ids, *columns, repeatable=True)
        return ids

    async def close_audit(self, ids: Sequence[int], outcome: str) -> None:
        if ids:
            await self._database.fetch(self._queries["close_audit"], list(ids), mended(outcome), repeatable=True)

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
        query = self._queries[rows.audit_query(actor=actor, act=act, subject=subject)]
        last = _EVER if before is None else before
        found = await self._database.fetch(query, actor, act, subject, last, limit, repeatable=True)
        return [rows.audit_record(row, _instant) for row in found]
