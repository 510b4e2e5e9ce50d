"""`headrace dlq`: dead letters, the tasks that failed for good under a policy that keeps them."""

import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headrace.cli import completing
from headrace.cli.failures import FAILED, INTERRUPTED, CommandError
from headrace.cli.helping import examples
from headrace.cli.output import ago, console, print_json, print_table
from headrace.cli.target import Database, Json, Namespace, with_store
from headrace.cli.tasks import QueueNames, TaskNames

if TYPE_CHECKING:
    from headrace.client.selecting import Selection, Tally
    from headrace.store.base import Store

commands = typer.Typer(
    no_args_is_help=True,
    help="Dead letters: tasks that failed for good and are kept for you (Retry(dead_letter=True)).",
)

Id = Annotated[
    int,
    typer.Argument(help="Id of the dead letter.", show_default=False, autocompletion=completing.dead_letter_ids),
]
Ids = Annotated[
    list[int] | None,
    typer.Argument(
        help="Ids of dead letters; or choose by the options below.",
        show_default=False,
        autocompletion=completing.dead_letter_ids,
    ),
]
Errors = Annotated[
    list[str] | None,
    typer.Option("--error", help="Only with this error, as ValueError or shop.Declined; may be repeated."),
]
Since = Annotated[
    str | None, typer.Option("--since", help="Only what failed since then: 2h, 3d, or 2026-05-01T08:00 (UTC).")
]
Before = Annotated[
    str | None, typer.Option("--before", help="Only what failed before then: 30d, 1w, or 2026-05-01T08:00 (UTC).")
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say how many there are; change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Most = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many, newest first.")]


@commands.command("list", epilog=examples("headrace dlq list", "headrace dlq list --error ValueError --since 2h"))
def list_dead_letters(
    queue: QueueNames = None,
    task: TaskNames = None,
    error: Errors = None,
    since: Since = None,
    before: Before = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many, newest first.")] = 50,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """List dead letters, newest first."""
    from headrace.cli.showing import short

    selection = _selection(queue, task, error, since, before, limit)

    async def read(store: "Store") -> list[Any]:
        return [record async for page in selection.pages(store) for record in page]

    records = with_store(database, name, read)
    if json:
        print_json(records)
        return
    print_table(
        "",
        ("id", "task", "queue", "failed", "attempts", "why", "error", "message"),
        (
            [r.id, r.name, r.queue, ago(r.finished_at), r.attempt, r.reason, r.error_class, short(r.error_message)]
            for r in records
        ),
        empty="no dead letters",
    )


@commands.command(epilog=examples("headrace dlq show 42"))
def show(id: Id, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Show one dead letter with its attempts and its last traceback."""
    from headrace.cli.showing import print_life, read_life, state_of

    life = with_store(database, name, lambda store: read_life(store, id))
    if not life[0].dead_letter:
        raise CommandError(
            f"task {id} is {state_of(life[0])} and no dead letter; headrace tasks show {id}", code=FAILED
        )
    print_life(life, json=json, traceback=True)


@commands.command(
    epilog=examples(
        "headrace dlq retry 42 43",
        "headrace dlq retry --task tasks.charge --error ConnectionError --since 2h",
        "headrace dlq retry --all --dry-run",
    )
)
def retry(
    ids: Ids = None,
    queue: QueueNames = None,
    task: TaskNames = None,
    error: Errors = None,
    since: Since = None,
    before: Before = None,
    limit: Most = None,
    everything: All = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Run dead letters once more, with a fresh budget of attempts. Exit code 1 when one of them stays.

    On a terminal it asks first. What fails from then on, for the first time or again, is not taken.
    """
    chosen = _chosen(ids, _selection(queue, task, error, since, before, limit), everything=everything)
    _act("retry", chosen, dry_run=dry_run, yes=yes, json=json, database=database, name=name)


@commands.command(epilog=examples("headrace dlq purge 42", "headrace dlq purge --queue mail --before 30d --yes"))
def purge(
    ids: Ids = None,
    queue: QueueNames = None,
    task: TaskNames = None,
    error: Errors = None,
    since: Since = None,
    before: Before = None,
    limit: Most = None,
    everything: All = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Remove dead letters for good, with their attempts and logs. Exit code 1 when one of them stays.

    On a terminal it asks first; elsewhere it wants --yes. What fails from then on is not taken.
    """
    chosen = _chosen(ids, _selection(queue, task, error, since, before, limit), everything=everything)
    if not (yes or dry_run or _somebody_looks()):
        raise CommandError("nobody can be asked here, and purged dead letters do not come back: say --yes")
    _act("purge", chosen, dry_run=dry_run, yes=yes, json=json, database=database, name=name)


def _selection(
    queue: list[str] | None,
    task: list[str] | None,
    error: list[str] | None,
    since: str | None,
    before: str | None,
    limit: int | None,
) -> "Selection":
    from datetime import UTC, datetime

    from headrace.cli.times import instant_before
    from headrace.client.dead_letters import dead_letters

    now = datetime.now(UTC)
    return dead_letters(
        queues=queue or (),
        names=task or (),
        errors=error or (),
        since=None if since is None else instant_before(since, now),
        until=None if before is None else instant_before(before, now),
        limit=limit,
    )


def _chosen(ids: list[int] | None, selection: "Selection", *, everything: bool) -> "list[int] | Selection":
    from headrace.client.dead_letters import dead_letters

    narrowed = selection != dead_letters()
    if ids and (narrowed or everything):
        raise CommandError("ids, or a choice by options: not both")
    if everything and narrowed:
        raise CommandError("--all, or a choice by options: not both")
    if ids:
        return list(dict.fromkeys(ids))
    if not (narrowed or everything):
        raise CommandError("say which: ids, --queue, --task, --error, --since, --before, --limit, or --all")
    return selection


def _act(
    verb: Literal["retry", "purge"],
    chosen: "list[int] | Selection",
    *,
    dry_run: bool,
    yes: bool,
    json: bool,
    database: str | None,
    name: str,
) -> None:
    from headrace.cli.progress import progress_bar
    from headrace.client.dead_letters import act as act_on
    from headrace.client.dead_letters import close_choice
    from headrace.client.selecting import COUNTED, Tally

    async def count(store: "Store") -> "tuple[int, list[int] | Selection]":
        # What fails while the question stands was not asked about. Everything is counted only for whoever asked for
        # the number.
        return await close_choice(store, chosen, most=sys.maxsize if dry_run else COUNTED)

    async def act(store: "Store") -> None:
        with progress_bar(verb, n if n <= COUNTED else None) as advance:
            await act_on(store, "replay" if verb == "retry" else "discard", asked, tally, advance)

    tally = Tally()
    n, asked = with_store(database, name, count)
    # Asked outside of any event loop, which would keep Ctrl-C to itself.
    nothing = not n and not isinstance(chosen, list)
    if dry_run or nothing or not (yes or _agreed(verb, f"{n}" if n <= COUNTED else f"more than {COUNTED:,}")):
        if json:
            print_json({"matched": n, _PAST[verb]: 0, "kept": []})
        else:
            console.print(f"{n} dead letters match; nothing was changed")
        return
    try:
        with_store(database, name, act)
    except KeyboardInterrupt:
        print(f"stopped; {_done(verb, tally)}", file=sys.stderr, flush=True)
        raise
    _report(verb, tally, json=json)


_PAST = {"retry": "retried", "purge": "purged"}
_WHY = {
    "retry": "no dead letters any more, or another task holds its unique key",
    "purge": "no dead letters any more, or part of a job that is not over",
}


def _report(verb: str, tally: "Tally", *, json: bool) -> None:
    kept = tally.matched - tally.changed
    if json:
        print_json({"matched": tally.matched, _PAST[verb]: tally.changed, "kept": [str(id) for id in tally.kept or ()]})
    else:
        console.print(_done(verb, tally))
    if kept:
        some = ", ".join(map(str, tally.kept or ())) + (" …" if kept > len(tally.kept or ()) else "")
        raise CommandError(f"not {_PAST[verb]}: {some} ({_WHY[verb]})", code=FAILED)


def _done(verb: str, tally: "Tally") -> str:
    what = "back in the queue" if verb == "retry" else "removed"
    return f"{tally.changed} of {tally.matched} dead letters {what}"


def _somebody_looks() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _agreed(verb: str, many: str) -> bool:
    if not _somebody_looks():
        return True
    question = f"Run {many} dead letters once more?" if verb == "retry" else f"Remove {many} dead letters for good?"
    try:
        return typer.confirm(question)
    except typer.Abort:
        raise typer.Exit(INTERRUPTED) from None
