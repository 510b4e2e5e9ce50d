"""The tree of commands."""

from typing import Annotated

import typer

from headrace._version import __version__
from headrace.cli import database, demo, enqueueing, queues, running, scheduler, schedules, tasks

application = typer.Typer(
    name="headrace",
    help="One durable task engine for Python, on SQLite or PostgreSQL.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # an unexpected error shows its whole, plain traceback
)


def _version(asked: bool) -> None:
    if asked:
        print(__version__)
        raise typer.Exit


@application.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """One durable task engine for Python, on SQLite or PostgreSQL."""


application.command("up", epilog="Example: headrace up tasks:app")(running.up)
application.command("worker", epilog="Example: headrace worker tasks:app --queues mail,default --children 2")(
    running.worker
)
application.command("scheduler", epilog="Example: headrace scheduler tasks:app")(scheduler.scheduler)
application.command("enqueue", epilog="Example: headrace enqueue tasks:app tasks.welcome user_id=7 --wait")(
    enqueueing.enqueue
)
application.command("demo")(demo.demo)
application.add_typer(tasks.commands, name="tasks")
application.add_typer(queues.commands, name="queues")
application.add_typer(schedules.commands, name="schedules")
application.add_typer(queues.workers, name="workers")
application.add_typer(database.commands, name="db")
