"""The part of the seam for whoever searches tasks and jobs: narrow rows, from the newest on, as far as one look goes.

A filter that no index serves is decided by whoever calls, row by row. Each look is bounded, says how far it came, and
can be gone on with.
"""

from datetime import datetime
from typing import NamedTuple, Protocol

from headrace.core.states import JobState, TaskState
from headrace.core.task import TaskFilter

# Of an error message; what stands behind that is not searched.
SKIMMED_MESSAGE = 1000


class Skimmed(NamedTuple):
    """What a task can be found by. Never its arguments, nor its result."""

    id: int
    at: datetime  # its end, or the creation of one that has not ended
    name: str
    queue: str
    state: TaskState
    dead_letter: bool
    worker: str | None
    owner: str | None
    label: str | None
    tags: str | None  # JSON, a list of texts
    error_class: str | None
    error_message: str | None  # its first SKIMMED_MESSAGE characters


class SkimmedJob(NamedTuple):
    """What a job can be found by."""

    id: int
    name: str
    state: JobState
    owner: str | None


class Hint(NamedTuple):
    """What can spare rows that nobody will take; whoever calls decides all the same."""

    word: str | None = None  # in small ASCII letters: in id, name, queue, state, worker, owner, label, tags or error
    tagged: bool = False  # only those that have tags


class Skim[P](NamedTuple):
    rows: list[Skimmed]
    looked: int  # tasks that were looked at for these rows
    place: P  # everything before it was looked at
    is_last: bool  # nothing is behind


NO_HINT = Hint()


class Skimming(Protocol):
    async def skim_live(
        self, criteria: TaskFilter, *, below: int, window: int, limit: int, hint: Hint = NO_HINT
    ) -> Skim[int]:
        """Live tasks that match, by falling ids, of the next `window` below the id `below`; at most `limit` of them.
        Where an index holds what is asked for (a job, a worker, those that workers hold or that wait for approval), the
        window is not counted. `place` is the next `below`. `limit` and `before` of the criteria are not read."""
        ...

    async def skim_ended(
        self, criteria: TaskFilter, *, window: int, hint: Hint = NO_HINT
    ) -> Skim[tuple[datetime, int]]:
        """Of the next `window` tasks that ended before `criteria.before`, the last first, by the index that serves most
        of the criteria: the job; dead letters; the owner; or states, queues and names. Those of other workers are left
        out; what else that index does not know is not looked at: whoever calls does."""
        ...

    async def skim_jobs(
        self, *, below: int, window: int, name: str | None = None, owner: str | None = None
    ) -> list[SkimmedJob]:
        """The next `window` jobs below the id `below`, by falling ids: those of a name, else those of an owner, else
        all, each by an index that holds nothing else. With a name the owner is not looked at: whoever calls does."""
        ...
