"""`headrace scheduler`: fire schedules, and nothing else."""

from typing import Annotated

import typer
from rich.markup import escape

from headrace.cli.output import console
from headrace.cli.running import LogFormatFlag, LogLevelFlag, log_options
from headrace.cli.target import DEFAULT_URL, Database, Namespace, load_app, shown_url, store_of


def scheduler(
    target: Annotated[
        str | None,
        typer.Argument(
            help="Where your App is, as module:attribute: the schedules that its code declares are written first.",
            show_default=False,
        ),
    ] = None,
    database: Database = None,
    name: Namespace = "headrace",
    log_level: LogLevelFlag = None,
    log_format: LogFormatFlag = None,
) -> None:
    """Fire schedules until told to stop. Any number may run: each tick fires once.

    Every worker does this too, unless it is started with --no-scheduler. Without an App it fires what is stored.
    """
    # Imported here: every other command would pay for it.
    import asyncio

    from headrace.telemetry.console import CONSOLE_EVENTS
    from headrace.telemetry.console import console as log_event
    from headrace.telemetry.events import Bus
    from headrace.telemetry.logs import configure, use_redaction
    from headrace.worker.scheduling import Scheduler

    app = None if target is None else load_app(target)
    if app is None:
        store_of(database, name)  # says at once that there is none
    configure(log_options(log_level, log_format))
    use_redaction(app)
    bus = Bus()
    bus.subscribe(log_event, *CONSOLE_EVENTS)
    url = shown_url(database or DEFAULT_URL if app is None else app.url)
    console.print(f"[bold]headrace[/] scheduler on {escape(url)}; Ctrl-C stops it, and nothing is lost")
    new_store = (lambda: store_of(database, name)) if app is None else app.new_store

    async def run() -> None:
        await Scheduler(new_store, app=app, target=target, bus=bus).run()

    asyncio.run(run())
