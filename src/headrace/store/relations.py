"""The part of the seam for whoever looks at one task: what it has to do with others."""

from datetime import datetime
from typing import NamedTuple, Protocol

from headrace.core.limits import Gate
from headrace.core.states import TaskState
from headrace.core.task import EdgeKind


class Relative(NamedTuple):
    """A task at the other end of an edge."""

    id: int
    name: str
    label: str | None
    state: TaskState
    kind: EdgeKind
    passes: bool  # the result of the upper one goes to the lower one


class Below(NamedTuple):
    """A task, or one that waits for it, or for one that does."""

    id: int
    name: str
    label: str | None
    state: TaskState


class Relations(Protocol):
    async def gates(self, task: int) -> tuple[Gate, ...] | None:
        """The limits, rates and the order that it was enqueued with; None where there is no such task."""
        ...

    async def parents(self, task: int, *, limit: int) -> list[Relative]:
        """What it waits for, or waited for, and is still there; by the order of its edges."""
        ...

    async def children(self, task: int, *, limit: int) -> list[Relative]:
        """What waits for it, or waited for it; by id."""
        ...

    async def below(self, task: int, *, limit: int) -> list[Below]:
        """It, and everything that `clear` would run once more with it, nearest first."""
        ...

    async def fired_by(self, task: int, created_at: datetime) -> str | None:
        """The name of the schedule that enqueued it; None for others, and where its runs are forgotten. `created_at` is
        the task's: runs are found by the time of their fire."""
        ...
