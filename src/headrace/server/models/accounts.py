"""What is sent and answered about users, tokens and sessions."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, StringConstraints

from headrace.core.accounts import Role, Scope, TokenKind, TokenRecord, UserRecord
from headrace.server.auth.passwords import LONGEST, SHORTEST

UserName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$")]
Label = Annotated[str, StringConstraints(max_length=200)]
_LONGEST_TTL = 10 * 366 * 86_400


def _long_enough(password: SecretStr) -> SecretStr:
    if not SHORTEST <= len(password.get_secret_value()) <= LONGEST:
        raise ValueError(f"a password has {SHORTEST} to {LONGEST} characters")
    return password


NewPassword = Annotated[
    SecretStr,
    Field(min_length=SHORTEST, max_length=LONGEST, examples=["correct horse battery"]),
    AfterValidator(_long_enough),
]


class Strict(BaseModel):
    """A member that nobody reads is a mistake of whoever wrote it."""

    model_config = ConfigDict(extra="forbid")


class LogIn(Strict):
    name: Annotated[str, Field(max_length=200, examples=["ada"])]
    password: Annotated[SecretStr, Field(max_length=LONGEST, examples=["correct horse battery"])]


class LogInByToken(Strict):
    token: Annotated[SecretStr, Field(max_length=200, examples=["hr_3fQ9x"])]


class Permissions(BaseModel):
    """What the caller may do, by role and scopes together: what a page shows, and what it hides."""

    submit: bool = Field(description="New tasks and jobs.")
    control: bool = Field(description="Acts on tasks and jobs of their own; an operator's, on all.")
    operate: bool = Field(description="Bulk acts, queues, breakers, schedules, approvals and events.")
    administer: bool = Field(description="Users and the audit log.")
    see_all: bool = Field(description="False: they see their own tasks and jobs, and no schedules or events.")
    manage_tokens: bool = Field(description="Make and revoke tokens of their own.")


class SessionAnswer(BaseModel):
    """Who calls, and what they may do."""

    name: str = Field(description="Empty in a server without users.", examples=["ada"])
    role: Role
    scopes: list[Scope]
    auth: bool = Field(description="Whether this server has users.")
    kind: TokenKind | None = Field(None, description="By what the caller is known.")
    csrf: str | None = Field(None, description="For the header X-CSRF-Token of every act by cookie.")
    expires_at: datetime | None = None
    version: str = Field(description="Of the server.", examples=["0.1.0"])
    permissions: Permissions


class UserAnswer(BaseModel):
    name: str = Field(examples=["ada"])
    role: Role
    disabled: bool
    has_password: bool = Field(description="Can log in; without one only tokens work.")
    locked_until: datetime | None = Field(description="Too many wrong passwords.")
    created_at: datetime
    changed_at: datetime

    @classmethod
    def of(cls, user: UserRecord) -> Self:
        return cls(
            name=user.name,
            role=user.role,
            disabled=user.disabled,
            has_password=user.password is not None,
            locked_until=user.locked_until,
            created_at=user.created_at,
            changed_at=user.changed_at,
        )


class UsersAnswer(BaseModel):
    items: list[UserAnswer]


class AddUser(Strict):
    name: Annotated[UserName, Field(examples=["ada"])]
    role: Role
    password: NewPassword | None = None


class ChangeUser(Strict):
    """What is not given stays."""

    role: Role | None = None
    password: NewPassword | None = None
    disabled: bool | None = None


class TokenAnswer(BaseModel):
    id: int = Field(examples=[7])
    user: str = Field(examples=["ada"])
    kind: TokenKind
    label: str = Field(examples=["deploy script"])
    hint: str = Field(description="The first characters of the secret.", examples=["hr_3fQ9x"])
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, token: TokenRecord) -> Self:
        return cls.model_validate(token, from_attributes=True)


class TokensAnswer(BaseModel):
    items: list[TokenAnswer]


class CreateToken(Strict):
    label: Annotated[Label, Field(examples=["deploy script"])] = ""
    scopes: Annotated[list[Scope] | None, Field(max_length=len(Scope), description="All of yours if left out.")] = None
    ttl: Annotated[
        float | None, Field(gt=0, le=_LONGEST_TTL, description="Seconds; else until it is revoked.", examples=[86400])
    ] = None


class CreatedToken(TokenAnswer):
    secret: str = Field(description="Shown this once.", examples=["hr_" + "x" * 43])
