"""`headrace worker` and `headrace up`: run tasks until told to stop."""

import os
from typing import Annotated

import typer

from headrace.cli.output import console
from headrace.cli.target import Target, full_url, load_app
from headrace.worker.options import WorkerOptions
from headrace.worker.supervisor import run

Queues = Annotated[
    str | None, typer.Option("--queues", "-q", help="Only these queues, with commas between.", show_default="all")
]
Concurrency = Annotated[
    int,
    typer.Option("--concurrency", "-c", min=1, envvar="HEADRACE_CONCURRENCY", help="Coroutines at once, per process."),
]
Children = Annotated[
    int,
    typer.Option(
        "--children",
        min=0,
        envvar="HEADRACE_CHILDREN",
        help="Child processes for `def` tasks, per process.",
        show_default="cores",
    ),
]
Threads = Annotated[int, typer.Option("--threads", min=0, help="Threads for tasks that ask for one, per process.")]
Commands = Annotated[
    int, typer.Option("--commands", min=0, help="Commands at once, per process.", show_default="cores")
]
Processes = Annotated[int, typer.Option("--processes", "-p", min=1, help="Worker processes below the supervisor.")]
Grace = Annotated[
    float, typer.Option("--grace", min=0, help="Seconds that running tasks get after SIGTERM before they go back.")
]
MaxTasks = Annotated[int | None, typer.Option("--max-tasks", min=1, help="Replace a child after so many tasks.")]
Burst = Annotated[bool, typer.Option("--burst", help="Exit when nothing is left to do now.")]
Lease = Annotated[
    float | None,
    typer.Option(
        "--lease",
        min=0.5,
        envvar="HEADRACE_LEASE_SECONDS",
        help="Seconds a silent worker keeps its tasks.",
        show_default="30",
    ),
]

_CORES = os.cpu_count() or 1


def worker(
    target: Target,
    queues: Queues = None,
    concurrency: Concurrency = 100,
    children: Children = _CORES,
    threads: Threads = 0,
    commands: Commands = _CORES,
    processes: Processes = 1,
    grace: Grace = 30.0,
    max_tasks: MaxTasks = None,
    burst: Burst = False,
    lease: Lease = None,
) -> None:
    """Run tasks. The supervisor renews leases, holds the time limits and replaces processes that die."""
    app = load_app(target)
    options = WorkerOptions(
        queues=tuple(name.strip() for name in queues.split(",") if name.strip()) if queues else None,
        concurrency=concurrency,
        children=children,
        threads=threads,
        commands=commands,
        processes=processes,
        grace=grace,
        max_tasks=max_tasks,
        burst=burst,
        lease=lease or app.settings.lease,
    )
    raise typer.Exit(run(target, options))


def up(
    target: Target,
    concurrency: Concurrency = 100,
    children: Children = _CORES,
    threads: Threads = 4,
    grace: Grace = 30.0,
    lease: Lease = None,
) -> None:
    """Make the schema where it is missing, then run everything that this machine needs: one command, one file."""
    app = load_app(target)
    app.upgrade()
    console.print(f"[bold]headrace[/] up on {full_url(app.url)}; Ctrl-C stops it, and nothing is lost")
    worker(target, concurrency=concurrency, children=children, threads=threads, grace=grace, lease=lease)
