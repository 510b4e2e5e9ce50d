"""`headrace breakers`: services that are spared for a while."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.failures import CommandError
from headrace.cli.helping import examples
from headrace.cli.output import ago, console, print_json, print_table
from headrace.cli.target import Database, Json, Namespace, with_store
from headrace.core.errors import NotFound

if TYPE_CHECKING:
    from headrace.core.breaker import BreakerRecord
    from headrace.store.base import Store

commands = typer.Typer(no_args_is_help=True, help="See which services are spared; close and open breakers by hand.")

_BY = "headrace breakers"


def _named(service: str) -> str:
    if not service.strip() or "\0" in service or len(service) > 512:
        raise CommandError("a service has a name of 1 to 512 characters, as app.breaker(...) has it")
    return service


Service = Annotated[
    str, typer.Argument(help="Name of the service, as in app.breaker(name).", show_default=False, callback=_named)
]


@commands.command("list", epilog=examples("headrace breakers list", "headrace breakers list --json"))
def list_breakers(database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """List breakers that opened at some time, or were touched by hand."""
    records = with_store(database, name, lambda store: store.breakers())
    if json:
        print_json(records)
        return
    print_table(
        "",
        ("service", "state", "until", "failures", "changed", "by"),
        (
            [
                r.service,
                r.status,
                "it is reset" if r.forced else "" if r.until is None else f"{r.until:%Y-%m-%d %H:%M:%S} UTC",
                f"{r.failures} of {r.calls}" if r.calls else "",
                ago(r.changed_at),
                r.changed_by,
            ]
            for r in records
        ),
        empty="no breaker has opened yet",
    )


@commands.command(epilog=examples("headrace breakers reset mail"))
def reset(service: Service, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Close a breaker for every process, with fresh counts; they see it within seconds."""

    async def act(store: "Store") -> "BreakerRecord":
        # A misspelt name would else become a breaker that nobody asks, and the one that was meant stays open.
        if all(breaker.service != service for breaker in await store.breakers()):
            raise NotFound(f"no breaker {service!r} has ever opened; `headrace breakers list` shows those that did")
        return await store.reset_breaker(service, by=_BY)

    record = with_store(database, name, act)
    if json:
        print_json(record)
    else:
        console.print(f"the breaker of {service} is closed", markup=False)


@commands.command("open", epilog=examples("headrace breakers open mail", "headrace breakers open mail --timeout 600"))
def open_breaker(
    service: Service,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.001, help="Seconds, after which it is probed.", show_default="until it is reset"),
    ] = None,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Open a breaker for every process: no call is made, tasks go back uncharged.

    With --timeout one that is open already stays as it is.
    """
    lasts, forced = (60.0, True) if timeout is None else (timeout, False)
    record = with_store(database, name, lambda store: store.open_breaker(service, by=_BY, timeout=lasts, forced=forced))
    if json:
        print_json(record)
    elif record.forced:
        console.print(f"{service} is not called until `headrace breakers reset {service}`", markup=False)
    else:
        console.print(f"{service} is not called until {record.until:%Y-%m-%d %H:%M:%S} UTC", markup=False)
