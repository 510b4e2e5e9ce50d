"""Dead letters by what they are, page by page: however many there are, one page is in memory."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from headrace.core.task import TaskFilter, TaskRecord
from headrace.store.base import Store

_PAGE = 200
_LAST_ID = 2**63 - 1
COUNTED = 1_000  # before a bulk act asks, it counts up to here


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Newest first, of those that failed from `since` to `until`.

    What becomes a dead letter after the first page is not part of it, nor, with `until`, of another walk.
    """

    queues: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None

    def takes(self, record: TaskRecord) -> bool:
        return not self.errors or any(_is(record.error_class or "", error) for error in self.errors)

    async def up_to_now(self, store: Store) -> Self:
        """Closed at this instant of the store's clock: however often it is walked, nothing is added to it."""
        now = await store.now()
        return replace(self, until=now if self.until is None else min(self.until, now))

    async def pages(self, store: Store) -> AsyncIterator[list[TaskRecord]]:
        """Walks the index of dead letters; a page that was acted on may be gone, the next one begins behind it."""
        before = None if self.until is None else (self.until, _LAST_ID)
        left = self.limit
        while left is None or left > 0:
            page = await store.list(
                TaskFilter(dead_letter=True, queues=self.queues, names=self.names, limit=_PAGE, before=before)
            )
            found = [record for record in page if self._recent(record) and self.takes(record)][:left]
            if found:
                yield found
            if left is not None:
                left -= len(found)
            last = page[-1] if page else None
            if last is None or last.finished_at is None or len(page) < _PAGE or not self._recent(last):
                return
            before = (last.finished_at, last.id)

    async def count(self, store: Store, *, most: int = COUNTED) -> int:
        """How many, up to one more than `most`."""
        n = 0
        async for page in self.pages(store):
            n += len(page)
            if n > most:
                return most + 1
        return n

    def _recent(self, record: TaskRecord) -> bool:
        return self.since is None or (record.finished_at is not None and record.finished_at >= self.since)


@dataclass(slots=True)
class Tally:
    """What a bulk act has done so far; it is true also when the act is interrupted."""

    matched: int = 0
    changed: int = 0
    kept: list[int] | None = None  # the first ones that were not changed

    def add(self, wanted: Sequence[int], changed: Sequence[int]) -> None:
        self.matched += len(wanted)
        self.changed += len(changed)
        if self.kept is None:
            self.kept = []
        missing = set(wanted) - set(changed)
        self.kept += [id for id in wanted if id in missing][: 20 - len(self.kept)]


async def act_on(
    store: Store,
    selection: Selection,
    act: Callable[[Sequence[int]], Awaitable[Sequence[int]]],
    tally: Tally,
    advance: Callable[[int], object],
) -> None:
    """Each page is one transaction: an interruption leaves whole pages done."""
    async for page in selection.pages(store):
        ids = [record.id for record in page]
        tally.add(ids, await act(ids))
        advance(len(ids))


def _is(error_class: str, wanted: str) -> bool:
    """The dotted class, or its last word."""
    return error_class == wanted or error_class.rpartition(".")[2] == wanted
