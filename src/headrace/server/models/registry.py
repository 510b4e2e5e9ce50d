"""What can be submitted, over the wire."""

from typing import Literal

from pydantic import Field

from headrace.core.accounts import Role
from headrace.server.models.base import Json, Shown


class OptionsShown(Shown):
    """What holds for a call that says nothing else. Durations are seconds."""

    timeout: float | None
    soft_timeout: float | None
    max_age: float | None
    result_ttl: float | None
    max_attempts: int
    dead_letter: bool = Field(description="Its failures are kept as dead letters")
    unique: bool = Field(description="One unfinished task at a time by its key")
    ordered: bool = Field(description="One at a time, in order, by its key")
    limits: list[str] = Field(examples=[["5 at once", "100 in 60 s"]])
    critical: bool
    tags: list[str]
    metadata: Json
    approval: Role | None = Field(description="Who of a lesser role submits it waits for somebody who has this one")


class Registered(Shown):
    name: str = Field(examples=["tasks.welcome"])
    aliases: list[str]
    summary: str | None = Field(description="The first line of its docstring", examples=["Greet somebody."])
    doc: str | None
    queue: str = Field(examples=["default"])
    priority: int
    kind: Literal["async", "sync"]
    executor: str = Field(examples=["coroutine"])
    options: OptionsShown
    can_submit: bool = Field(description="Whether the caller may submit it")
    needs_approval: bool = Field(description="Whether it waits for somebody's word when the caller submits it")
    signature: str = Field(examples=["(user_id: int, greeting: str = 'hello') -> str"])
    # By this name here: pydantic has a method that is called `schema`.
    parameters: Json = Field(
        serialization_alias="schema",
        description="JSON Schema 2020-12 of the arguments by name. `*` are those of a `*args`: send them as `args`",
        examples=[{"type": "object", "properties": {"user_id": {"type": "integer"}}, "required": ["user_id"]}],
    )
    secrets: list[str] = Field(description="Arguments whose names say that they are not shown")
    complete: bool = Field(description="False: a type has no schema and is any JSON here")


class Registry(Shown):
    items: list[Registered] = Field(description="By name")
    commands: bool = Field(description="Whether the caller may submit commands")
    commands_need_approval: bool
    queues: list[str] = Field(description="Of these tasks, and others that have tasks now")
