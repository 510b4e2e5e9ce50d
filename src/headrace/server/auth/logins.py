"""Logging in: one answer for whatever is wrong, and a lock after too many tries."""

import asyncio
import logging
from datetime import UTC, datetime
from weakref import WeakValueDictionary

from headrace.app import App
from headrace.client.accounts import digest_of, hint_of, new_secret
from headrace.core.accounts import NewToken, TokenRecord, UserRecord
from headrace.core.errors import NotFound, WrongState
from headrace.core.values import value
from headrace.server.auth.caller import SCOPES
from headrace.server.auth.passwords import Passwords
from headrace.server.options import ServerOptions
from headrace.server.problems import Problem

_LONGEST_LABEL = 200
log = logging.getLogger("headrace.server")


@value
class Login:
    user: UserRecord
    token: TokenRecord
    secret: str


class Logins:
    def __init__(self, app: App, options: ServerOptions, passwords: Passwords) -> None:
        self._app = app
        self._options = options
        self._passwords = passwords
        # Those who guess at one name stand in line: many at once would all be tried before the first is counted.
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def verified(self, name: str, password: str) -> UserRecord:
        """Who has this name and this password. Problem 401, always the same, for a wrong name, a wrong password, and a
        user who is locked, disabled or has no password.
        """
        line = self._lines.get(name)
        if line is None:
            line = self._lines[name] = asyncio.Lock()
        async with line:
            user = await self._look(name, password)
            if user is None:
                # The password was changed, or hashed anew by another server, after it was looked at: what counts is
                # the one of now. Twice at one login is nobody's doing.
                user = await self._look(name, password)
            if user is None:
                raise self._refused()
            if user.failed_logins:
                await self._app.engine.run(lambda store: store.login_succeeded(name))
            return user

    async def _look(self, name: str, password: str) -> UserRecord | None:
        """Who this is. None when another hash was written while this one was made anew. Problem 401."""
        user = await self._app.engine.run(lambda store: store.get_user(name))
        may = user is not None and not user.disabled and not _is_locked(user)
        hashed = user.password if user is not None and may else None
        verdict = await self._passwords.verify(hashed, password)
        if user is None or hashed is None or not verdict.good:
            # A locked one is not counted: whoever knows a name could keep its owner out for good.
            if hashed is not None:
                await self._count(name)
            raise self._refused()
        if not verdict.stale:
            return user
        fresh = await self._passwords.hash(password)
        return await self._app.engine.run(lambda store: store.renew_password(name, verified=hashed, fresh=fresh))

    async def begin(self, user: UserRecord, *, label: str) -> Login:
        """A session of somebody who was verified."""
        secret = new_secret()
        session = NewToken(
            user=user.name,
            kind="session",
            label=label[:_LONGEST_LABEL],
            digest=digest_of(secret),
            hint=hint_of(secret),
            scopes=tuple(sorted(SCOPES[user.role])),
            ttl=self._options.session_ttl,
        )
        try:
            token = await self._app.engine.run(lambda store: store.add_token(session, password=user.password))
        except (NotFound, WrongState):  # disabled, or given another password, at this moment
            raise self._refused() from None
        return Login(user=user, token=token, secret=secret)

    async def _count(self, name: str) -> None:
        most, lock = self._options.lockout_after, self._options.lockout
        user = await self._app.engine.run(lambda store: store.login_failed(name, most=most, lock=lock))
        if user is not None and _is_locked(user):
            log.warning("user %s cannot log in for %g s, after %d wrong passwords in a row", name, lock, most)

    def _refused(self) -> Problem:
        minutes = round(self._options.lockout / 60)
        return Problem(
            401,
            "Unauthorized",
            f"the name or the password is wrong; after {self._options.lockout_after} wrong ones in a row nobody can "
            f"log in by that name for {minutes} minutes",
        )


def _is_locked(user: UserRecord) -> bool:
    return user.locked_until is not None and user.locked_until > datetime.now(UTC)
