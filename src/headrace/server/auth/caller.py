"""Who calls, and the pure answers to what they may do."""

from datetime import datetime

from headrace.core.accounts import Credential, Role, Scope
from headrace.core.values import value

# What each role may be given at most.
SCOPES: dict[Role, frozenset[Scope]] = {
    Role.VIEWER: frozenset({Scope.READ}),
    Role.USER: frozenset({Scope.READ, Scope.SUBMIT, Scope.CONTROL}),
    Role.OPERATOR: frozenset({Scope.READ, Scope.SUBMIT, Scope.CONTROL}),
    Role.ADMIN: frozenset(Scope),
}


@value
class Caller:
    name: str
    role: Role
    scopes: frozenset[Scope]
    token: int | None = None
    is_session: bool = False  # logged in with a password
    by_cookie: bool = False  # acts need the CSRF header
    until: datetime | None = None  # when the token ends

    @property
    def sees_all(self) -> bool:
        return self.role is not Role.USER

    @property
    def controls_all(self) -> bool:
        return self.role.reaches(Role.OPERATOR)

    def may_see(self, owner: str | None) -> bool:
        return self.sees_all or owner == self.name

    def may_control(self, owner: str | None) -> bool:
        """Whether an act on a thing of this owner is theirs to do. Whoever may not even act is stopped by scope."""
        return self.controls_all or (self.role is Role.USER and owner == self.name)

    @property
    def only_own(self) -> str | None:
        """The owner that their lists are cut down to; None: everything."""
        return None if self.sees_all else self.name

    @property
    def manages_tokens(self) -> bool:
        """Whether they make and revoke tokens. One that was handed out to look with is no key to more of its kind."""
        return self.is_session or bool(self.scopes & {Scope.CONTROL, Scope.ADMIN})

    @property
    def owns_as(self) -> str | None:
        """The owner of what they submit."""
        return self.name or None


# In a server without auth everybody is this one; what it submits has no owner.
ANYONE = Caller(name="", role=Role.ADMIN, scopes=frozenset(Scope))


def caller_of(credential: Credential, *, by_cookie: bool = False) -> Caller:
    """A token may be wider than the role is by now: what counts is what both allow."""
    user, token = credential.user, credential.token
    return Caller(
        name=user.name,
        role=user.role,
        scopes=frozenset(token.scopes) & SCOPES[user.role],
        token=token.id,
        is_session=token.kind == "session",
        by_cookie=by_cookie,
        until=token.expires_at,
    )
