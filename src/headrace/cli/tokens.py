"""`headrace tokens`: the secrets by which programs come in."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.auditing import audited
from headrace.cli.failures import CommandError
from headrace.cli.helping import examples
from headrace.cli.output import ago, console, print_json, print_table
from headrace.cli.target import Database, Json, Namespace, with_store
from headrace.core.accounts import Scope
from headrace.core.errors import NotFound, OptionError

if TYPE_CHECKING:
    from headrace.core.accounts import TokenRecord
    from headrace.store.base import Store

commands = typer.Typer(no_args_is_help=True, help="Make, see and revoke the tokens of programs.")


@commands.command(
    epilog=examples(
        "headrace tokens create ci --label pipeline --expires-in 90d", "headrace tokens create ada --scope read"
    )
)
def create(
    user: Annotated[str, typer.Argument(metavar="USER", help="The user in whose name it acts.", show_default=False)],
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            help="What it may be used for: read looks, submit enqueues, control acts on what is there (retry, cancel, "
            "pause, approve), admin is for users and the audit log. Never more than its user's role allows; may be "
            "given several times.",
            show_default="read, submit, control",
        ),
    ] = None,
    expires_in: Annotated[
        str | None, typer.Option(help="How long it is good: 90d, 12h.", show_default="until it is revoked")
    ] = None,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Make a token. Its secret is printed now and never again; the ledger keeps a digest of it."""
    from headrace.client.accounts import USUAL_SCOPES, drafted, new_secret
    from headrace.core.durations import written_seconds

    secret = new_secret()
    try:
        ttl = None if expires_in is None else written_seconds(expires_in, name="--expires-in")
        new = drafted(user, secret, label=label, scopes=scope or USUAL_SCOPES, expires_in=ttl)
    except OptionError as error:
        raise CommandError(str(error)) from None
    detail = {"label": label, "scopes": [each.value for each in new.scopes], "ttl": ttl}

    async def act(store: "Store") -> "TokenRecord":
        async with audited(store, "tokens.create", f"user/{user}", detail):
            return await store.add_token(new)

    record = with_store(database, name, act)
    if json:
        # The one place where it may be read.
        print_json({"secret": secret, **_plain(record)}, whole=True)
        return
    print(secret, flush=True)
    until = "until it is revoked" if record.expires_at is None else f"until {record.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    said = f"token {record.id} of {user}, good {until}; this is the only time that it is shown"
    typer.echo(said, err=True)  # what is redirected is the secret alone


@commands.command("list", epilog=examples("headrace tokens list --user ci", "headrace tokens list --all --json"))
def list_tokens(
    user: Annotated[str | None, typer.Option(help="Only this user's.")] = None,
    all: Annotated[bool, typer.Option("--all", help="With sessions, and with what is revoked or expired.")] = False,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """List tokens, newest first, by their first characters."""

    async def read(store: "Store") -> "list[TokenRecord]":
        found = await store.tokens(user=user, kind=None if all else "api")
        now = await store.now()
        return [record for record in found if all or _state(record, now) == "good"]

    found = with_store(database, name, read)
    if json:
        print_json([_plain(record) for record in found], whole=True)
        return
    now = datetime.now(UTC)
    print_table(
        "",
        ("id", "name", "begins", "kind", "scopes", "state", "used", "label"),
        (
            [
                record.id,
                record.user,
                f"{record.hint}…",
                record.kind,
                ", ".join(record.scopes),
                _state(record, now),
                ago(record.last_used_at) or "never",
                record.label,
            ]
            for record in found
        ),
        empty="no tokens; `headrace tokens create` makes one",
    )


@commands.command(epilog=examples("headrace tokens revoke 17"))
def revoke(
    id: Annotated[
        int, typer.Argument(metavar="TOKEN_ID", min=1, max=2**63 - 1, help="Id of the token.", show_default=False)
    ],
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Refuse a token from now on. Servers that have just seen it hear of it within seconds."""

    async def act(store: "Store") -> None:
        async with audited(store, "tokens.revoke", f"token/{id}"):
            if not await store.revoke_token(id):
                raise NotFound(
                    f"no token {id} that could be revoked: there is none, or it was revoked before; "
                    "`headrace tokens list --all` shows those that are there"
                )

    with_store(database, name, act)
    if json:
        print_json({"id": id, "revoked": True})
    else:
        console.print(f"token {id} is revoked", markup=False)


def _state(record: "TokenRecord", now: datetime) -> str:
    if record.revoked_at is not None:
        return "revoked"
    return "expired" if record.expires_at is not None and record.expires_at <= now else "good"


def _plain(record: "TokenRecord") -> dict[str, Any]:
    return {
        "id": record.id,
        "user": record.user,
        "kind": record.kind,
        "label": record.label,
        "hint": record.hint,
        "scopes": [scope.value for scope in record.scopes],
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "last_used_at": record.last_used_at,
        "revoked_at": record.revoked_at,
    }
