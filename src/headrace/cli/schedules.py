"""`headrace schedules`: what is enqueued by itself, and when."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headrace.cli.enqueueing import parsed_arguments
from headrace.cli.failures import CommandError
from headrace.cli.helping import examples
from headrace.cli.output import ago, console, print_json, print_table, redacted, visible
from headrace.cli.target import Database, Json, Namespace, Target, load_app, with_store
from headrace.core.errors import NotFound, OptionError

if TYPE_CHECKING:
    from headrace.client.schedules import ScheduleView
    from headrace.core.schedule import ScheduleRecord, ScheduleRun
    from headrace.scheduling.declaration import When
    from headrace.store.base import Store

commands = typer.Typer(no_args_is_help=True, help="See what is enqueued by itself, and when; add, pause, run now.")

ScheduleName = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Name of the schedule.", show_default=False)]

_SHOWN = 5


@commands.command("list", epilog=examples("headrace schedules list --json"))
def list_schedules(database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """List schedules with their next fire and what became of the last."""

    async def read(store: "Store") -> list[tuple["ScheduleView", "ScheduleRun | None"]]:
        records = await store.schedules()
        now = await store.now()
        return [
            (_seen(record, now), next(iter(await store.schedule_runs(record.name, limit=1)), None))
            for record in records
        ]

    found = with_store(database, name, read)
    if json:
        print_json([_plain(seen, fires=1, runs=[] if last is None else [last]) for seen, last in found])
        return
    print_table(
        "",
        ("schedule", "task", "when", "next fire", "", "last run"),
        (
            [seen.name, seen.task, seen.describe(), *_next(seen), "" if last is None else _became(last)]
            for seen, last in found
        ),
        empty="no schedules; declare one with @app.schedule, or `headrace schedules add`",
    )
    for seen, _ in found:
        if seen.silent_until is not None:
            console.print(f"schedule {seen.name}: {_ahead(seen.silent_until)}", markup=False)


@commands.command(epilog=examples("headrace schedules show tasks.welcome"))
def show(schedule: ScheduleName, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Show one schedule with its next fires and its last runs."""

    async def read(store: "Store") -> tuple["ScheduleView", "list[ScheduleRun]"]:
        return await _view(store, schedule), await store.schedule_runs(schedule, limit=_SHOWN)

    seen, runs = with_store(database, name, read)
    if json:
        print_json(_plain(seen, fires=_SHOWN, runs=runs))
        return
    record = seen.record
    lines = {
        "schedule": seen.name,
        "when": seen.describe(),
        "task": f"{seen.task} in queue {record.task.queue}",
        "state": _state(seen),
        "policy": f"catch up: {record.catch_up}, overlap: {record.overlap}",
        "grace": f"{record.grace:g} s" if record.catch_up == "skip" else None,
        "jitter": f"up to {record.jitter:g} s" if record.jitter else None,
        "declared": f"by the code of {record.declared_by}" if record.declared_by else "at run time",
        "changed": ago(record.changed_at),
    }
    for label, text in lines.items():
        if text is not None:
            console.print(f"{label:<9} {visible(redacted(text))}", markup=False)
    _print_fires(seen, _SHOWN)
    if record.task.arguments != "{}":
        print_table("", ("arguments of each run",), [[record.task.arguments]], empty="")
    _print_runs(runs)


@commands.command(
    epilog=examples('headrace schedules add tasks:app tasks.welcome --cron "0 9 * * *" --tz Europe/Berlin user_id=7')
)
def add(
    target: Target,
    task: Annotated[str, typer.Argument(help="Name of the task.", show_default=False)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="Arguments of each run as name=value; the value is JSON, or text where it is not."),
    ] = None,
    cron: Annotated[str | None, typer.Option(help='Five fields of cron, as in "30 2 * * 1-5".')] = None,
    tz: Annotated[str | None, typer.Option(help="Zone of the cron expression.", show_default="UTC")] = None,
    every: Annotated[str | None, typer.Option(help="An interval: 90s, 5m, 1h30m, 2d.")] = None,
    at: Annotated[str | None, typer.Option(help="Once, at this instant: 2027-01-01T00:00:00Z.")] = None,
    called: Annotated[
        str | None, typer.Option("--as", help="Name of the schedule.", show_default="the task's name")
    ] = None,
    catch_up: Annotated[
        Literal["coalesce", "skip", "all"],
        typer.Option(help="Ticks that no scheduler saw: one fire for all; none that is too old; each."),
    ] = "coalesce",
    grace: Annotated[str, typer.Option(help="With --catch-up skip: how late a tick may still fire.")] = "60s",
    overlap: Annotated[
        Literal["skip", "queue", "replace", "allow"] | None,
        typer.Option(
            help="A fire while an earlier one is unfinished: is left out, waits, takes its place, runs beside it.",
            show_default="skip; allow with --catch-up all",
        ),
    ] = None,
    jitter: Annotated[str, typer.Option(help="Put each fire off by up to this much.")] = "0s",
    queue: Annotated[str | None, typer.Option(help="Another queue than the task's own.")] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Make it paused.")] = False,
    json: Json = False,
) -> None:
    """Make a schedule of a task. It fires from now on, without a restart."""
    from headrace.scheduling.declaration import Schedule

    when = _when(cron, every, at)
    schedule = Schedule(
        when,
        tz=tz,
        name=called,
        catch_up=catch_up,
        overlap=overlap,
        grace=_duration(grace, "--grace"),
        jitter=_duration(jitter, "--jitter"),
        paused=paused,
    )
    app = load_app(target)
    definition = app.get_task(task)
    chosen = definition if queue is None else definition.using(queue=queue)
    seen = app.schedules.add(chosen, schedule, **parsed_arguments(arguments or []))
    if json:
        print_json(_plain(seen, fires=1))
        return
    console.print(f"schedule {seen.name}: {seen.describe()}", markup=False)
    _print_fires(seen, 1)


@commands.command(epilog=examples("headrace schedules pause tasks.welcome"))
def pause(schedule: ScheduleName, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Let no tick fire until it is resumed. What it has enqueued goes on."""
    with_store(database, name, lambda store: store.pause_schedule(schedule))
    if json:
        print_json({"schedule": schedule, "paused": True})
    else:
        console.print(
            f"schedule {schedule} is paused; `headrace schedules resume {schedule}` lets it go on", markup=False
        )


@commands.command(epilog=examples("headrace schedules resume tasks.welcome"))
def resume(schedule: ScheduleName, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Let ticks from now on fire again; those of the pause never do."""

    async def act(store: "Store") -> "ScheduleView":
        await store.resume_schedule(schedule)
        return await _view(store, schedule)

    seen = with_store(database, name, act)
    if json:
        print_json({"schedule": schedule, "paused": False})
        return
    console.print(f"schedule {schedule} goes on", markup=False)
    _print_fires(seen, 1)


@commands.command(epilog=examples("headrace schedules run tasks.welcome"))
def run(schedule: ScheduleName, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Enqueue its task now, paused or not. Its ticks go on as if nothing had happened."""
    made = with_store(database, name, lambda store: store.run_schedule(schedule))
    if json:
        print_json({"schedule": schedule, "id": str(made.task)})
    else:
        console.print(made.task)


@commands.command(epilog=examples("headrace schedules remove tasks.welcome"))
def remove(schedule: ScheduleName, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Remove it and the list of its runs. What it has enqueued stays; what code declares comes back with its app."""

    async def act(store: "Store") -> str | None:
        record = await store.get_schedule(schedule)
        if record is None or not await store.remove_schedule(schedule):
            raise NotFound(f"no schedule {schedule!r}; `headrace schedules list` shows those that are there")
        return record.declared_by

    declared_by = with_store(database, name, act)
    if json:
        print_json({"schedule": schedule, "removed": True})
        return
    console.print(f"schedule {schedule} is removed", markup=False)
    if declared_by is not None:
        said = f"the code of {declared_by} declares it: the next start of that app brings it back; pause it instead"
        console.print(said, markup=False)


@commands.command("next", epilog=examples("headrace schedules next tasks.welcome -n 10"))
def next_fires(
    schedule: ScheduleName,
    n: Annotated[int, typer.Option("-n", min=1, max=1000, help="So many.")] = 10,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Show its next fires, in its zone and in UTC."""
    seen = with_store(database, name, lambda store: _view(store, schedule))
    if json:
        print_json(_fires(seen, n))
        return
    _print_fires(seen, n)


@commands.command(epilog=examples("headrace schedules runs tasks.welcome --limit 50"))
def runs(
    schedule: ScheduleName,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many, newest first.")] = 20,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """List its fires, newest first, with what became of each."""
    found = with_store(database, name, lambda store: store.schedule_runs(schedule, limit=limit))
    if json:
        print_json([_plain_run(each) for each in found])
        return
    _print_runs(found)


# Imported when a command needs them: calendars and zones cost all others a tenth of a second.


def _seen(record: "ScheduleRecord", now: datetime) -> "ScheduleView":
    from headrace.client.schedules import ScheduleView

    return ScheduleView(record=record, now=now)


async def _view(store: "Store", name: str) -> "ScheduleView":
    from headrace.client.schedules import view

    return await view(store, name)


def _when(cron: str | None, every: str | None, at: str | None) -> "When":
    given = {"--cron": cron, "--every": every, "--at": at}
    chosen = [option for option, value in given.items() if value is not None]
    if len(chosen) != 1:
        said = " and ".join(chosen) or "none"
        raise CommandError(f"say when with one of --cron, --every and --at; given: {said}")
    if cron is not None:
        return cron
    if every is not None:
        return _duration(every, "--every")
    assert at is not None
    try:
        return datetime.fromisoformat(at)
    except ValueError:
        raise CommandError(f"--at {at!r} is no instant; write it as in 2027-01-01T00:00:00Z") from None


def _duration(text: str, option: str) -> timedelta:
    from headrace.core.durations import written_seconds

    try:
        return timedelta(seconds=written_seconds(text, name=option))
    except OptionError as error:
        raise CommandError(str(error)) from None


def _state(seen: "ScheduleView") -> str:
    if seen.unreadable is not None:
        return f"unreadable here: {seen.unreadable}"
    if seen.problem is not None:
        return f"set aside: {seen.problem}"
    if seen.silent_until is not None:
        return _ahead(seen.silent_until)
    return "paused" if seen.paused else "active"


def _ahead(cursor: datetime) -> str:
    return f"its cursor lies ahead of the clock, at {cursor:%Y-%m-%d %H:%M:%S} UTC; pause and resume it"


def _next(seen: "ScheduleView") -> tuple[str, str]:
    """On the clocks of its zone, and how far away."""
    if seen.problem is not None or seen.paused:
        return _state(seen), ""
    fires = seen.upcoming_local(1)
    return (f"{fires[0]:%Y-%m-%d %H:%M:%S %Z}", _away(fires[0])) if fires else ("over", "")


def _away(tick: datetime) -> str:
    text = ago(tick)
    return "now" if text.endswith("ago") else text


def _print_fires(seen: "ScheduleView", n: int) -> None:
    utc, local = seen.upcoming(n), seen.upcoming_local(n)
    if not utc:
        console.print(f"next      none: {_state(seen) if seen.paused or seen.problem else 'it is over'}", markup=False)
    for label, tick, here in zip(("next", *[""] * n), utc, local, strict=False):
        also = "" if here.utcoffset() == tick.utcoffset() else f" ({tick:%Y-%m-%d %H:%M:%S} UTC)"
        console.print(f"{label:<9} {here:%a %Y-%m-%d %H:%M:%S %Z}{also}, {_away(tick)}", markup=False)


def _print_runs(found: "list[ScheduleRun]") -> None:
    print_table(
        "",
        ("tick", "", "status", "task", "by"),
        (
            [f"{run.tick:%Y-%m-%d %H:%M:%S} UTC", ago(run.tick), run.status, run.task, "hand" if run.manual else ""]
            for run in found
        ),
        empty="it has not fired yet",
    )


def _became(run: "ScheduleRun") -> str:
    return f"{run.status}, {ago(run.fired_at)}"


def _fires(seen: "ScheduleView", n: int) -> list[Mapping[str, Any]]:
    return [
        {"utc": tick, "local": here.isoformat()}
        for tick, here in zip(seen.upcoming(n), seen.upcoming_local(n), strict=True)
    ]


def _plain(seen: "ScheduleView", *, fires: int, runs: "list[ScheduleRun] | None" = None) -> Mapping[str, Any]:
    import orjson

    record = seen.record
    plain: dict[str, Any] = {
        "name": seen.name,
        "task": seen.task,
        "queue": record.task.queue,
        "arguments": record.task.arguments,
        "cadence": orjson.loads(record.cadence),
        "describe": seen.describe(),
        "tz": seen.zone.key,
        "next": _fires(seen, fires),
        "paused": seen.paused,
        "problem": seen.problem,
        "silent_until": seen.silent_until,
        "catch_up": record.catch_up,
        "grace": record.grace,
        "overlap": record.overlap,
        "jitter": record.jitter,
        "declared_by": record.declared_by,
        "created_at": record.created_at,
        "changed_at": record.changed_at,
    }
    if runs is not None:
        plain["runs"] = [_plain_run(run) for run in runs]
    return plain


def _plain_run(run: "ScheduleRun") -> Mapping[str, Any]:
    return {
        "tick": run.tick,
        "status": run.status,
        "task": run.task,
        "manual": run.manual,
        "fired_at": run.fired_at,
    }
