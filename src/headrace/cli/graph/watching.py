"""A job as it goes on: bars in a terminal, one line a change elsewhere."""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.text import Text

from headrace.cli.graph.drawing import LOOKS, Line, duration
from headrace.cli.graph.job import STYLES, bar, counts_of, state_of
from headrace.cli.graph.reading import the_job
from headrace.cli.output import print_json_line, redacted, visible
from headrace.core.errors import NotFound, StoreUnavailable
from headrace.core.states import TERMINAL, TaskState
from headrace.core.task import JobRecord, TaskFilter, TaskRecord
from headrace.store.base import Store

_RUNNING = 10  # tasks that are shown
_SHARE = 5  # a look that takes long is taken less often: it may use one part in so many of the time
_HELD = (TaskState.RUNNING, TaskState.CANCELLING, TaskState.PAUSED)
_FRAME = 4  # lines beside the bars of names and the running tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A job at one instant."""

    at: datetime  # by the store's clock
    record: JobRecord
    tally: Sequence[tuple[str, TaskState, int]] = ()
    running: Sequence[TaskRecord] = ()


async def look(store: Store, job: int, *, whole: bool) -> Look:
    """`whole` also counts by name, which takes longer the larger the job is."""
    record = await the_job(store, job)
    now = await store.now()
    if not whole:
        return Look(at=now, record=record)
    running = await store.list(TaskFilter(job=job, states=_HELD, limit=_RUNNING)) if record.running else []
    return Look(at=now, record=record, tally=await store.tally(job), running=running)


async def watch(store: Store, job: int, *, interval: float, json: bool) -> JobRecord:
    """Until it is over."""
    if json or not sys.stdout.isatty():
        return await _follow(store, job, interval=interval, tell=print_json_line if json else _print_change)
    board = Board(look=await look(store, job, whole=True))
    with Live(board, console=Console(highlight=False), auto_refresh=False) as live:
        while not board.look.record.state.terminal:
            began = time.monotonic()
            board = await _next(store, job, board)
            live.update(board, refresh=True)
            await asyncio.sleep(max(interval, _SHARE * (time.monotonic() - began)))
        # What is left on the screen is how it ended.
        board = Board(look=await look(store, job, whole=True))
        live.update(board, refresh=True)
    return board.look.record


async def _next(store: Store, job: int, before: "Board") -> "Board":
    try:
        return Board(look=await look(store, job, whole=True))
    except StoreUnavailable as error:
        return Board(look=before.look, outage=str(error))


async def _follow(store: Store, job: int, *, interval: float, tell: Callable[[JobRecord], None]) -> JobRecord:
    told: JobRecord | None = None
    away = False
    while True:
        try:
            record = (await look(store, job, whole=False)).record
        except StoreUnavailable as error:
            if not away:
                print(f"{error}; waiting", file=sys.stderr, flush=True)
            away = True
        except NotFound:
            if told is None:
                raise
            return told  # it ended, and its history is kept no longer
        else:
            away = False
            if record != told:
                tell(record)
            told = record
            if record.state.terminal:
                return record
        await asyncio.sleep(interval)


def _print_change(record: JobRecord) -> None:
    print(f"job {record.id} {state_of(record)}: {counts_of(record)}", flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Rendered anew for each size of the terminal."""

    look: Look
    outage: str | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Group(*(_text(line) for line in self.lines(options.max_width, options.size.height)))

    def lines(self, width: int, height: int) -> list[Line]:
        record = self.look.record
        took = ""
        if record.started_at is not None:
            took = duration(((record.completed_at or self.look.at) - record.started_at).total_seconds())
        lost = record.failed + record.cancelled
        lines: list[Line] = [
            [
                (f"job {record.id}  {visible(record.name)}  ", "bold"),
                (state_of(record), f"bold {STYLES[record.state]}"),
                (f"  {took}", "dim"),
            ],
            [*bar(record.completed, lost, record.total, width=_bar_width(width)), *_left(self.look)],
        ]
        room = max(0, height - _FRAME)
        running = self.look.running[: min(5, room // 2)]
        lines += _names(self.look.tally, width, room - len(running))
        lines += [_running(task, self.look.at) for task in running]
        if self.outage is not None:
            lines.append([(visible(redacted(f"trying again: {self.outage}")), "bold white on red")])
        return lines


def _bar_width(width: int) -> int:
    return max(10, min(40, width // 3))


def _left(look: Look) -> Line:
    record = look.record
    found = [(f", {record.failed:,} failed", "red")] * bool(record.failed)
    found += [(f", {record.cancelled:,} cancelled", "yellow")] * bool(record.cancelled)
    return [*found, (f", {record.running:,} running", "cyan")] if record.running else found


def _names(tally: Sequence[tuple[str, TaskState, int]], width: int, room: int) -> list[Line]:
    """A bar for each name; those with the most left to do where there is no room for all."""
    by_name: dict[str, dict[TaskState, int]] = {}
    for name, state, n in tally:
        by_name.setdefault(name, {})[state] = n
    longest = min(max(map(len, by_name), default=0), width // 3)

    def left(name: str) -> int:
        return sum(n for state, n in by_name[name].items() if state not in TERMINAL)

    chosen = list(by_name)
    if len(chosen) > room:
        chosen = sorted(by_name, key=left, reverse=True)[: max(0, room - 1)]
    lines: list[Line] = []
    for name in chosen:
        states = by_name[name]
        done = states.get(TaskState.COMPLETED, 0)
        lost = sum(n for state, n in states.items() if state in TERMINAL and state is not TaskState.COMPLETED)
        shown = visible(name)[-longest:].ljust(longest)
        lines.append([(f"  {shown}  ", ""), *bar(done, lost, sum(states.values()), width=_bar_width(width) - 4)])
    if len(chosen) < len(by_name) and room > 0:
        lines.append([(f"  … {len(by_name) - len(chosen):,} more kinds of tasks", "dim")])
    return lines


def _running(task: TaskRecord, now: datetime) -> Line:
    symbol, style = LOOKS[task.state]
    since = task.started_at or task.claimed_at
    took = "" if since is None else f"  {duration((now - since).total_seconds())}"
    progress = f"  {visible(redacted(task.progress))}" if task.progress else ""
    return [(f"  {symbol} ", style), (visible(task.name), ""), (f" {task.id}", "dim"), (f"{took}{progress}", "")]


def _text(line: Line) -> Text:
    return Text.assemble(*line, no_wrap=True, overflow="ellipsis")
