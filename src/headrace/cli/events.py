"""`headrace events`: which tasks are enqueued by which events."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.failures import FAILED, CommandError
from headrace.cli.helping import examples
from headrace.cli.output import ago, console, print_json, print_table
from headrace.cli.target import Database, Json, Namespace, with_store

if TYPE_CHECKING:
    from headrace.store.base import Store

commands = typer.Typer(no_args_is_help=True, help="Events: which tasks they enqueue (@app.on_event).")


@commands.command(epilog=examples("headrace events subscriptions", "headrace events subscriptions --json"))
def subscriptions(database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """List the tasks that events enqueue."""
    records = with_store(database, name, lambda store: store.subscriptions())
    if json:
        rows = [
            {
                "name": record.name,
                "event": record.event,
                "task": record.task.name,
                "queue": record.task.queue,
                "declared_by": record.declared_by,
                "changed_at": record.changed_at,
            }
            for record in records
        ]
        print_json(rows)
        return
    print_table(
        "",
        ("event", "task", "queue", "declared by", "changed"),
        ([r.event, r.task.name, r.task.queue, r.declared_by, ago(r.changed_at)] for r in records),
        empty="no subscriptions; declare one with @app.on_event, and start a worker of that app",
    )


@commands.command(epilog=examples("headrace events unsubscribe tasks.notify@paid"))
def unsubscribe(
    subscription: Annotated[str, typer.Argument(help="Its name: task@event.", show_default=False)],
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Remove a subscription, of an app that is no more. What code declares comes back when its app starts anew."""

    async def remove(store: "Store") -> bool:
        return await store.remove_subscription(subscription)

    if not with_store(database, name, remove):
        raise CommandError(f"no subscription {subscription!r}; headrace events subscriptions", code=FAILED)
    if json:
        print_json({"removed": subscription})
    else:
        console.print(f"{subscription} is removed", markup=False)
