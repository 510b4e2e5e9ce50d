"""`headrace queues` and `headrace workers`: what waits, and who works."""

from typing import Annotated

import typer

from headrace.cli import completing
from headrace.cli.failures import CommandError
from headrace.cli.helping import examples
from headrace.cli.output import ago, console, print_json, print_table
from headrace.cli.target import Database, Json, Namespace, with_store

commands = typer.Typer(no_args_is_help=True, help="See what waits where; pause and resume.")
workers = typer.Typer(no_args_is_help=True, help="See who works.")


def _named(queue: str) -> str:
    """A pause of a name that no task can have would be a mistake that nobody notices."""
    from headrace.client.options import check_queue
    from headrace.core.errors import OptionError

    try:
        check_queue(queue)
    except OptionError as error:
        raise CommandError(str(error)) from None
    return queue


Queue = Annotated[
    str,
    typer.Argument(help="Name of the queue.", show_default=False, callback=_named, autocompletion=completing.queues),
]


@commands.command("list", epilog=examples("headrace queues list", "headrace queues list --json"))
def list_queues(database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """List queues with what waits in each."""
    records = with_store(database, name, lambda store: store.queues())
    if json:
        print_json(records)
        return
    depths = ("primary", "retry", "scheduled", "waiting", "claimed", "running")
    print_table(
        "",
        ("queue", "paused", *depths),
        ([r.name, "yes" if r.paused else "", *(r.depths.get(depth, 0) for depth in depths)] for r in records),
        empty="no queues yet",
    )


@commands.command(epilog=examples("headrace queues pause mail"))
def pause(queue: Queue, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Stop claims from a queue. What runs goes on."""
    with_store(database, name, lambda store: store.pause(queue))
    if json:
        print_json({"queue": queue, "paused": True})
    else:
        console.print(f"queue {queue} is paused; `headrace queues resume {queue}` lets it go on", markup=False)


@commands.command(epilog=examples("headrace queues resume mail"))
def resume(queue: Queue, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Let claims from a queue go on."""
    with_store(database, name, lambda store: store.resume(queue))
    if json:
        print_json({"queue": queue, "paused": False})
    else:
        console.print(f"queue {queue} goes on", markup=False)


@workers.command("list", epilog=examples("headrace workers list --json"))
def list_workers(database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """List workers with their state and heartbeat."""
    records = with_store(database, name, lambda store: store.workers())
    if json:
        print_json(records)
        return
    print_table(
        "",
        ("worker", "kind", "state", "heartbeat", "completed", "failed", "queues"),
        (
            [r.id, r.kind, r.state, ago(r.last_heartbeat), r.tasks_completed, r.tasks_failed, ",".join(r.queues)]
            for r in records
        ),
        empty="no workers yet",
    )
