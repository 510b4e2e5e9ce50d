"""How a task is shown, whatever command shows it."""

from collections.abc import Sequence

from rich.markup import escape

from headrace.cli.output import ago, console, print_json, print_table, redacted, visible
from headrace.core.errors import NotFound
from headrace.core.states import TaskState
from headrace.core.task import AttemptRecord, TaskRecord
from headrace.store.base import LogLine, Store
from headrace.store.moved import moved_to

type Life = tuple[TaskRecord, list[AttemptRecord], list[LogLine]]

_LINES = 50
_CALLED = ("task", "queue", "worker", "error")  # how things are called is shown; the message is searched by itself


async def unknown(store: Store, id: int) -> NotFound:
    if (place := await moved_to(store)) is not None:
        return NotFound(f"no task {id} here: this ledger has moved to {place}; ask there, with --database")
    return NotFound(f"no task {id}; it never existed, or it ended longer ago than history is kept")


async def read_life(store: Store, id: int) -> Life:
    record = (await store.get([id])).get(id)
    if record is None:
        raise await unknown(store, id)
    return record, await store.attempts(id), await store.logs(id, limit=_LINES)


def print_life(life: Life, *, json: bool, traceback: bool = False) -> None:
    record, attempts, lines = life
    if json:
        print_json({"task": record, "attempts": attempts, "logs": lines})
        return
    for label, value in _facts(record).items():
        if value not in (None, ""):
            text = str(value) if label in _CALLED else redacted(str(value))
            console.print(f"[bold]{label:>10}[/]  {escape(visible(text))}")
    _print_attempts(attempts)
    if traceback and attempts and (text := attempts[-1].traceback):
        console.print(f"\n[bold]traceback of claim {attempts[-1].claim_no}[/]")
        for line in redacted(text).splitlines():  # in this order: a private key has many lines
            console.print(escape(visible(line)))
    for line in lines:
        console.print(
            f"[dim]{line.at:%H:%M:%S} {escape(visible(line.stream))}[/] {escape(visible(redacted(line.line)))}"
        )


def print_tasks(records: Sequence[TaskRecord], *, empty: str) -> None:
    print_table(
        "",
        ("id", "task", "queue", "state", "attempt", "created", "error"),
        (
            [
                record.id,
                record.name,
                record.queue,
                state_of(record),
                f"{record.attempt}/{record.max_attempts}",
                ago(record.created_at),
                short(record.error_message),
            ]
            for record in records
        ),
        empty=empty,
    )


def state_of(record: TaskRecord) -> str:
    return f"{record.state}/{record.reason}" if record.reason else record.state


def short(text: str | None, width: int = 60) -> str:
    if not text:
        return ""
    line = " ".join(redacted(text).splitlines())  # before it is cut: half a JSON text is harder to read
    return line if len(line) <= width else line[: width - 1] + "…"


def _facts(record: TaskRecord) -> dict[str, object]:
    return {
        "task": f"{record.id}  {record.name}",
        "state": state_of(record),
        "queue": f"{record.queue}  (priority {record.priority}, {record.lane.name.lower()} lane, {record.pool})",
        "arguments": short(record.arguments, 400),
        "attempts": f"{record.attempt} of {record.max_attempts} charged, run {record.run_no}, claim {record.claim_no}",
        "created": f"{record.created_at:%Y-%m-%d %H:%M:%S} UTC  ({ago(record.created_at)})",
        "eligible": ago(record.eligible_at) if record.state is TaskState.PENDING else None,
        "waits for": record.waiting_on,
        "worker": record.worker,
        "job": record.job,
        "progress": record.progress,
        "result": short(record.result, 400),
        "error": f"{record.error_class}: {redacted(record.error_message or '')}" if record.error_class else None,
    }


def _print_attempts(attempts: Sequence[AttemptRecord]) -> None:
    print_table(
        "\nattempts",
        ("claim", "attempt", "state", "charged", "started", "error", "late report"),
        (
            [
                attempt.claim_no,
                attempt.attempt,
                attempt.state,
                "yes" if attempt.charged else "no",
                ago(attempt.started_at),
                short(attempt.error_message),
                attempt.late_state,
            ]
            for attempt in attempts
        ),
        empty="no attempt yet",
    )
