"""`headrace logs`: what tasks said."""

from typing import Annotated

import typer

from headrace.cli import completing
from headrace.cli.failures import CommandError
from headrace.cli.helping import examples
from headrace.cli.target import Database, Namespace, with_store
from headrace.cli.tasks import QueueNames, TaskNames

EPILOG = examples(
    "headrace logs 42",
    "headrace logs 42 --follow",
    "headrace logs 42 --claim 2 --json",
    "headrace logs --queue mail --last 5",
    "headrace logs --follow",
)


def logs(
    id: Annotated[
        int | None,
        typer.Argument(
            metavar="TASK_ID",
            help="Id of the task; without one, the newest tasks.",
            show_default=False,
            autocompletion=completing.task_ids,
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on: until the task ends, or without an id until Ctrl-C.")
    ] = False,
    claim: Annotated[
        int | None, typer.Option("--claim", min=1, help="Only this claim of the task; `tasks show` lists them.")
    ] = None,
    queue: QueueNames = None,
    task: TaskNames = None,
    last: Annotated[int, typer.Option(min=0, max=200, help="Without an id: of so many tasks.")] = 10,
    database: Database = None,
    name: Namespace = "headrace",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Print the lines that a task logged; with --follow, also those to come.

    Without an id: of the newest tasks, of a queue or of a name if you like. When the followed task has ended the exit
    code is 0, however it ended; after Ctrl-C it is 130.
    """
    from headrace.cli.following import Printer, follow_many, follow_one, newest, read_one

    if id is None and claim is not None:
        raise CommandError("--claim belongs to one task: headrace logs TASK_ID --claim N")
    if id is not None and (queue or task):
        raise CommandError("one task by its id, or tasks by --queue and --task: not both")
    printer = Printer(json=json, names=id is None)
    if id is not None and follow:
        with_store(database, name, lambda store: follow_one(store, id, claim, printer))
    elif id is not None:
        with_store(database, name, lambda store: read_one(store, id, claim, printer))
    else:
        criteria = newest(queues=tuple(queue or ()), names=tuple(task or ()), last=last)
        with_store(database, name, lambda store: follow_many(store, criteria, printer, follow=follow))
