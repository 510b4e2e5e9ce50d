"""`headrace audit`: what was done in whose name."""

from typing import Annotated

import typer

from headrace.cli.helping import examples
from headrace.cli.output import print_json, print_table
from headrace.cli.target import Database, Json, Namespace, with_store

EPILOG = examples(
    "headrace audit",
    "headrace audit --actor ada --act tasks.retry",
    "headrace audit --subject queue/mail --limit 10 --json",
)


def audit(
    actor: Annotated[str | None, typer.Option(help="Only what this one did: a user, or cli:<login>.")] = None,
    act: Annotated[str | None, typer.Option(help="Only this act, as in queues.pause.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only what was done to this: task/17, queue/mail.")] = None,
    before: Annotated[
        int | None, typer.Option(min=1, max=2**63 - 1, help="For the next page: the id of the last one seen.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many, newest first.")] = 50,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """List what was done through a server or by `headrace users` and `headrace tokens`, newest first.

    An entry without an outcome was begun, and nobody has said how it ended.
    """
    found = with_store(
        database,
        name,
        lambda store: store.audit(actor=actor, act=act, subject=subject, before=before, limit=limit),
    )
    if json:
        import orjson

        print_json([
            {
                "id": entry.id,
                "at": entry.at,
                "actor": entry.actor,
                "act": entry.act,
                "subject": entry.subject,
                "detail": orjson.loads(entry.detail),
                "request": entry.request,
                "outcome": entry.outcome,
            }
            for entry in found
        ])  # fmt: skip
        return
    print_table(
        "",
        ("id", "at", "actor", "act", "subject", "outcome", "detail"),
        (
            [
                entry.id,
                f"{entry.at:%Y-%m-%d %H:%M:%S} UTC",
                entry.actor,
                entry.act,
                entry.subject,
                entry.outcome or "begun",
                "" if entry.detail == "{}" else entry.detail,
            ]
            for entry in found
        ),
        empty="nothing was done yet",
    )
