"""`headrace jobs`: tasks that belong together, as one thing."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.helping import examples
from headrace.cli.output import ago, console, print_json, print_table
from headrace.cli.target import Database, Json, Namespace, with_store
from headrace.core.states import JobState

if TYPE_CHECKING:
    from headrace.core.task import JobRecord, TaskRecord
    from headrace.store.base import Store

commands = typer.Typer(no_args_is_help=True, help="Look at jobs, cancel them, run what failed again.")

Id = Annotated[int, typer.Argument(help="Id of the job.", show_default=False)]


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


@commands.command(epilog=examples("headrace jobs show 42"))
def show(
    id: Id,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many of its tasks, newest first.")] = 50,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Show one job with its newest tasks."""
    from headrace.cli.showing import print_tasks
    from headrace.core.errors import NotFound
    from headrace.core.task import TaskFilter

    async def read(store: "Store") -> "tuple[JobRecord | None, list[TaskRecord]]":
        found = await store.get_job(id)
        return found, await store.list(TaskFilter(job=id, limit=limit))

    record, tasks = with_store(database, name, read)
    if record is None:
        raise NotFound(f"no job {id}; it never existed, or it ended longer ago than history is kept")
    if json:
        print_json({"job": record, "tasks": tasks})
        return
    counts = f"{record.total} tasks: {record.completed} completed, {record.failed} failed, {record.cancelled} cancelled"
    console.print(f"job {record.id}  {record.name}  {_state(record)}, run {record.run_no}", markup=False)
    console.print(f"  {counts}, {record.running} running; created {ago(record.created_at)}", markup=False)
    print_tasks(tasks, empty="no tasks")


@commands.command(epilog=examples("headrace jobs cancel 42"))
def cancel(id: Id, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Cancel what waits of a job, and tell the rest to stop."""
    record = with_store(database, name, lambda store: store.cancel_job(id))
    if json:
        print_json(record)
    else:
        console.print(f"job {id} is {_state(record)}", markup=False)


@commands.command(epilog=examples("headrace jobs retry 42"))
def retry(id: Id, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Open a new run of a job that failed or was cancelled: the tasks that did not complete run again."""
    ids = with_store(database, name, lambda store: store.retry_failed(id))
    if json:
        print_json({"job": id, "retried": [str(task) for task in ids]})
    else:
        console.print(f"job {id}: {len(ids)} tasks back in the queue", markup=False)


def _state(record: "JobRecord") -> str:
    return f"{record.state}/{record.reason}" if record.reason else record.state
