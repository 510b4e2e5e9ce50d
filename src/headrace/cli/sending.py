"""`headrace send`: say that something happened that tasks wait for, or are enqueued by."""

from typing import Annotated

import typer

from headrace.cli.failures import CommandError
from headrace.cli.helping import examples
from headrace.cli.output import console, print_json
from headrace.cli.target import Database, Json, Namespace, app_of

EPILOG = examples(
    "headrace send paid order-7",
    "headrace send paid order-7 '{\"amount\": 5}'",
    "headrace send approved contract-12 true --database tasks:app --json",
)


def send(
    event: Annotated[
        str,
        typer.Argument(
            help="Name of the event, as in current.wait(name, key) and @app.on_event(name).", show_default=False
        ),
    ],
    key: Annotated[
        str,
        typer.Argument(
            help="Which of many it is, as the number of an order: the same as in the wait that takes it.",
            show_default="the empty one",
        ),
    ] = "",
    payload: Annotated[
        str | None,
        typer.Argument(help="What comes with it: JSON; what is not JSON is sent as text.", show_default="null"),
    ] = None,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Send an event: tasks that wait for it with current.wait go on, and those of @app.on_event are enqueued.

    It is kept as long as history is, so it may come before anyone waits. Prints its id.
    """
    import orjson

    from headrace.core.errors import EnqueueError

    try:
        value = None if payload is None else orjson.loads(payload)
    except orjson.JSONDecodeError:
        value = payload
    app = app_of(database, name)
    try:
        sent = app.send(event, key, value)
    except EnqueueError as error:
        raise CommandError(str(error)) from None
    finally:
        app.close()
    # As it is: a key of an event is no secret, though it is called so, and whoever typed it knows it.
    print_json({"id": str(sent), "event": event, "key": key}, whole=True) if json else console.print(sent)
