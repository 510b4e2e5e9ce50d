"""Tasks by what they say of themselves, from the newest on: as far as the time for one look goes.

An index serves states, queues, names, owners, jobs and dead letters. For the rest (errors, tags, workers of ended
tasks, words) tasks are looked at one by one, so a look has a time, says how far it came, and can be gone on with.
"""

import dataclasses
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import batched
from typing import Any, NamedTuple

from headrace.client.selecting import closed_at, expected_of
from headrace.core.failures import failure_key
from headrace.core.payload import dumps, loads
from headrace.core.states import TaskState
from headrace.core.task import TaskFilter, TaskRecord
from headrace.store.base import Store
from headrace.store.expecting import Expected
from headrace.store.instants import from_micros, to_micros
from headrace.store.skimming import Hint, Skimmed

PAGE = 200  # what one transaction of a bulk act takes
_FIRST, _LARGEST = 500, 50_000  # tasks that one query looks at
_AT_ONCE = 0.2  # seconds of one query, of a walk that has no end of its own
_UNHAPPY = tuple(state for state in TaskState if state.terminal and state is not TaskState.COMPLETED)
_ABOVE_ALL = 2**53  # no id reaches it

type Shown = Callable[[str], str]


class Place(NamedTuple):
    """Where a look stopped: among live tasks below an id, among ended ones before an instant and an id."""

    live: int = _ABOVE_ALL
    ended_at: int = 253_402_300_799_000_000  # microseconds: the last second of the year 9999
    ended_id: int = _ABOVE_ALL

    @property
    def before(self) -> tuple[datetime, int]:
        return from_micros(self.ended_at), self.ended_id


BEGINNING = Place()


def as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is looked for; everything that is given has to hold. `shown` is what a reader sees of a text: nothing is
    found by what they do not see."""

    criteria: TaskFilter = field(default_factory=TaskFilter)
    prefixes: tuple[str, ...] = ()  # of names, beside those of the criteria
    errors: tuple[str, ...] = ()  # the class, its last word, or a part of class or message
    tags: tuple[str, ...] = ()
    text: str | None = None  # words, all of which occur somewhere
    failure: str | None = None  # a `failure_key`
    ids: tuple[int, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None  # of a bulk act
    shown: Shown = as_it_is

    @property
    def of_ended_alone(self) -> bool:
        """Only what has ended says why."""
        return bool(self.errors or self.failure or self.criteria.dead_letter)

    @property
    def served(self) -> TaskFilter:
        """What the store may go by; where names are open at their end it does not know them. What completed has no
        error."""
        criteria = dataclasses.replace(self.criteria, names=()) if self.prefixes else self.criteria
        if (self.errors or self.failure) and not criteria.states:
            return dataclasses.replace(criteria, states=_UNHAPPY)
        return criteria

    @property
    def hint(self) -> Hint:
        """The longest word is the rarest, as a rule."""
        open_ = self.prefixes if not self.criteria.names and len(self.prefixes) == 1 else ()
        words = [
            word
            for word in (*(self.text or "").casefold().split(), *map(str.casefold, open_))
            if word.isascii() and word
        ]
        return Hint(max(words, key=len, default=None), bool(self.tags))

    def expected(self, until: datetime) -> Expected:
        return expected_of(self.served.states, dead_letter=self.criteria.dead_letter, until=until)

    def takes(self, row: Skimmed) -> bool:
        criteria = self.criteria
        return (
            (not criteria.states or row.state in criteria.states)
            and (not criteria.queues or row.queue in criteria.queues)
            and self._takes_name(row.name)
            and criteria.worker in (None, row.worker)
            and criteria.owner in (None, row.owner)
            and criteria.dead_letter in (None, row.dead_letter)
            and (not self.ids or row.id in self.ids)
            and (self.since is None or row.at >= self.since)
            and (self.until is None or row.at <= self.until)
            and (not self.tags or not set(self.tags).isdisjoint(self._tags(row)))
            and (not self.errors or any(self._is_error(row, error) for error in self.errors))
            and (self.failure is None or self.failure_of(row) == self.failure)
            and (self.text is None or self._says(row, self.text.casefold().split()))
        )

    def failure_of(self, row: Skimmed) -> str | None:
        if row.state not in (TaskState.FAILED, TaskState.REJECTED):
            return None
        return failure_key(row.error_class, None if row.error_message is None else self.shown(row.error_message))

    def _takes_name(self, name: str) -> bool:
        names = self.criteria.names
        return (not names and not self.prefixes) or name in names or name.startswith(self.prefixes or ("\0",))

    def _tags(self, row: Skimmed) -> tuple[str, ...]:
        found: Sequence[object] = loads(row.tags) if row.tags else ()
        return tuple(self.shown(str(tag)) for tag in found)

    def _is_error(self, row: Skimmed, wanted: str) -> bool:
        error, part = row.error_class or "", wanted.casefold()
        if error == wanted or error.rpartition(".")[2] == wanted or part in error.casefold():
            return True
        message = row.error_message or ""
        return part in message.casefold() and part in self.shown(message).casefold()

    def _says(self, row: Skimmed, words: Sequence[str]) -> bool:
        """Taking secrets out is dear: it is done for those that would be found with them."""
        plain = (
            f"{row.id}\n{row.name}\n{row.queue}\n{row.state}\n{row.worker}\n{row.owner}\n{row.error_class}".casefold()
        )
        hidden = [word for word in words if word not in plain]
        if not hidden:
            return True
        said = "\n".join((row.label or "", row.tags or "", row.error_message or ""))
        folded = said.casefold()
        if any(word not in folded for word in hidden):
            return False
        told = "\n".join((row.label or "", *self._tags(row), self.shown(row.error_message or ""))).casefold()
        return all(word in told for word in hidden)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """How far a look came. `complete`: nothing was left out before the last that it found."""

    tasks: int
    complete: bool
    back_to: datetime | None  # ended tasks were looked at as far back as this, where it is not complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    records: list[TaskRecord]
    place: Place | None  # to go on from; None: nothing is behind
    looked: Looked


class _Side:
    """One of the two tables, walked in its own order."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.start = place
        self.rows: list[Skimmed] = []
        self.looked: int = 0
        self.window: int = _FIRST
        self.is_last: bool = False

    async def step(self, store: Store, search: Search, limit: int) -> None:
        raise NotImplementedError

    async def stepped(self, store: Store, search: Search, limit: int, *, deadline: float) -> None:
        """The next window is larger, but no larger than there is time for."""
        began, before = time.monotonic(), self.looked
        await self.step(store, search, limit)
        now = time.monotonic()
        pace = (self.looked - before) / max(now - began, 1e-6)
        self.window = max(_FIRST, min(self.window * 4, _LARGEST, int(pace * (deadline - now))))


class _Live(_Side):
    async def step(self, store: Store, search: Search, limit: int) -> None:
        window = max(self.window, limit)
        skim = await store.skim_live(
            search.served, below=self.place.live, window=window, limit=window, hint=search.hint
        )
        self.rows += [row for row in skim.rows if search.takes(row)]
        self.looked += skim.looked
        self.is_last = skim.is_last
        self.place = self.place._replace(live=0 if skim.is_last else skim.place)

    def behind(self, row: Skimmed) -> Place:
        return self.place._replace(live=row.id)


class _Ended(_Side):
    async def step(self, store: Store, search: Search, limit: int) -> None:
        criteria = dataclasses.replace(search.served, before=self.place.before)
        # What an index serves alone is found at once; the rest grows from there.
        window = limit if not self.looked else max(self.window, limit)
        skim = await store.skim_ended(criteria, window=window, hint=search.hint)
        self.rows += [row for row in skim.rows if search.takes(row)]
        self.looked += skim.looked
        past = search.since is not None and skim.looked > 0 and skim.place[0] < search.since
        self.is_last = skim.is_last or past
        at, id = (from_micros(0), 0) if self.is_last else skim.place
        self.place = self.place._replace(ended_at=to_micros(at), ended_id=id)

    def behind(self, row: Skimmed) -> Place:
        return self.place._replace(ended_at=to_micros(row.at), ended_id=row.id)


async def search(store: Store, wanted: Search, *, place: Place = BEGINNING, limit: int, seconds: float) -> Found:
    """A page of what is looked for, newest first, with what was found when the time is over.

    Where it was over too early, a later page may hold newer ones: live and ended tasks are walked side by side.
    """
    if wanted.ids:
        return await _by_id(store, wanted, place, limit)
    live, ended = _Live(place), _Ended(place)
    live.is_last = place.live == 0 or wanted.of_ended_alone
    ended.is_last = place.ended_at == 0
    deadline = time.monotonic() + seconds
    while True:
        open_ = [side for side in (live, ended) if not side.is_last and len(side.rows) < limit]
        for side in open_:
            await side.stepped(store, wanted, limit, deadline=deadline)
        if not open_ or time.monotonic() > deadline:
            break
    complete = all(side.is_last or len(side.rows) >= limit for side in (live, ended))
    rows = _merged(live, ended, limit)
    records = await store.get([row.id for row in rows]) if rows else {}
    behind = _behind(live, ended, rows)
    back_to = None if complete or ended.is_last else ended.place.before[0]
    return Found(
        records=[records[row.id] for row in rows if row.id in records],
        place=behind,
        looked=Looked(tasks=live.looked + ended.looked, complete=complete, back_to=back_to),
    )


def _merged(live: _Live, ended: _Ended, limit: int) -> list[Skimmed]:
    """Each side in its own order, so that a place in both says what was seen. A task that ended between the two looks
    is on both sides, and counts as ended."""
    gone = {row.id for row in ended.rows}
    sides = [[row for row in live.rows if row.id not in gone], list(ended.rows)]
    found: list[Skimmed] = []
    at = [0, 0]
    while len(found) < limit:
        heads = [(side[at[n]].at, n) for n, side in enumerate(sides) if at[n] < len(side)]
        if not heads:
            break
        _, n = max(heads)
        found.append(sides[n][at[n]])
        at[n] += 1
    return found


def _behind(live: _Live, ended: _Ended, rows: Sequence[Skimmed]) -> Place | None:
    """Behind the last of each side that is on the page, or where that side stopped if all it found is."""
    on_page = {(row.id, row.state.terminal) for row in rows}
    live_rows = [row for row in live.rows if (row.id, True) not in on_page]
    places: list[tuple[_Live | _Ended, bool]] = []
    for side, found in ((live, live_rows), (ended, ended.rows)):
        seen = [row for row in found if (row.id, row.state.terminal) in on_page]
        left = len(seen) < len(found)
        if left:
            side.place = side.behind(seen[-1]) if seen else side.start
        places.append((side, side.is_last and not left))
    if all(is_over for _, is_over in places):
        return None
    return Place(0 if places[0][1] else live.place.live, *((0, 0) if places[1][1] else ended.place[1:]))


async def _by_id(store: Store, wanted: Search, place: Place, limit: int) -> Found:
    """Those that were named, in the order of lists: there are few, and no other page."""
    found = [] if place != BEGINNING else list((await store.get(wanted.ids)).values())
    kept = [record for record in found if wanted.takes(skimmed(record))]
    kept = [record for record in kept if wanted.criteria.job in (None, record.job)]
    kept.sort(key=lambda record: (record.finished_at or record.created_at, record.id), reverse=True)
    looked = Looked(tasks=len(found), complete=True, back_to=None)
    return Found(records=kept[:limit], place=None, looked=looked)


class Walk:
    """Everything that is looked for, in pages: live tasks first, then ended ones. It ends with them, or when `most`
    were looked at, or when the time is over; `looked` says which.
    """

    def __init__(self, store: Store, wanted: Search, *, most: int | None = None, seconds: float | None = None) -> None:
        self._store = store
        self._wanted = wanted
        self._most = most
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._tasks = 0
        self._stopped = False
        self._back_to: datetime | None = None

    @property
    def looked(self) -> Looked:
        return Looked(tasks=self._tasks, complete=not self._stopped, back_to=self._back_to if self._stopped else None)

    async def pages(self) -> AsyncGenerator[list[Skimmed]]:
        wanted = self._wanted
        if wanted.ids:
            found = await _by_id(self._store, wanted, BEGINNING, len(wanted.ids))
            self._tasks = len(found.records)
            yield [skimmed(record) for record in found.records]
            return
        start = BEGINNING if wanted.until is None else Place(_ABOVE_ALL, to_micros(wanted.until), _ABOVE_ALL)
        for side in (_Live(start), _Ended(start)):
            side.is_last = isinstance(side, _Live) and wanted.of_ended_alone
            while not side.is_last:
                if self._is_over():
                    self._stopped = True
                    return
                before = side.looked
                left = PAGE if self._most is None else self._most - self._tasks
                side.window = side.window if self._most is None else min(side.window, left)
                deadline = time.monotonic() + _AT_ONCE if self._deadline is None else self._deadline
                await side.stepped(self._store, wanted, min(PAGE, left), deadline=deadline)
                self._tasks += side.looked - before
                self._back_to = side.place.before[0] if isinstance(side, _Ended) else None
                if side.rows:
                    yield side.rows
                    side.rows = []

    def _is_over(self) -> bool:
        if self._most is not None and self._tasks >= self._most:
            return True
        return self._deadline is not None and time.monotonic() > self._deadline


async def answer_found(
    store: Store, wanted: Search, act: Callable[[Sequence[TaskRecord], Expected], Awaitable[Iterable[str]]]
) -> Counter[str]:
    """Act on what is there at the instant at which this begins, or at that of `until`, a page of tasks in one
    transaction; how many had which answer. A page is many batches: what is not looked for any more when its turn comes
    is left out, and what changes in that moment is left alone by the act."""
    answers: Counter[str] = Counter()
    left = wanted.limit
    until = await closed_at(store, wanted.until)
    expected = wanted.expected(until)
    async for page in Walk(store, dataclasses.replace(wanted, until=until)).pages():
        for batch in batched([row.id for row in page[:left]], PAGE):
            records = await store.get(batch)
            still = [record for record in records.values() if wanted.takes(skimmed(record))]
            answers.update(await act(still, expected) if still else ())
        if left is not None:
            left -= len(page[:left])
            if left == 0:
                break
    return answers


class Counted(NamedTuple):
    n: int
    more: bool  # or there may be: it stops at a number, or when the time is over
    until: datetime  # give it to the act, which then takes nothing that came after the count


async def count(store: Store, wanted: Search, *, most: int, seconds: float) -> Counted:
    """How many there are at this instant, or were at that of `until`."""
    until = await closed_at(store, wanted.until)
    walk = Walk(store, dataclasses.replace(wanted, until=until), seconds=seconds)
    n = 0
    async for page in walk.pages():
        n += len(page)
        if wanted.limit is not None and n >= wanted.limit <= most:
            return Counted(wanted.limit, False, until)
        if n > most:
            return Counted(most, True, until)
    return Counted(n, not walk.looked.complete, until)


def skimmed(record: TaskRecord) -> Skimmed:
    """What a search sees of a whole record."""
    options: dict[str, Any] = {}
    if '"label"' in record.options or '"tags"' in record.options:
        options = loads(record.options)
    tags = options.get("tags")
    return Skimmed(
        id=record.id,
        at=record.finished_at or record.created_at,
        name=record.name,
        queue=record.queue,
        state=record.state,
        dead_letter=record.dead_letter,
        worker=record.worker,
        owner=record.owner,
        label=options.get("label"),
        tags=None if tags is None else dumps(tags),
        error_class=record.error_class,
        error_message=record.error_message,
    )
