"""`headrace db`: the schema, the invariants, the retention."""

from typing import Annotated

import typer

from headrace.cli import moving, pruning
from headrace.cli.failures import FAILED
from headrace.cli.output import console, print_json, print_table
from headrace.cli.target import Database, Json, Namespace, with_store

commands = typer.Typer(
    no_args_is_help=True, help="Make and check the ledger's schema; remove old history; move to PostgreSQL."
)


@commands.command(epilog="Example: headrace db upgrade --database postgresql://me@localhost/shop")
def upgrade(
    revision: Annotated[str, typer.Argument(help="Revision to arrive at.")] = "head",
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Bring the schema up to date. Safe to run from many places at once, and twice."""
    from headrace.cli.target import administer

    before, after = administer(database, name, lambda store: store.upgrade(revision=revision))
    _changed(before, after, json=json)


@commands.command(epilog="Example: headrace db downgrade base --yes")
def downgrade(
    revision: Annotated[
        str, typer.Argument(help="Revision to go back to, or base to remove the schema.", show_default=False)
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Take the schema back. `base` removes it with every task in it."""
    from headrace.cli.target import administer

    if not yes:
        typer.confirm(f"Downgrade to {revision}? Tasks may be lost.", abort=True)
    before, after = administer(database, name, lambda store: store.downgrade(revision))
    _changed(before, after, json=json)


@commands.command(epilog="Example: headrace db check && echo sound")
def check(database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Read the whole ledger and prove its invariants. Exit code 1 when one is broken."""
    violations = with_store(database, name, lambda store: store.check())
    if json:
        print_json(violations)
    elif violations:
        print_table(
            "", ("rule", "about", "what is wrong"), ([v.rule, v.subject, v.detail] for v in violations), empty=""
        )
    else:
        console.print("the ledger is sound: every invariant holds")
    if violations:
        raise typer.Exit(FAILED)


commands.command(epilog="Example: headrace db prune --keep 30d --dry-run")(pruning.prune)
commands.command(epilog="Example: headrace db move sqlite:///headrace.db postgresql://me@localhost/shop --follow")(
    moving.move
)


def _changed(before: str | None, after: str | None, *, json: bool) -> None:
    if json:
        print_json({"before": before, "after": after})
    elif before == after:
        console.print(f"the schema is at {after}; nothing to do")
    else:
        console.print(f"schema: {before or 'none'} -> {after or 'none'}")
