"""`headrace tasks retry|cancel|delete` by what tasks are, not by their ids."""

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headrace.cli.failures import FAILED, INTERRUPTED, CommandError
from headrace.cli.output import console, print_json

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.client.bulk import Filters
    from headrace.core.states import TaskState

type Verb = Literal["retry", "cancel", "delete"]

JobId = Annotated[int | None, typer.Option("--job", help="Only tasks of this job.")]
WorkerId = Annotated[str | None, typer.Option("--worker", help="Only what this worker has, or had last.")]
Owner = Annotated[str | None, typer.Option("--owner", help="Only tasks of this user.")]
DeadLetters = Annotated[bool, typer.Option("--dead-letters", help="Only dead letters.")]
Most = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many, newest first.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_PAST = {"retry": "retried", "cancel": "cancelled", "delete": "deleted"}
_DONE = {"retried", "cancelled", "cancelling", "deleted"}


def filters_of(
    *,
    state: "list[TaskState] | None" = None,
    queue: list[str] | None = None,
    task: list[str] | None = None,
    job: int | None = None,
    worker: str | None = None,
    owner: str | None = None,
    dead_letters: bool = False,
) -> "Filters":
    """What was said of it."""
    found: Filters = {}
    if state:
        found["states"] = state
    if queue:
        found["queues"] = queue
    if task:
        found["names"] = task
    if job is not None:
        found["job"] = job
    if worker is not None:
        found["worker"] = worker
    if owner is not None:
        found["owner"] = owner
    if dead_letters:
        found["dead_letter"] = True
    return found


def choose(verb: Verb, ids: list[int] | None, filters: "Filters", limit: int | None) -> list[int]:
    """The ids, or none where the options choose."""
    if ids and (filters or limit is not None):
        raise CommandError("ids, or a choice by options: not both")
    if not ids and not filters:
        raise CommandError(f"say which tasks to {verb}: ids, or --state, --queue, --task, --job, --worker, --owner, …")
    return list(dict.fromkeys(ids or ()))


def ask_before_deleting(app: "App", filters: "Filters", limit: int | None) -> None:
    """On a terminal; elsewhere somebody has to say --yes."""
    from headrace.client.bulk import selected
    from headrace.client.selecting import COUNTED
    from headrace.core.errors import ArgumentError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError("nobody can be asked here, and deleted tasks do not come back: say --yes")
    try:
        selection = selected("deleted", filters, limit)
    except ArgumentError as error:
        raise CommandError(str(error)) from None

    def count() -> int:
        import asyncio

        return asyncio.run(app.engine.run(lambda store: selection.count(store)))

    n = count()
    many = f"{n}" if n <= COUNTED else f"more than {COUNTED:,}"
    try:
        agreed = typer.confirm(f"Delete {many} tasks for good?")
    except typer.Abort:
        raise typer.Exit(INTERRUPTED) from None
    if not agreed:
        console.print("nothing was changed")
        raise typer.Exit


def act(app: "App", verb: Verb, filters: "Filters", limit: int | None, *, json: bool) -> None:
    """Exit code 1 when one of those that matched stays as it was."""
    from headrace.core.errors import ArgumentError

    work = {"retry": app.tasks.retry_where, "cancel": app.tasks.cancel_where, "delete": app.tasks.delete_where}[verb]
    try:
        answers = work(limit=limit, **filters)
    except ArgumentError as error:
        raise CommandError(str(error)) from None
    report(verb, answers, json=json)


def report(verb: Verb, answers: dict[str, int], *, json: bool) -> None:
    if json:
        print_json({"matched": sum(answers.values()), **answers})
    else:
        said = ", ".join(f"{n} {answer.replace('_', ' ')}" for answer, n in answers.items() if n)
        console.print(said or f"no tasks match; nothing was {_PAST[verb]}")
    if any(n for answer, n in answers.items() if answer not in _DONE):
        raise typer.Exit(FAILED)
