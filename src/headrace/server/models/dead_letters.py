"""Dead letters over the wire: failed tasks that are kept for somebody to look at."""

from typing import Self

from pydantic import Field, model_validator

from headrace.server.models.base import Given, Name


class DeadLetterFilter(Given):
    """Which ones. An empty one is refused: say `all`."""

    queue: list[Name] = Field(default_factory=list, max_length=100)
    name: list[Name] = Field(default_factory=list, max_length=100, examples=[["tasks.charge"]])
    owner: Name | None = None
    all: bool = Field(default=False, description="Whatever there is")
    limit: int | None = Field(default=None, ge=1, le=1_000_000)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not any((self.queue, self.name, self.owner, self.all)):
            raise ValueError("this would be every dead letter: narrow it down, or say all: true")
        return self
