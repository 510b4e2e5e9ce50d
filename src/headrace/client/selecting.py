"""Tasks by what they are, page by page: however many there are, one page is in memory."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from headrace.core.states import TaskState
from headrace.core.task import TaskFilter, TaskRecord
from headrace.store.base import Store
from headrace.store.expecting import Expected

PAGE = 200  # what one transaction of a bulk act takes
_LAST_ID = 2**63 - 1
COUNTED = 1_000  # before a bulk act asks, it counts up to here


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Newest first, of those that ended (or, where they have not, were created) from `since` to `until`.

    What comes after the first page is not part of it, nor, with `until`, of another walk.
    """

    states: tuple[TaskState, ...] = ()
    queues: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    job: int | None = None
    worker: str | None = None
    owner: str | None = None
    dead_letter: bool | None = None
    errors: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None

    def takes(self, record: TaskRecord) -> bool:
        return not self.errors or any(_is(record.error_class or "", error) for error in self.errors)

    async def up_to_now(self, store: Store) -> Self:
        """Closed at this instant of the store's clock: however often it is walked, nothing is added to it."""
        return replace(self, until=await closed_at(store, self.until))

    def expected(self, until: datetime) -> Expected:
        return expected_of(self.states, dead_letter=self.dead_letter, until=until)

    async def pages(
        self, store: Store, *, before: tuple[datetime, int] | None = None
    ) -> AsyncIterator[list[TaskRecord]]:
        """A page that was acted on may be gone, the next one begins behind it. `before` goes on behind a record."""
        if self.until is not None and (before is None or before[0] > self.until):
            before = (self.until, _LAST_ID)
        left = self.limit
        while left is None or left > 0:
            page = await store.list(
                TaskFilter(
                    states=self.states,
                    queues=self.queues,
                    names=self.names,
                    job=self.job,
                    worker=self.worker,
                    owner=self.owner,
                    dead_letter=self.dead_letter,
                    limit=PAGE,
                    before=before,
                )
            )
            found = [record for record in page if self._recent(record) and self.takes(record)][:left]
            if found:
                yield found
            if left is not None:
                left -= len(found)
            last = page[-1] if page else None
            if last is None or len(page) < PAGE or not self._recent(last):
                return
            before = (_instant(last), last.id)

    async def count(self, store: Store, *, most: int = COUNTED) -> int:
        """How many, up to one more than `most`."""
        n = 0
        async for page in self.pages(store):
            n += len(page)
            if n > most:
                return most + 1
        return n

    def _recent(self, record: TaskRecord) -> bool:
        return self.since is None or _instant(record) >= self.since


@dataclass(slots=True)
class Tally:
    """What a bulk act has done so far; it is true also when the act is interrupted."""

    matched: int = 0
    changed: int = 0
    kept: list[int] | None = None  # the first ones that were not changed

    def add(self, wanted: Sequence[int], changed: Iterable[int]) -> None:
        done = set(changed).intersection(wanted)
        self.matched += len(wanted)
        self.changed += len(done)
        if self.kept is None:
            self.kept = []
        self.kept += [id for id in wanted if id not in done][: 20 - len(self.kept)]


async def act_on(
    store: Store,
    selection: Selection,
    act: Callable[[Sequence[int]], Awaitable[Sequence[int]]],
    tally: Tally,
    advance: Callable[[int], object] = lambda _: None,
) -> None:
    """Each page is one transaction: an interruption leaves whole pages done."""
    async for page in selection.pages(store):
        ids = [record.id for record in page]
        tally.add(ids, await act(ids))
        advance(len(ids))


async def answer_for(
    store: Store,
    selection: Selection,
    act: Callable[[Sequence[TaskRecord], Expected], Awaitable[Iterable[str]]],
    advance: Callable[[int], object] = lambda _: None,
) -> Counter[str]:
    """Act page by page on what matches at the instant at which this begins; how many had which answer."""
    answers: Counter[str] = Counter()
    until = await closed_at(store, selection.until)
    expected = selection.expected(until)
    async for page in replace(selection, until=until).pages(store):
        answers.update(await act(page, expected))
        advance(len(page))
    return answers


async def closed_at(store: Store, until: datetime | None) -> datetime:
    """This instant of the store's clock, or an earlier one that was given."""
    now = await store.now()
    return now if until is None else min(until, now)


def expected_of(states: tuple[TaskState, ...], *, dead_letter: bool | None, until: datetime) -> Expected:
    """How tasks that were found by these are when they are acted on a moment later."""
    return Expected(states=states or ((TaskState.FAILED,) if dead_letter else tuple(TaskState)), until=until)


def _instant(record: TaskRecord) -> datetime:
    """By which lists are sorted."""
    return record.finished_at or record.created_at


def _is(error_class: str, wanted: str) -> bool:
    """The dotted class, or its last word."""
    return error_class == wanted or error_class.rpartition(".")[2] == wanted
