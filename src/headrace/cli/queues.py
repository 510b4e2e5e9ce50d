"""`headrace queues` and `headrace workers`: what waits, and who works."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli import completing
from headrace.cli.failures import CommandError
from headrace.cli.helping import examples
from headrace.cli.output import ago, console, print_json, print_table
from headrace.cli.target import Database, Json, Namespace, with_store

if TYPE_CHECKING:
    from headrace.core.limits import Rate

commands = typer.Typer(no_args_is_help=True, help="See what waits where; pause, resume and limit.")
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
        ("queue", "paused", *depths, "limit", "rate"),
        (
            [
                r.name,
                "yes" if r.paused else "",
                *(r.depths.get(depth, 0) for depth in depths),
                "" if r.limit is None else r.limit,
                "" if r.rate is None else f"{r.rate.n}/{r.rate.per:g}s",
            ]
            for r in records
        ),
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


@commands.command(epilog=examples("headrace queues limit mail 5", "headrace queues limit mail none"))
def limit(
    queue: Queue,
    n: Annotated[str, typer.Argument(help="How many of its tasks run at once, over all workers; none lifts it.")],
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Limit how many tasks of a queue run at once, those that wait already included."""
    most = None if n == "none" else _count(n)
    with_store(database, name, lambda store: store.limit_queue(queue, most))
    if json:
        print_json({"queue": queue, "limit": most})
    elif most is None:
        console.print(f"queue {queue} has no limit that was set by hand", markup=False)
    else:
        console.print(f"at most {most} tasks of queue {queue} run at once", markup=False)


@commands.command(epilog=examples("headrace queues rate mail 100/60", "headrace queues rate mail none"))
def rate(
    queue: Queue,
    rate: Annotated[
        str, typer.Argument(help="Starts per time over all workers, as 100/60 (seconds) or 100/1m; none lifts it.")
    ],
    burst: Annotated[
        int | None, typer.Option(min=1, help="How many start at once after a quiet time.", show_default="as the rate")
    ] = None,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Limit how fast tasks of a queue start, those that wait already included."""
    given = None if rate == "none" else _rate(rate, burst)
    with_store(database, name, lambda store: store.rate_queue(queue, given))
    if json:
        shown = None if given is None else {"n": given.n, "per": given.per, "burst": given.burst}
        print_json({"queue": queue, "rate": shown})
    elif given is None:
        console.print(f"queue {queue} has no rate that was set by hand", markup=False)
    else:
        console.print(f"at most {given.n} tasks of queue {queue} start each {given.per:g} s", markup=False)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) < 2**31:
        raise CommandError(f"{text!r} is no limit: write a whole number from 1, or none")
    return int(text)


def _rate(text: str, burst: int | None) -> "Rate":
    from headrace.core.durations import written_seconds
    from headrace.core.errors import OptionError
    from headrace.core.limits import Rate

    n, _, per = text.partition("/")
    try:
        return Rate(_count(n), written_seconds(per or "1", name="rate"), burst=burst)
    except (CommandError, OptionError):
        raise CommandError(f"{text!r} is no rate: write 100/60 for 100 starts in 60 seconds, or none") from None


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
