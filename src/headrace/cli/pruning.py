"""`headrace db prune`: the retention, by hand."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.failures import CommandError
from headrace.cli.output import console, print_json
from headrace.cli.target import Database, Json, Namespace, load_app, place_of, with_store

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from headrace.store.base import Pruned, Store
    from headrace.store.blobs.base import Blobs


def prune(
    keep: Annotated[
        str, typer.Option(help="Remove tasks that ended longer ago: 7d, 12h, 90m, or a number of seconds.")
    ] = "7d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")] = False,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Remove old history with its attempts and logs, expired results and keys, in small transactions.

    The tasks of a job stay until the job is as old. Workers do the same by themselves; this is for at once.
    """
    from collections import Counter

    from headrace.core.durations import written_seconds
    from headrace.core.errors import OptionError
    from headrace.store.blobs.base import remove as remove_blobs

    try:
        seconds = written_seconds(keep, name="--keep")
    except OptionError as error:
        raise CommandError(str(error)) from None

    blobs = _blobs(database, name)

    async def remove(store: "Store") -> Counter[str]:
        there = await store.prunable(keep=seconds)
        if dry_run:
            return Counter(_counted(there))
        removed: Counter[str] = Counter(dict.fromkeys(_counted(there), 0))
        with _bar(there, quiet=json) as advance:
            # Each call removes a bounded number, so that nobody waits for it for long.
            while any((found := _counted(pruned := await store.prune(keep=seconds))).values()) or pruned.job_events:
                if blobs is not None and pruned.blobs:
                    await remove_blobs(blobs, pruned.blobs)
                removed.update(found)
                advance(sum(found.values()))
        return removed

    removed = with_store(database, name, remove)
    if json:
        print_json({**removed, "dry_run": dry_run})
    else:
        said = "would remove" if dry_run else "removed"
        console.print(f"{said}: " + ", ".join(f"{count} {what}" for what, count in removed.items()))


def _counted(pruned: "Pruned") -> dict[str, int]:
    """Blobs are counted as one of their results, and what a job was as one with the job."""
    import dataclasses

    return {what: count for what, count in dataclasses.asdict(pruned).items() if what not in ("blobs", "job_events")}


def _blobs(database: str | None, name: str) -> "Blobs | None":
    """Where the results are whose rows are removed."""
    from headrace.settings import read_settings
    from headrace.store.blobs.opening import open_blobs

    if database is not None and "://" not in database and ":" in database:
        return load_app(database).blobs
    url, name = place_of(database, name)
    return open_blobs(read_settings({}).results_url, database=url, name=name)


def _bar(there: "Pruned", *, quiet: bool) -> Any:
    """On stderr, where somebody looks at it."""
    import sys
    from contextlib import contextmanager

    @contextmanager
    def shown() -> "Generator[Callable[[int], object]]":
        if quiet or not sys.stderr.isatty():
            yield lambda _: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task("removing", total=sum(_counted(there).values()))
            yield lambda n: progress.advance(bar, n)

    return shown()
