"""Reading the lines of tasks as they come, by bounded looks: nothing here grows with history."""

import asyncio
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from rich.markup import escape

from headrace.cli.output import console, print_json_line, redacted, visible
from headrace.cli.showing import state_of, unknown
from headrace.core.errors import StoreUnavailable
from headrace.core.live import VALUES
from headrace.core.states import TERMINAL
from headrace.core.task import TaskFilter, TaskRecord
from headrace.store.base import LogLine, Store

_PAUSE = 0.5  # seconds between two looks
_PAGE = 1_000
_LATE = timedelta(seconds=3)  # a worker writes lines in batches, the last ones after it reported the end
_CLAIMS = 3  # how many of a task's last claims may still have lines under way
_WATCHED = 200  # tasks at once, where no id is given
_REMEMBERED = 5_000  # tasks whose last line is known


class Printer:
    """Lines for people, or one JSON object each."""

    def __init__(self, *, json: bool, names: bool) -> None:
        self._json = json
        self._names = names

    def print(self, lines: Iterable[LogLine], record: TaskRecord) -> None:
        for line in lines:
            if line.stream == VALUES:
                continue  # data for whoever follows the stream
            if self._json:
                print_json_line(line)
                continue
            who = f"{line.task} {escape(visible(record.name))} " if self._names else ""
            console.print(
                f"[dim]{line.at:%H:%M:%S} {who}{escape(visible(line.stream))}[/] {escape(visible(redacted(line.line)))}"
            )

    def say(self, text: str) -> None:
        """Beside the lines: whoever reads them as data is not told."""
        if not self._json:
            print(text, file=sys.stderr, flush=True)


class Tail:
    """The lines of one task that were not seen yet."""

    def __init__(self, id: int, claim: int | None = None) -> None:
        self.id = id
        self._only = claim
        self._seen: dict[int, int] = {}  # last line of each of the latest claims

    async def read(self, store: Store, record: TaskRecord) -> list[LogLine]:
        """At most one page of each; the next look goes on behind it."""
        if self._only is not None:
            lines = await store.logs(self.id, claim_no=self._only, after=self._seen.get(self._only, -1), limit=_PAGE)
            return self._noted(lines)
        *earlier, latest = sorted(self._seen) or [0]
        found: list[LogLine] = []
        for claim in earlier:
            found += await store.logs(self.id, claim_no=claim, after=self._seen[claim], limit=_PAGE)
        found += await store.logs(self.id, seen=(latest, self._seen.get(latest, -1)), limit=_PAGE)
        lines = self._noted(found)
        if record.claim_no:
            self._seen.setdefault(record.claim_no, -1)
        for claim in sorted(self._seen)[:-_CLAIMS]:
            del self._seen[claim]
        return lines

    def _noted(self, lines: list[LogLine]) -> list[LogLine]:
        for line in lines:
            self._seen[line.claim_no] = max(line.seq, self._seen.get(line.claim_no, -1))
        return lines


def newest(*, queues: tuple[str, ...], names: tuple[str, ...], last: int) -> TaskFilter:
    return TaskFilter(queues=queues, names=names, limit=last)


async def read_one(store: Store, id: int, claim: int | None, printer: Printer) -> TaskRecord:
    """Every line that is there now."""
    record = await _get(store, id)
    seen: tuple[int, int] | None = None
    while lines := await store.logs(id, claim_no=claim, seen=seen, limit=_PAGE):
        printer.print(lines, record)
        seen = (lines[-1].claim_no, lines[-1].seq)
    return record


async def follow_one(store: Store, id: int, claim: int | None, printer: Printer) -> TaskRecord:
    tail = Tail(id, claim)
    record = await _get(store, id)
    patience = _Patience(printer)
    while True:
        try:
            # First the record, then its lines: what was written before its end is read after it.
            record = await _get(store, id)
            lines = await tail.read(store, record)
            over = record.state.terminal and not lines and await _all_written(store, record)
        except StoreUnavailable as error:
            await patience.wait(error)
            continue
        patience.over()
        printer.print(lines, record)
        if over:
            printer.say(f"task {id} is {state_of(record)}")
            return record
        if len(lines) < _PAGE:
            await asyncio.sleep(_PAUSE)


async def follow_many(store: Store, criteria: TaskFilter, printer: Printer, *, follow: bool) -> None:
    """The newest tasks, oldest of them first. Followed are those that workers hold, and those that end meanwhile."""
    crowd = _Crowd(store, criteria, began=await store.now())
    for record in reversed(await store.list(criteria) if criteria.limit else []):
        await _drain(store, crowd.tail(record.id), record, printer)
    patience = _Patience(printer)
    while follow:
        await asyncio.sleep(_PAUSE)
        try:
            records = await crowd.moving()
            for record in records:
                await _drain(store, crowd.tail(record.id), record, printer)
        except StoreUnavailable as error:
            await patience.wait(error)
            continue
        patience.over()
        if len(records) >= _WATCHED:
            printer.say(f"more than {_WATCHED} tasks at once: lines of some are left out; choose by --queue or --task")


class _Crowd:
    """Whose lines may be coming: what workers hold, and what they gave back or ended a moment ago."""

    def __init__(self, store: Store, criteria: TaskFilter, *, began: datetime) -> None:
        self._store = store
        self._criteria = criteria
        self._began = began
        self._tails: dict[int, Tail] = {}
        self._moved: dict[int, float] = {}  # when it was last in somebody's hands

    def tail(self, id: int) -> Tail:
        """Kept beyond its turn: a task that comes back must not repeat itself."""
        if id not in self._tails and len(self._tails) >= _REMEMBERED:
            del self._tails[next(iter(self._tails))]
        return self._tails.setdefault(id, Tail(id))

    async def moving(self) -> list[TaskRecord]:
        """Each by an index, and no more than can be watched."""
        store, now = self._store, time.monotonic()
        found = {record.id: record for record in await self._ended()}
        held: list[int] = []
        for worker in await store.workers(states=("active", "idle", "stopping")):
            held += [claim.id for claim in await store.held(worker.id, limit=_WATCHED)]
        self._moved.update(dict.fromkeys([*held[:_WATCHED], *found], now))
        self._moved = {id: at for id, at in self._moved.items() if now - at < _LATE.total_seconds()}
        asked = [id for id in self._moved if id not in found][: 2 * _WATCHED]
        found |= {id: record for id, record in (await store.get(asked)).items() if self._wants(record)}
        return sorted(found.values(), key=lambda record: record.id)[:_WATCHED]

    async def _ended(self) -> list[TaskRecord]:
        criteria = replace(self._criteria, states=tuple(TERMINAL), limit=_WATCHED)
        since = max(self._began, await self._store.now() - _LATE)
        return [task for task in await self._store.list(criteria) if task.finished_at and task.finished_at >= since]

    def _wants(self, record: TaskRecord) -> bool:
        queues, names = self._criteria.queues, self._criteria.names
        return (not queues or record.queue in queues) and (not names or record.name in names)


async def _drain(store: Store, tail: Tail, record: TaskRecord, printer: Printer) -> None:
    while lines := await tail.read(store, record):
        printer.print(lines, record)


async def _get(store: Store, id: int) -> TaskRecord:
    record = (await store.get([id])).get(id)
    if record is None:
        raise await unknown(store, id)
    return record


async def _all_written(store: Store, record: TaskRecord) -> bool:
    return record.finished_at is None or await store.now() - record.finished_at > _LATE


class _Patience:
    """A store that is away for a while is told once, and waited for."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._away = False

    async def wait(self, error: StoreUnavailable) -> None:
        if not self._away:
            self._printer.say(f"{error}; waiting")
        self._away = True
        await asyncio.sleep(2 * _PAUSE)

    def over(self) -> None:
        if self._away:
            self._printer.say("the store answers again")
        self._away = False
