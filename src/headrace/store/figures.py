"""The part of the seam for whoever looks at the whole ledger: sums, samples, and what is newest.

None of it is exact for ever and none of it grows with history: sums are those that workers keep by the minute, samples
are read from an index in its order and stop.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import orjson

from headrace.core.states import TaskState


class OutcomeSum(NamedTuple):
    """How many tasks of a queue and name ended so in the bucket that begins at `at`."""

    at: datetime
    queue: str
    name: str
    outcome: str
    n: int


class DepthsAt(NamedTuple):
    """How deep a queue was in the bucket that begins at `at`."""

    at: datetime
    depths: dict[str, int]


class EndedTask(NamedTuple):
    """A task that ended, without its payloads."""

    id: int
    name: str
    queue: str
    state: TaskState
    eligible_at: datetime
    started_at: datetime | None
    finished_at: datetime


class Newest(NamedTuple):
    """What a list of tasks begins with: the newest live task, and the last that ended; None where there is none."""

    live: int | None
    ended: int | None
    ended_at: datetime | None


def depth_texts(depths: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """As they are kept: a queue without any has a text, too, for somebody looked."""
    return {
        queue: orjson.dumps({depth: n for depth, n in found.items() if n}).decode() for queue, found in depths.items()
    }


class Figures(Protocol):
    async def outcome_sums(self, *, since: datetime, until: datetime, bucket: int) -> list[OutcomeSum]:
        """What workers counted from `since` up to before `until`, in buckets of `bucket` seconds that begin at whole
        multiples of it since 1970. Reads as many rows as workers wrote in that time: ask for hours, not for months."""
        ...

    async def keep_depths(self, depths: Mapping[str, Mapping[str, int]], *, kept: float) -> bool:
        """By queue, as they are in this minute; "" is the sum of all. False: somebody has said so before. What is older
        than `kept` seconds goes, a part at a time."""
        ...

    async def depth_series(self, queue: str, *, since: datetime, bucket: int, buckets: int) -> list[DepthsAt]:
        """The first that were kept in each of so many buckets from `since` on; none where nobody looked."""
        ...

    async def sample_ends(
        self, states: Sequence[TaskState], *, since: datetime, bucket: int, buckets: int, each: int
    ) -> list[EndedTask]:
        """Of each of so many buckets from `since` on, and of each state, the last `each` that ended in it."""
        ...

    async def own_ends(self, owner: str, *, since: datetime, limit: int) -> list[EndedTask]:
        """What ended of one owner's, the last first."""
        ...

    async def live_counts(self) -> dict[TaskState, int]:
        """Tasks that have not ended by state, each counted up to COUNTED_AT_MOST."""
        ...

    async def newest(self, *, owner: str | None = None) -> Newest:
        """Of all, or of one owner."""
        ...

    async def holding(self, workers: Sequence[str], *, cap: int) -> dict[str, int]:
        """How many tasks each of these workers holds, counted up to `cap`; those that hold none are left out."""
        ...
