"""`headrace tasks`: look at tasks, cancel them, run them again, remove them."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import completing
from headrace.cli.bulk import (
    DeadLetters,
    JobId,
    Most,
    Owner,
    WorkerId,
    Yes,
    act,
    ask_before_deleting,
    choose,
    filters_of,
)
from headrace.cli.failures import FAILED, CommandError
from headrace.cli.helping import examples
from headrace.cli.output import console, print_json
from headrace.cli.target import Database, Json, Namespace, app_of, with_store
from headrace.core.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Generator

    from headrace.app import App
    from headrace.core.task import TaskRecord
    from headrace.store.base import Store

commands = typer.Typer(no_args_is_help=True, help="Look at tasks, cancel them, run them again, decide on them.")

Id = Annotated[int, typer.Argument(help="Id of the task.", show_default=False, autocompletion=completing.task_ids)]
SomeIds = Annotated[
    list[int] | None,
    typer.Argument(
        help="Ids of tasks; or choose by the options below.",
        show_default=False,
        autocompletion=completing.task_ids,
    ),
]
States = Annotated[
    list[TaskState] | None,
    typer.Option(
        "--state",
        metavar="STATE",
        help=f"Only these states; may be repeated. One of {', '.join(TaskState)}.",
        show_default=False,
        autocompletion=completing.states,
    ),
]
QueueNames = Annotated[
    list[str] | None,
    typer.Option("--queue", help="Only these queues; may be repeated.", autocompletion=completing.queues),
]
TaskNames = Annotated[
    list[str] | None,
    typer.Option("--task", help="Only tasks of this name; may be repeated.", autocompletion=completing.task_names),
]
By = Annotated[str | None, typer.Option("--by", help="Who decides.", show_default="your login name")]
Role = Annotated[str | None, typer.Option("--role", help="In which role, where the task asks for one.")]
Note = Annotated[str | None, typer.Option("--note", help="Kept with the decision.")]


@commands.command(
    "list", epilog=examples("headrace tasks list", "headrace tasks list --state failed --queue mail --json")
)
def list_tasks(
    state: States = None,
    queue: QueueNames = None,
    task: TaskNames = None,
    dead_letters: Annotated[bool, typer.Option("--dead-letters", help="Only dead letters.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many, newest first.")] = 50,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """List tasks, newest first."""
    from headrace.cli.showing import print_tasks
    from headrace.core.task import TaskFilter

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
    else:
        print_tasks(records, empty="no tasks match")


@commands.command(epilog=examples("headrace tasks show 42"))
def show(id: Id, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Show one task with all its attempts."""
    from headrace.cli.showing import print_life, read_life

    print_life(with_store(database, name, lambda store: read_life(store, id)), json=json)


@commands.command(epilog=examples("headrace tasks cancel 42 43", "headrace tasks cancel --queue mail --state pending"))
def cancel(
    ids: SomeIds = None, state: States = None, queue: QueueNames = None, task: TaskNames = None, job: JobId = None,
    worker: WorkerId = None, owner: Owner = None, limit: Most = None, database: Database = None,
    name: Namespace = "headrace", json: Json = False,
) -> None:  # fmt: skip
    """Cancel tasks. Running ones are told to stop. Exit code 1 when one of them had ended or is unknown.

    By ids, or by options; what is enqueued from then on is not taken.
    """
    from headrace.store.base import CancelAnswer

    words = {
        CancelAnswer.CANCELLED: "cancelled",
        CancelAnswer.CANCELLING: "its worker is told to stop it",
        CancelAnswer.TOO_LATE: "too late, it had ended",
        CancelAnswer.UNKNOWN: "unknown",
    }
    filters = filters_of(state=state, queue=queue, task=task, job=job, worker=worker, owner=owner)
    chosen = choose("cancel", ids, filters, limit)
    if not chosen:
        with _app(database, name) as app:
            act(app, "cancel", filters, limit, json=json)
        return
    answers = with_store(database, name, lambda store: store.cancel(chosen))
    if json:
        print_json({str(id): answer for id, answer in answers.items()})
    else:
        for id in chosen:
            console.print(f"task {id}: {words[answers.get(id, CancelAnswer.UNKNOWN)]}")
    if any(answer in (CancelAnswer.UNKNOWN, CancelAnswer.TOO_LATE) for answer in answers.values()):
        raise typer.Exit(FAILED)


@commands.command(epilog=examples("headrace tasks retry 42", "headrace tasks retry --task tasks.charge --state failed"))
def retry(
    ids: SomeIds = None, state: States = None, queue: QueueNames = None, task: TaskNames = None, job: JobId = None,
    worker: WorkerId = None, owner: Owner = None, dead_letters: DeadLetters = False, limit: Most = None,
    database: Database = None, name: Namespace = "headrace", json: Json = False,
) -> None:  # fmt: skip
    """Run tasks that ended once more, with a fresh budget of attempts. Exit code 1 when one of them stays.

    By ids, or by options, which choose among what has failed unless --state says more; what fails from then on is not
    taken.
    """
    filters = filters_of(
        state=state, queue=queue, task=task, job=job, worker=worker, owner=owner, dead_letters=dead_letters
    )
    chosen = choose("retry", ids, filters, limit)
    if not chosen:
        with _app(database, name) as app:
            act(app, "retry", filters, limit, json=json)
        return
    changed = with_store(database, name, lambda store: store.retry(chosen))
    if json:
        print_json({"retried": [str(id) for id in changed]})
    else:
        console.print(f"{len(changed)} of {len(chosen)} back in the queue")
    if missing := sorted(set(chosen) - set(changed)):
        raise CommandError(
            f"not retried: {', '.join(map(str, missing))} (unknown, not ended, or another task holds its unique key)",
            code=FAILED,
        )


@commands.command(
    epilog=examples("headrace tasks delete 42", "headrace tasks delete --state completed --queue mail --yes")
)
def delete(
    ids: SomeIds = None, state: States = None, queue: QueueNames = None, task: TaskNames = None, job: JobId = None,
    worker: WorkerId = None, owner: Owner = None, dead_letters: DeadLetters = False, limit: Most = None,
    yes: Yes = False, database: Database = None, name: Namespace = "headrace", json: Json = False,
) -> None:  # fmt: skip
    """Remove tasks for good, with their attempts and logs, whatever became of them. Exit code 1 when one of them stays.

    What a worker has must be cancelled first. By ids, or by options: then it asks first on a terminal, and elsewhere it
    wants --yes; what comes from then on is not taken.
    """
    from headrace.store.removing import DeleteAnswer

    filters = filters_of(
        state=state, queue=queue, task=task, job=job, worker=worker, owner=owner, dead_letters=dead_letters
    )
    chosen = choose("delete", ids, filters, limit)
    with _app(database, name) as app:
        if not chosen:
            if not yes:
                ask_before_deleting(app, filters, limit)
            act(app, "delete", filters, limit, json=json)
            return
        answers = app.tasks.delete(*chosen)
    words = {
        DeleteAnswer.DELETED: "deleted",
        DeleteAnswer.HELD: "a worker has it: cancel it first",
        DeleteAnswer.NEEDED: "its job is not over, or a task waits for it",
        DeleteAnswer.UNKNOWN: "unknown",
    }
    if json:
        print_json({str(id): answer for id, answer in answers.items()})
    else:
        for id, answer in answers.items():
            console.print(f"task {id}: {words[answer]}")
    if any(answer is not DeleteAnswer.DELETED for answer in answers.values()):
        raise typer.Exit(FAILED)


@commands.command("requeue-orphaned", epilog=examples("headrace tasks requeue-orphaned"))
def requeue_orphaned(
    watch: Annotated[
        str | None,
        typer.Option(help="How long a silent worker is watched before that.", show_default="half its lease"),
    ] = None,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Take back the tasks of workers that are gone. Running workers do it by themselves: this is for when none runs."""
    from headrace.core.durations import written_seconds

    seconds = None if watch is None else written_seconds(watch, name="--watch")
    with _app(database, name) as app:
        counts = app.tasks.requeue_orphaned(watch=seconds)
    if json:
        print_json(counts)
    else:
        console.print(
            f"of {counts['workers']} workers: {counts['requeued']} tasks requeued, {counts['failed']} failed, "
            f"{counts['cancelled']} cancelled"
        )


@contextmanager
def _app(database: str | None, name: str) -> "Generator[App]":
    app = app_of(database, name)
    try:
        yield app
    finally:
        app.close()


@commands.command(epilog=examples("headrace tasks approve 42", "headrace tasks approve 42 --by ann --role finance"))
def approve(
    id: Id, by: By = None, role: Role = None, note: Note = None, database: Database = None,
    name: Namespace = "headrace", json: Json = False,
) -> None:  # fmt: skip
    """Let a task run that waits for approval. Exit code 1 when it waits no more, or for another role."""
    _decide(id, database, name, approved=True, by=by, role=role, note=note, json=json)


@commands.command(epilog=examples('headrace tasks reject 42 --note "over budget"'))
def reject(
    id: Id, by: By = None, role: Role = None, note: Note = None, database: Database = None,
    name: Namespace = "headrace", json: Json = False,
) -> None:  # fmt: skip
    """End a task that waits for approval as rejected. Exit code 1 when it waits no more, or for another role."""
    _decide(id, database, name, approved=False, by=by, role=role, note=note, json=json)


def _decide(
    id: int, database: str | None, namespace: str, *, approved: bool, by: str | None, role: str | None,
    note: str | None, json: bool,
) -> None:  # fmt: skip
    from getpass import getuser

    who = by or getuser()

    async def decide(store: "Store") -> "TaskRecord":
        await _require_role(store, id, role)
        return await store.decide(id, approved=approved, by=who, note=note)

    record = with_store(database, namespace, decide)
    if json:
        print_json(record)
    else:
        console.print(f"task {id}: {'approved' if approved else 'rejected'} by {who}", markup=False)


async def _require_role(store: "Store", id: int, role: str | None) -> None:
    from headrace.cli.showing import unknown
    from headrace.core.payload import loads

    record = (await store.get([id])).get(id)
    if record is None:
        raise await unknown(store, id)
    wanted = loads(record.options).get("approval", {}).get("role")
    if wanted is not None and role != wanted:
        raise CommandError(f"task {id} waits for the role {wanted!r}: who has it says --role {wanted}", code=FAILED)
