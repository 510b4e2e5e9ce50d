"""The tree of commands."""

from typing import Annotated

import typer

from headrace._version import __version__
from headrace.cli import (
    audit,
    bench,
    breakers,
    database,
    dead_letters,
    demo,
    doctor,
    enqueueing,
    events,
    explaining,
    jobs,
    logs,
    queues,
    running,
    scheduler,
    schedules,
    sending,
    serving,
    tasks,
    tokens,
    top,
    users,
)
from headrace.cli.helping import examples, root_epilog

application = typer.Typer(
    name="headrace",
    help="One durable task engine for Python, on SQLite or PostgreSQL.",
    epilog=root_epilog(),
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


application.command(
    "up",
    epilog=examples(
        "headrace up tasks:app", "headrace up tasks:app --port 9000", "headrace up tasks:app --metrics-port 9000"
    ),
)(running.up)
application.command(
    "worker",
    epilog=examples(
        "headrace worker tasks:app --concurrency 100 --processes 2",
        "headrace worker tasks:app --queues mail,default --children 2",
        "headrace worker tasks:app --burst",
    ),
)(running.worker)
application.command(
    "server",
    epilog=examples(
        "headrace server tasks:app --port 9000",
        "headrace server tasks:app --no-auth",
        "headrace server tasks:app --host 0.0.0.0 --secure-cookies --log-format json",
    ),
)(serving.server)
application.command(
    "scheduler", epilog=examples("headrace scheduler tasks:app", "headrace scheduler -d postgresql://localhost/shop")
)(scheduler.scheduler)
application.command(
    "enqueue",
    epilog=examples(
        "headrace enqueue tasks:app tasks.welcome user_id=7 --wait",
        "headrace enqueue tasks:app tasks.report --queue slow --delay 60 --json",
    ),
)(enqueueing.enqueue)
application.command("send", epilog=sending.EPILOG)(sending.send)
application.command("top", epilog=top.EPILOG)(top.top)
application.command("logs", epilog=logs.EPILOG)(logs.logs)
application.command("explain", epilog=explaining.EXPLAIN)(explaining.explain)
application.command("health", epilog=explaining.HEALTH)(explaining.health)
application.command("doctor", epilog=doctor.EPILOG)(doctor.doctor)
application.command("bench", epilog=bench.EPILOG)(bench.bench)
application.command("demo", epilog=examples("headrace demo", "headrace demo --tasks 10000 --json"))(demo.demo)
application.add_typer(tasks.commands, name="tasks")
application.add_typer(dead_letters.commands, name="dlq")
application.add_typer(jobs.commands, name="jobs")
application.add_typer(queues.commands, name="queues")
application.add_typer(breakers.commands, name="breakers")
application.add_typer(schedules.commands, name="schedules")
application.add_typer(events.commands, name="events")
application.add_typer(queues.workers, name="workers")
application.add_typer(users.commands, name="users")
application.add_typer(tokens.commands, name="tokens")
application.command("audit", epilog=audit.EPILOG)(audit.audit)
application.add_typer(database.commands, name="db")
