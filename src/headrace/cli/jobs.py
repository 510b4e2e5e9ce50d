"""`headrace jobs`: tasks that belong together, as one thing."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.failures import FAILED
from headrace.cli.helping import examples
from headrace.cli.output import ago, console, print_json, print_table
from headrace.cli.target import Database, Json, Namespace, with_store
from headrace.core.states import JobState

if TYPE_CHECKING:
    from headrace.core.task import JobRecord
    from headrace.store.base import Store

commands = typer.Typer(no_args_is_help=True, help="Look at jobs and watch them, cancel them, run what failed again.")

Id = Annotated[int, typer.Argument(help="Id of the job.", show_default=False)]
TaskId = Annotated[int, typer.Argument(help="Id of the task.", show_default=False)]

_WIDEST, _MOST = 12, 20  # units of a drawing: at one depth, and in all


@commands.command("list", epilog=examples("headrace jobs list", "headrace jobs list --state failed --json"))
def list_jobs(
    state: Annotated[
        list[JobState] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            help=f"Only these states; may be repeated. One of {', '.join(JobState)}.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many, newest first.")] = 50,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """List jobs, newest first."""
    records = with_store(database, name, lambda store: store.list_jobs(states=tuple(state or ()), limit=limit))
    if json:
        print_json(records)
        return
    print_table(
        "",
        ("id", "job", "state", "tasks", "completed", "failed", "cancelled", "running", "created"),
        (
            [r.id, r.name, _state(r), r.total, r.completed, r.failed, r.cancelled, r.running, ago(r.created_at)]
            for r in records
        ),
        empty="no jobs match",
    )


@commands.command(
    epilog=examples("headrace jobs show 42", "headrace jobs show 42 --all", "headrace jobs show 42 --json")
)
def show(
    id: Id,
    all: Annotated[bool, typer.Option("--all", help="Every task, however many; neither folded nor cut.")] = False,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Show one job: how far it is, and the graph of its tasks.

    What a task waits for stands above it. Tasks of one name at one depth are one line in a large job, with those that
    failed below it; the middle of a deep one is one line.
    """
    from headrace.cli.graph.drawing import Frame, draw
    from headrace.cli.graph.folding import condensed
    from headrace.cli.graph.job import head_of
    from headrace.cli.graph.reading import folded, print_json_of, the_job
    from headrace.cli.output import print_lines

    async def read(store: "Store") -> None:
        record, hooks, now = await the_job(store, id), await store.hooks_of_job(id), await store.now()
        if json:
            await print_json_of(store, record, hooks)
            return
        print_lines(head_of(record, hooks, now))
        graph = await folded(store, record, whole=all)
        if not all:
            graph = condensed(graph, widest=_WIDEST, most=_MOST)
        lanes = max(4, console.width // 6)
        console.print()
        print_lines(draw(graph, Frame(now=now.timestamp(), most_lanes=lanes)) or [[("no tasks", "dim")]])

    with_store(database, name, read)


@commands.command(epilog=examples("headrace jobs watch 42", "headrace jobs watch 42 && echo completed"))
def watch(
    id: Id,
    interval: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")] = 0.5,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Watch a job until it is over. Exit code 0 when it completed, 1 when it failed or was cancelled.

    Ctrl-C ends the watching, not the job. Without a terminal it prints a line for each change, with --json an object.
    """
    import sys

    from headrace.cli.graph.job import state_of
    from headrace.cli.graph.watching import watch as watch_until_over

    try:
        record = with_store(database, name, lambda store: watch_until_over(store, id, interval=interval, json=json))
    except KeyboardInterrupt:
        print(f"\njob {id} goes on; stop it with: headrace jobs cancel {id}", file=sys.stderr, flush=True)
        raise
    if not json and console.is_terminal:
        console.print(f"job {id} is {state_of(record)}", markup=False)
    if record.state is not JobState.COMPLETED:
        raise typer.Exit(FAILED)


@commands.command(epilog=examples("headrace jobs cancel 42"))
def cancel(id: Id, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Cancel what waits of a job, and tell the rest to stop."""
    record = with_store(database, name, lambda store: store.cancel_job(id))
    if json:
        print_json(record)
    else:
        console.print(f"job {id} is {_state(record)}", markup=False)


@commands.command("retry", hidden=True, epilog=examples("headrace jobs retry 42"))
@commands.command("retry-failed", epilog=examples("headrace jobs retry-failed 42"))
def retry_failed(id: Id, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Open a new run of a job that failed or was cancelled: the tasks that did not complete run again."""
    ids = with_store(database, name, lambda store: store.retry_failed(id))
    if json:
        print_json({"job": id, "retried": [str(task) for task in ids]})
    else:
        console.print(f"job {id}: {len(ids):,} tasks back in the queue", markup=False)


@commands.command(epilog=examples("headrace jobs clear 4711"))
def clear(task: TaskId, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Run a task of a job once more, and everything that waits for it, whatever became of that. The job opens again."""
    ids = with_store(database, name, lambda store: store.clear(task))
    if json:
        print_json({"task": task, "cleared": [str(id) for id in ids]})
    else:
        below = f" and {len(ids) - 1:,} below it" if len(ids) > 1 else ""
        console.print(f"task {task}{below} will run once more", markup=False)


def _state(record: "JobRecord") -> str:
    return f"{record.state}/{record.reason}" if record.reason else record.state
