"""Dead letters over the wire: failed tasks that are kept for somebody to look at."""

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from headrace.server.models.base import Given, Name, When
from headrace.server.models.tasks import UNTIL

FailureKey = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{20}$")]


class DeadLetterFilter(Given):
    """Which ones. An empty one is refused: say `all`."""

    queue: list[Name] = Field(default_factory=list, max_length=100)
    name: list[Name] = Field(default_factory=list, max_length=100, examples=[["tasks.charge"]])
    owner: Name | None = None
    group: FailureKey | None = Field(default=None, description="Of one failure: the `key` of its group")
    all: bool = Field(default=False, description="Whatever there is")
    until: When | None = Field(default=None, description=UNTIL)
    limit: int | None = Field(default=None, ge=1, le=1_000_000)
    dry_run: bool = Field(default=False, description="Only count them")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not any((self.queue, self.name, self.owner, self.group, self.all)):
            raise ValueError("this would be every dead letter: narrow it down, or say all: true")
        return self
