"""`headrace tasks`: look at tasks, cancel them, run them again."""

from typing import Annotated

import typer
from rich.markup import escape

from headrace.cli.failures import FAILED, CommandError
from headrace.cli.output import ago, console, print_json, print_table, redacted, visible
from headrace.cli.target import Database, Json, Namespace, with_store
from headrace.core.errors import NotFound
from headrace.core.states import TaskState
from headrace.core.task import AttemptRecord, TaskFilter, TaskRecord
from headrace.store.base import CancelAnswer, LogLine, Store

commands = typer.Typer(no_args_is_help=True, help="Look at tasks, cancel them, run them again.")

Id = Annotated[int, typer.Argument(help="Id of the task.", show_default=False)]
Ids = Annotated[list[int], typer.Argument(help="Ids of the tasks.", show_default=False)]


@commands.command("list", epilog="Example: headrace tasks list --state failed --queue mail --json")
def list_tasks(
    state: Annotated[
        list[TaskState] | None,
        typer.Option(
            metavar="STATE",
            help=f"Only these states; may be repeated. One of {', '.join(TaskState)}.",
            show_default=False,
        ),
    ] = None,
    queue: Annotated[list[str] | None, typer.Option(help="Only these queues; may be repeated.")] = None,
    task: Annotated[list[str] | None, typer.Option("--task", help="Only tasks of this name; may be repeated.")] = None,
    dead_letters: Annotated[bool, typer.Option("--dead-letters", help="Only dead letters.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many, newest first.")] = 50,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """List tasks, newest first."""
    criteria = TaskFilter(
        states=tuple(state or ()),
        queues=tuple(queue or ()),
        names=tuple(task or ()),
        dead_letter=True if dead_letters else None,
        limit=limit,
    )
    records = with_store(database, name, lambda store: store.list(criteria))
    if json:
        print_json(records)
        return
    print_table(
        "",
        ("id", "task", "queue", "state", "attempt", "created", "error"),
        (
            [
                r.id,
                r.name,
                r.queue,
                _state(r),
                f"{r.attempt}/{r.max_attempts}",
                ago(r.created_at),
                _short(r.error_message),
            ]
            for r in records
        ),
        empty="no tasks match",
    )


@commands.command(epilog="Example: headrace tasks show 42")
def show(id: Id, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Show one task with all its attempts."""

    async def read(store: Store) -> tuple[TaskRecord | None, list[AttemptRecord], list[LogLine]]:
        records = await store.get([id])
        return records.get(id), await store.attempts(id), await store.logs(id, limit=50)

    record, attempts, lines = with_store(database, name, read)
    if record is None:
        raise NotFound(f"no task {id}; it never existed, or it ended longer ago than history is kept")
    if json:
        print_json({"task": record, "attempts": attempts, "logs": lines})
        return
    facts = {
        "task": f"{record.id}  {record.name}",
        "state": _state(record),
        "queue": f"{record.queue}  (priority {record.priority}, {record.lane.name.lower()} lane, {record.pool})",
        "arguments": _short(record.arguments, 400),
        "attempts": f"{record.attempt} of {record.max_attempts} charged, run {record.run_no}, claim {record.claim_no}",
        "created": f"{record.created_at:%Y-%m-%d %H:%M:%S} UTC  ({ago(record.created_at)})",
        "eligible": ago(record.eligible_at) if record.state is TaskState.PENDING else None,
        "waits for": record.waiting_on,
        "worker": record.worker,
        "job": record.job,
        "progress": record.progress,
        "result": _short(record.result, 400),
        "error": f"{record.error_class}: {record.error_message}" if record.error_class else None,
    }
    for label, value in facts.items():
        if value not in (None, ""):
            console.print(f"[bold]{label:>10}[/]  {escape(visible(redacted(str(value))))}")
    print_table(
        "\nattempts",
        ("claim", "attempt", "state", "charged", "started", "error", "late report"),
        (
            [
                a.claim_no,
                a.attempt,
                a.state,
                "yes" if a.charged else "no",
                ago(a.started_at),
                _short(a.error_message),
                a.late_state,
            ]
            for a in attempts
        ),
        empty="no attempt yet",
    )
    for line in lines:
        console.print(f"[dim]{line.at:%H:%M:%S} {line.stream}[/] {escape(visible(redacted(line.line)))}")


@commands.command(epilog="Example: headrace tasks cancel 42 43")
def cancel(ids: Ids, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Cancel tasks. Running ones are told to stop."""
    answers = with_store(database, name, lambda store: store.cancel(ids))
    if json:
        print_json({str(id): answer for id, answer in answers.items()})
    else:
        for id in ids:
            console.print(f"task {id}: {_CANCEL_WORDS[answers.get(id, CancelAnswer.UNKNOWN)]}")
    if any(answer in (CancelAnswer.UNKNOWN, CancelAnswer.TOO_LATE) for answer in answers.values()):
        raise typer.Exit(FAILED)


@commands.command(epilog="Example: headrace tasks retry 42")
def retry(ids: Ids, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Run tasks that ended once more, with a fresh budget of attempts."""
    changed = with_store(database, name, lambda store: store.retry(ids))
    if json:
        print_json({"retried": [str(id) for id in changed]})
    else:
        console.print(f"{len(changed)} of {len(ids)} back in the queue")
    if missing := sorted(set(ids) - set(changed)):
        raise CommandError(
            f"not retried: {', '.join(map(str, missing))} (unknown, not ended, or another task holds its unique key)",
            code=FAILED,
        )


_CANCEL_WORDS = {
    CancelAnswer.CANCELLED: "cancelled",
    CancelAnswer.CANCELLING: "its worker is told to stop it",
    CancelAnswer.TOO_LATE: "too late, it had ended",
    CancelAnswer.UNKNOWN: "unknown",
}


def _state(record: TaskRecord) -> str:
    return f"{record.state}/{record.reason}" if record.reason else record.state


def _short(text: str | None, width: int = 60) -> str:
    if not text:
        return ""
    line = " ".join(redacted(text).splitlines())  # before it is cut: half a JSON text is harder to read
    return line if len(line) <= width else line[: width - 1] + "…"
