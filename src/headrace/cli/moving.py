"""`headrace db move`: an SQLite ledger goes to PostgreSQL, with its history, also while it is used."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.failures import FAILED
from headrace.cli.output import console, print_json, print_table
from headrace.cli.target import Json, Namespace, shown_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from headrace.core.retry import Retry
    from headrace.core.task import ClaimedTask
    from headrace.store.moving.mover import Mover, Progress
    from headrace.store.moving.parcels import Received
    from headrace.store.moving.source import Left, Source

_INTERRUPTED = 130


def move(
    source: Annotated[str, typer.Argument(help="The SQLite ledger, for example sqlite:///headrace.db.")],
    target: Annotated[str, typer.Argument(help="The PostgreSQL database, for example postgresql://me@host/shop.")],
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Move while workers and enqueues go on; forward what still arrives, until Ctrl-C."
        ),
    ] = False,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="With --follow: end when nothing is left in the source.")
    ] = False,
    upgrade: Annotated[
        bool, typer.Option("--upgrade/--no-upgrade", help="Make the target's schema, or bring it up to date.")
    ] = True,
    keep_password: Annotated[
        bool,
        typer.Option(
            "--keep-password/--drop-password",
            help="Write the target's URL into the source with its password, so that handles there can follow. Without "
            "it they need PGPASSWORD or a password file.",
        ),
    ] = True,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Carry an SQLite ledger to PostgreSQL: tasks, jobs, keys, history, logs, settings. Ids stay as they are.

    Every row is compared in the target before it leaves the source. Killed or interrupted at any moment, the same
    command goes on. Exit code 0: all of it is there; 1: refused, or something is left; 130: interrupted.
    """
    import asyncio

    report = asyncio.run(
        _move(
            source,
            target,
            name=name,
            follow=follow,
            until_idle=until_idle or not follow,
            upgrade=upgrade,
            keep_password=keep_password,
            quiet=json,
        )
    )
    if json:
        print_json(report)
    else:
        _print(report)
    if report["interrupted"] and not report["complete"]:
        raise typer.Exit(_INTERRUPTED)
    if not report["complete"] or not report["same"]:
        raise typer.Exit(FAILED)


async def _move(
    source_url: str,
    target_url: str,
    *,
    name: str,
    follow: bool,
    until_idle: bool,
    upgrade: bool,
    keep_password: bool,
    quiet: bool,
) -> dict[str, Any]:
    import asyncio
    import contextlib
    import signal
    import time

    from headrace.store.moving.opening import opened, shown_target, without_password

    started = time.monotonic()
    async with opened(source_url, target_url, name=name, upgrade=upgrade) as (source, receiving):
        from headrace.store.moving.mover import Mover

        with _shown(quiet=quiet) as tell:
            mover = Mover(
                source=source,
                target=receiving,
                url=target_url if keep_password else without_password(target_url),
                shown=shown_target(target_url),
                source_shown=shown_url(source_url),
                follow=follow,
                until_idle=until_idle,
                tell=tell,
                tend=_rescue(source),
            )
            work = asyncio.ensure_future(mover.run())
            interrupted = False

            def interrupt() -> None:
                nonlocal interrupted
                interrupted = True
                work.cancel()

            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, interrupt)
            with contextlib.suppress(asyncio.CancelledError):
                await work
            if interrupted:
                await mover.deliver()
        return _report(mover, await mover.received(), await source.left(), time.monotonic() - started, interrupted)


def _report(mover: "Mover", received: "Received", left: "Left", seconds: float, interrupted: bool) -> dict[str, Any]:
    from headrace.store.moving.parcels import Check

    nothing = Check()
    tables = [
        {
            "table": table,
            "rows": received.found.get(table, nothing).rows,
            "merged": received.merged.get(table, 0),
            "source_checksum": received.sent.get(table, nothing).text,
            "target_checksum": received.found.get(table, nothing).text,
        }
        for table in sorted(received.found | received.merged)
    ]
    return {
        "source": mover.source_shown,
        "target": mover.shown,
        "complete": left.nothing,
        "interrupted": interrupted,
        "same": received.sent == received.found,
        "left": {
            "tasks": left.tasks,
            "held": left.held,
            "history": left.history,
            "jobs": left.jobs,
            "schedules": left.schedules,
            "schedule_runs": left.schedule_runs,
            "on_its_way": left.on_its_way,
        },
        "tables": tables,
        "seconds": round(seconds, 3),
    }


def _print(report: dict[str, Any]) -> None:
    tables: list[dict[str, Any]] = report["tables"]
    print_table(
        f"{report['source']} -> {report['target']}",
        ("table", "rows", "merged", "checksum here", "checksum there"),
        (
            (row["table"], row["rows"], row["merged"] or "", row["source_checksum"][:16], row["target_checksum"][:16])
            for row in tables
        ),
        empty="nothing was moved",
    )
    left = report["left"]
    if report["complete"]:
        merged = ", ".join(f"{row['merged']} of {row['table']}" for row in tables if row["merged"])
        found = "every row was found in the target as it was here"
        if merged:
            found = f"every row was found in the target as it was here, but for those that it had by itself ({merged})"
        console.print(
            f"moved in {report['seconds']:.1f} s: {found}. Start workers and programs with the new URL; what still "
            "lands here is forwarded by the same command"
        )
    else:
        console.print(
            f"not done: {left['tasks']} tasks ({left['held']} of them held by workers), {left['history']} ended ones, "
            f"{left['jobs']} jobs and {left['schedules']} schedules are left here, where nobody fires them. To go on, "
            "run the same command again"
        )


def _rescue(source: "Source") -> "Callable[[], Awaitable[None]]":
    """The source's dead workers are buried by the living; here the mover may be the only one left."""
    import random
    import time

    from headrace.core.clock import SystemClock
    from headrace.telemetry.events import Bus
    from headrace.worker.execution import policy_of, read_options
    from headrace.worker.services.rescuer import Rescuer, keep_beats

    class Policies:
        """The call's own policy, or the default: the definitions are not at hand."""

        def policy(self, claim: "ClaimedTask") -> "Retry":
            return read_options(claim.options).retry or policy_of(claim)

    beats = keep_beats()
    rescuer = Rescuer(
        store=source.store,
        by=lambda: "db move",
        lease=source.store.database.options.lease,
        heartbeat=5.0,  # of a mover: it tends each second, when it is not busy with a large parcel
        own_beats=beats,
        pipeline=Policies(),
        bus=Bus(),
        clock=SystemClock(),
        rng=random.Random(),
    )

    async def tend() -> None:
        await rescuer.run_once()
        beats.append(time.monotonic())

    return tend


def _shown(*, quiet: bool) -> Any:
    """Bars on a terminal; a line where a phase begins, elsewhere."""
    import sys
    from contextlib import contextmanager

    @contextmanager
    def lines() -> "Generator[Callable[[Progress], None]]":
        phase = ""

        def tell(progress: "Progress") -> None:
            nonlocal phase
            if progress.phase != phase and not quiet:
                phase = progress.phase
                console.print(f"{phase}: {_told(progress)}")

        yield tell

    @contextmanager
    def bars() -> "Generator[Callable[[Progress], None]]":
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Bars(*columns, console=Console(stderr=True), transient=True) as shown:
            copying = shown.add_task("copying history", total=None)
            moving = shown.add_task("moving", total=None, visible=False)

            def tell(progress: "Progress") -> None:
                shown.update(copying, completed=progress.copied, total=max(progress.to_copy, progress.copied))
                if progress.left is not None:
                    done = progress.forwarded + progress.history
                    total = done + progress.left.tasks + progress.left.history
                    shown.update(moving, description=progress.phase, completed=done, total=total, visible=True)

            yield tell

    return bars() if sys.stderr.isatty() and not quiet else lines()


def _told(progress: "Progress") -> str:
    if progress.left is None:
        return f"{progress.to_copy} tasks that ended"
    left = progress.left
    return (
        f"{progress.forwarded} live tasks and {progress.history} ended ones moved, "
        f"{left.tasks} and {left.history} left, {left.held} held by workers here"
    )
