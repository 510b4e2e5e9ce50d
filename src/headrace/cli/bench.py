"""`headrace bench`: how fast your own store is on this machine, in a moment."""

from typing import Annotated

import typer

from headrace.cli.helping import examples
from headrace.cli.output import console, print_json
from headrace.cli.target import Database, Json, place_of, shown_url

EPILOG = examples("headrace bench", "headrace bench --database postgresql://me@localhost/shop --json")


def bench(
    seconds: Annotated[float, typer.Option(min=1, max=600, help="About how long it may measure.")] = 10.0,
    tasks: Annotated[int, typer.Option(min=100, max=100_000, help="At most so many tasks in a batch.")] = 20_000,
    processes: Annotated[int, typer.Option("--processes", "-p", min=1, max=64, help="Worker processes.")] = 1,
    database: Database = None,
    json: Json = False,
) -> None:
    """Enqueue and drain tasks that do nothing, on your store, and print how many a second.

    It works under a name of its own (headrace_bench_…), which must not exist and is removed afterwards; your own tasks
    are not touched, but share the machine meanwhile. Where there is no SQLite file yet, it uses a temporary one.
    """
    from headrace.cli.benching import Plan, measure

    url, _ = place_of(database, "headrace")
    found = measure(url, Plan(seconds=seconds, tasks=tasks, processes=processes))
    if json:
        print_json(found)
        return
    rows = {
        "one by one": f"{found.single:,.0f} enqueues a second, each durable before the next",
        "in batches": f"{found.batch:,.0f} enqueues a second",
        "drained": f"{found.drained:,.0f} tasks a second, {found.done:,} tasks, worker processes: {processes}",
        "store": f"{found.product}, {found.durability}, {shown_url(url)}",
    }
    for label, value in rows.items():
        console.print(f"{label:>11}  {value}", markup=False)
