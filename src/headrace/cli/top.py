"""`headrace top`: a live table of queues, workers and failures."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.helping import examples
from headrace.cli.output import console, print_json
from headrace.cli.target import Database, Namespace, place_of, shown_url, with_store

if TYPE_CHECKING:
    from headrace.cli.board.snapshot import Snapshot
    from headrace.cli.board.view import Board
    from headrace.store.base import Store

EPILOG = examples("headrace top", "headrace top --interval 0.5", "headrace top --once --json")
_ONCE = 1.0  # seconds over which a single look takes its rates


def top(
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print it once, with the rates of a second, and exit.")] = False,
    database: Database = None,
    name: Namespace = "headrace",
    json: Annotated[bool, typer.Option("--json", help="Print JSON, once.")] = False,
) -> None:
    """Watch queues, workers, rates and the newest failures. `q` quits; without a terminal it prints once.

    A store that goes away is shown and waited for. Rates are what workers counted over the last ten seconds.
    """
    from headrace.cli.board.live import once as look_once
    from headrace.cli.board.live import watch
    from headrace.cli.board.snapshot import total

    url, namespace = place_of(database, name)
    place = shown_url(url)
    if not (once or json) and sys.stdin.isatty() and sys.stdout.isatty():
        with_store(url, namespace, lambda store: watch(store, place, interval=interval))
        return

    async def read(store: "Store") -> "tuple[Snapshot, Board]":
        return await look_once(store, place, over=_ONCE)

    snapshot, board = with_store(url, namespace, read)
    if json:
        print_json(
            {
                "store": place,
                "at": snapshot.at,
                "rates": total(board.rates)._asdict(),
                "queues": snapshot.queues,
                "workers": snapshot.workers,
                "failures": snapshot.failures,
                "schedules": snapshot.fires,
            }
        )
    else:
        console.print(board)
