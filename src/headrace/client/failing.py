"""Tasks that failed, by what went wrong: the newest of them, put together where their errors are alike."""

from dataclasses import dataclass, field
from datetime import datetime

from headrace.client.searching import Looked, Search, Walk
from headrace.core.failures import likeness
from headrace.store.base import Store
from headrace.store.skimming import Skimmed

_NAMED = 10  # names and queues that one failure lists


@dataclass(slots=True, kw_only=True)
class Failure:
    """`count` is of those that were looked at."""

    key: str
    error_class: str | None
    message: str
    newest: Skimmed
    oldest_at: datetime
    count: int = 0
    names: dict[str, None] = field(default_factory=dict[str, None])
    queues: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, row: Skimmed) -> None:
        self.count += 1
        self.oldest_at = row.at
        for seen, each in ((self.names, row.name), (self.queues, row.queue)):
            if len(seen) < _NAMED:
                seen[each] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    failures: list[Failure]  # the one that happened last first
    looked: Looked


async def failing(store: Store, wanted: Search, *, most: int, groups: int, seconds: float) -> Failing:
    """Of the newest `most` that the search walks over, in so much time; no more than `groups` failures are told."""
    found: dict[str, Failure] = {}
    keys: dict[tuple[str | None, str | None], str | None] = {}  # many say the same, and to take secrets out is dear
    walk = Walk(store, wanted, most=most, seconds=seconds)
    async for page in walk.pages():
        for row in page:
            said = (row.error_class, row.error_message)
            if said not in keys:
                keys[said] = wanted.failure_of(row)
            if (key := keys[said]) is None:
                continue
            if key not in found:
                message = likeness(wanted.shown(row.error_message or ""))
                found[key] = Failure(
                    key=key, error_class=row.error_class, message=message, newest=row, oldest_at=row.at
                )
            found[key].add(row)
    return Failing(failures=list(found.values())[:groups], looked=walk.looked)
