"""A snapshot as a screen: what fits of it, the most important first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from headrace.cli.board.snapshot import Rate, Snapshot, total
from headrace.cli.output import ago, redacted, visible
from headrace.client.reasons import silent
from headrace.store.base import COUNTED_AT_MOST

_ALWAYS = 10_000  # rows, where the height is nobody's concern
_DEPTHS = ("primary", "retry", "scheduled", "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    columns: Sequence[str]
    rows: Sequence[Sequence[Text | str]]
    empty: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """Rendered anew for each size of the terminal."""

    place: str
    snapshot: Snapshot | None
    rates: Mapping[str, Rate]
    outage: str | None = None
    keys: bool = True  # somebody can press them

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or (_ALWAYS if not self.keys else options.size.height)
        yield self.fitted(options.max_width, height)

    def fitted(self, width: int, height: int) -> Group:
        head = _headline(self)
        foot = [Text("q quits", style="dim", no_wrap=True)] if self.keys else []
        if self.snapshot is None:
            return Group(*head, *foot)
        sections = sections_of(self.snapshot, self.rates)
        room = height - len(head) - len(foot)
        rows = allotted(room, [max(1, len(section.rows)) for section in sections])
        tables = [table_of(section, n, width) for section, n in zip(sections, rows, strict=True) if n > 0]
        parts = [part for table in tables for part in (table, Text(""))][:-1]
        return Group(*head, *parts, *foot)


_FRAME = 2  # lines of a section beside its rows: its header, and an empty one


def allotted(room: int, wanted: Sequence[int]) -> list[int]:
    """How many rows each section gets; the first ones get theirs first, and none is left with a header alone."""
    given = [0] * len(wanted)
    for index in range(len(wanted)):
        if room >= _FRAME + 1:
            given[index] = 1
            room -= _FRAME + 1
    grew = True
    while room > 0 and grew:
        grew = False
        for index, n in enumerate(wanted):
            if room > 0 and 0 < given[index] < n:
                given[index] += 1
                room -= 1
                grew = True
    return given


def sections_of(snapshot: Snapshot, rates: Mapping[str, Rate]) -> list[Section]:
    found = [_queues(snapshot), _workers(snapshot, rates), _failures(snapshot)]
    if snapshot.fires:
        found.insert(2, _fires(snapshot))
    return found


# The width of a screen from which on it has a column; the others it always has.
_FROM = {
    "primary": 30, "in flight": 40, "retry": 50, "scheduled": 65, "waiting": 65,
    "state": 40, "done/s": 50, "done": 60, "failed": 60, "failed/s": 90, "beat": 90, "queues": 90,
    "task": 30, "error": 50, "ago": 80, "attempts": 90, "next": 30,
}  # fmt: skip


def table_of(section: Section, rows: int, width: int) -> Table:
    kept = [index for index, column in enumerate(section.columns) if width >= _FROM.get(column, 0)]
    table = Table(box=None, pad_edge=False, header_style="bold reverse", expand=True)
    for position, index in enumerate(kept):
        numbers = position > 0 and section.columns[index] in _NUMBERS
        table.add_column(
            section.columns[index],
            no_wrap=True,
            overflow="ellipsis",
            justify="right" if numbers else "left",
            min_width=None if position else 9,
            ratio=None if numbers else _RATIOS.get(section.columns[index], 1),
        )
    shown = section.rows if len(section.rows) <= rows else section.rows[: max(1, rows - 1)]
    for row in shown:
        table.add_row(*(row[index] for index in kept))
    if len(shown) < min(rows, len(section.rows)):
        table.add_row(Text(f"… {len(section.rows) - len(shown)} more", style="dim"))
    elif not section.rows:
        table.add_row(Text(section.empty, style="dim"))
    return table


_NUMBERS = {*_DEPTHS, "in flight", "done", "failed", "done/s", "failed/s", "attempts"}
_RATIOS = {"WORKER": 3, "error": 3, "FAILED TASK": 2, "QUEUE": 2, "SCHEDULE": 2}


def _headline(board: Board) -> list[Text]:
    line = Text("headrace top", style="bold", no_wrap=True, overflow="ellipsis")
    if board.snapshot is not None:
        rate = total(board.rates)
        line.append(f"  {board.snapshot.at:%H:%M:%S} UTC", style="default")
        line.append(f"  {_per_second(rate.completed)} done/s", style="green")
        line.append(f"  {_per_second(rate.failed)} failed/s", style="red" if rate.failed else "dim")
    line.append(f"  {board.place}", style="dim")
    if board.outage is None:
        return [line]
    return [line, Text(visible(redacted(board.outage)), style="bold white on red", no_wrap=True, overflow="ellipsis")]


def _queues(snapshot: Snapshot) -> Section:
    rows = [
        [
            Text(visible(queue.name) + ("  (paused)" if queue.paused else ""), style="yellow" if queue.paused else ""),
            *(_depth(queue.depths.get(depth, 0)) for depth in _DEPTHS),
            _depth(queue.depths.get("claimed", 0) + queue.depths.get("running", 0)),
        ]
        for queue in snapshot.queues
    ]
    return Section(columns=("QUEUE", *_DEPTHS, "in flight"), rows=rows, empty="no queues yet")


def _workers(snapshot: Snapshot, rates: Mapping[str, Rate]) -> Section:
    rows: list[list[Text | str]] = []
    for worker in snapshot.workers:
        gone = silent(worker, snapshot.at)
        rate = rates.get(worker.id, Rate())
        rows.append(
            [
                Text(worker.id, style="red" if gone else ""),
                Text("silent" if gone else worker.state, style="red" if gone else ""),
                _age(snapshot.at - worker.last_heartbeat),
                Text(visible(",".join(worker.queues)) or "all"),
                f"{worker.tasks_completed}",
                f"{worker.tasks_failed}",
                _per_second(rate.completed),
                _per_second(rate.failed),
            ]
        )
    columns = ("WORKER", "state", "beat", "queues", "done", "failed", "done/s", "failed/s")
    return Section(columns=columns, rows=rows, empty="no worker is active")


def _failures(snapshot: Snapshot) -> Section:
    rows = [
        [
            f"{task.id}",
            Text(visible(task.name)),
            _age(snapshot.at - task.finished_at) if task.finished_at else "",
            f"{task.attempt}",
            Text(visible(f"{(task.error_class or '').rpartition('.')[2]}: {redacted(task.error_message or '')}")),
        ]
        for task in snapshot.failures
    ]
    columns = ("FAILED", "task", "ago", "attempts", "error")
    return Section(columns=columns, rows=rows, empty="no failures")


def _fires(snapshot: Snapshot) -> Section:
    rows = [
        [
            Text(visible(fire.schedule)),
            Text(visible(fire.task)),
            "paused" if fire.paused else _until(fire.at, snapshot.at),
        ]
        for fire in snapshot.fires
    ]
    return Section(columns=("SCHEDULE", "task", "next"), rows=rows, empty="no schedules")


def _depth(n: int) -> str:
    return f">{COUNTED_AT_MOST - 1}" if n >= COUNTED_AT_MOST else f"{n}"


def _per_second(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 10 or rate == 0 else f"{rate:.1f}"


def _age(span: timedelta) -> str:
    return ago(datetime.now(UTC) - max(span, timedelta())).removesuffix(" ago")


def _until(at: datetime | None, now: datetime) -> str:
    return "" if at is None else ago(datetime.now(UTC) + (at - now))
