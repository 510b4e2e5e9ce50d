"""Who calls, and the pure answers to what they may do."""

from collections.abc import Iterable

from headrace.core.accounts import Role, Scope
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
    is_session: bool = False  # by cookie: acts need the CSRF header

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
    def owns_as(self) -> str | None:
        """The owner of what they submit."""
        return self.name or None


# In a server without auth everybody is this one; what it submits has no owner.
ANYONE = Caller(name="", role=Role.ADMIN, scopes=frozenset(Scope))


def caller_of(name: str, role: Role, scopes: Iterable[Scope], *, token: int | None, is_session: bool) -> Caller:
    """A token may be wider than the role is by now: what counts is what both allow."""
    return Caller(name=name, role=role, scopes=frozenset(scopes) & SCOPES[role], token=token, is_session=is_session)
