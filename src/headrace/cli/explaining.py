"""`headrace explain` and `headrace health`: why a task has not started, and whether all is there that tasks need."""

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.failures import FAILED, CommandError
from headrace.cli.helping import examples
from headrace.cli.output import console, print_json
from headrace.cli.target import Database, Json, Namespace, load_app, place_of, require_file, with_store
from headrace.cli.tasks import Id

if TYPE_CHECKING:
    from headrace.client.reasons import Explanation
    from headrace.store.base import Store

EXPLAIN = examples("headrace explain 42", "headrace explain 42 --database tasks:app")
HEALTH = examples("headrace health", "headrace health --check database --timeout 3 --json")
_CHECKS = ("database", "workers", "stale_tasks", "breakers")


def explain(id: Id, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Say what a task waits for, and what to do about it.

    With an App as --database (tasks:app) it also says when the App has no task of that name.
    """
    from headrace.cli.output import redacted
    from headrace.cli.showing import unknown
    from headrace.client.reasons import explained_by

    known = None
    if database is not None and "://" not in database:
        app = load_app(database)
        known = frozenset(name for task in app.registry.values() for name in (task.name, *task.aliases))

    async def read(store: "Store") -> "Explanation":
        record = (await store.get([id])).get(id)
        if record is None:
            raise await unknown(store, id)
        return await explained_by(store, record, known=known, shown=redacted)

    explanation = with_store(database, name, read)
    if json:
        print_json(explanation)
        return
    console.print(f"task {id}  {explanation.name}  {explanation.state}", markup=False)
    for reason in explanation.reasons:
        console.print(f"  {reason.what}", markup=False)
        if reason.mend:
            console.print(f"    -> {reason.mend}", markup=False)


def health(
    check: Annotated[
        list[str] | None,
        typer.Option("--check", help=f"Only this; may be repeated. One of {', '.join(_CHECKS)}.", show_default="all"),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds after which no answer is a bad one.")] = 10.0,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """For probes: exit code 0 when all is well, else 1.

    Well is: the database answers, at least one worker is active, and no task is held by a worker that is gone.
    Which breakers are open is said, and is no fault of ours.
    """
    import asyncio

    from headrace.app import App
    from headrace.client.health import Check, Health

    if wrong := sorted(set(check or ()) - set(_CHECKS)):
        raise CommandError(f"no check {wrong[0]!r}; there are {', '.join(_CHECKS)}")
    url, namespace = place_of(database, name)
    require_file(url)

    async def ask() -> Health:
        app = App(url, name=namespace)
        try:
            async with asyncio.timeout(timeout):
                return await app.ahealth_check()
        except TimeoutError:
            silent = Check(healthy=False, detail=f"no answer within {timeout:g} s")
            return Health(checks=dict.fromkeys(_CHECKS, silent))
        finally:
            await app.aclose()

    answer = asyncio.run(ask())
    checks = {name: found for name, found in answer.checks.items() if not check or name in check}
    healthy = all(found.healthy for found in checks.values())
    if json:
        print_json({"healthy": healthy, "checks": checks})
    else:
        for name, found in checks.items():
            console.print(f"{'ok  ' if found.healthy else 'FAIL'}  {name}: {found.detail}", markup=False)
    if not healthy:
        raise typer.Exit(FAILED)
