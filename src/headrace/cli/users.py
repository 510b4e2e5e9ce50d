"""`headrace users`: who may do what through a server."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.auditing import audited
from headrace.cli.failures import CommandError
from headrace.cli.helping import examples
from headrace.cli.output import ago, console, print_json, print_table
from headrace.cli.target import Database, Json, Namespace, with_store
from headrace.core.accounts import Role

if TYPE_CHECKING:
    from collections.abc import Generator

    from headrace.core.accounts import UserRecord
    from headrace.store.base import Store

commands = typer.Typer(no_args_is_help=True, help="Let people in by a server, with a role; shut them out again.")

UserName = Annotated[str, typer.Argument(metavar="USER", help="Name of the user.", show_default=False)]
FromStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from the first line of stdin.")]


@commands.command(epilog=examples("headrace users add ada --role operator", "headrace users add ci --no-password"))
def add(
    user: UserName,
    role: Annotated[
        Role,
        typer.Option(
            help="viewer: sees everything. user: submits, sees and controls its own. operator: controls everything. "
            "admin: users, tokens and the audit log as well."
        ),
    ] = Role.USER,
    no_password: Annotated[bool, typer.Option("--no-password", help="No login: only by tokens.")] = False,
    password_stdin: FromStdin = False,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Let somebody in. Asks for a password, which is never an argument: other users of the machine see those."""
    from headrace.store.account_rows import check_user_name

    if no_password and password_stdin:
        raise CommandError("--no-password and --password-stdin contradict each other")
    with _usage():
        check_user_name(user)  # before anybody is asked for a password
    hashed = None if no_password else _hashed(stdin=password_stdin)

    async def act(store: "Store") -> "UserRecord":
        async with audited(store, "users.add", f"user/{user}", {"role": role.value}):
            return await store.add_user(user, role, password=hashed)

    _print(with_store(database, name, act), "may come in", json=json)


@commands.command("list", epilog=examples("headrace users list --json"))
def list_users(database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """List users with their roles."""
    found = with_store(database, name, lambda store: store.users())
    if json:
        print_json([_plain(record) for record in found])
        return
    print_table(
        "",
        ("name", "role", "login", "state", "since"),
        (
            [
                record.name,
                record.role,
                "password" if record.password is not None else "tokens only",
                _state(record),
                ago(record.created_at),
            ]
            for record in found
        ),
        empty="no users; a server makes the first admin when it starts, or `headrace users add`",
    )


@commands.command(epilog=examples("headrace users role ada admin"))
def role(
    user: UserName,
    new: Annotated[Role, typer.Argument(metavar="ROLE", help="viewer, user, operator or admin.", show_default=False)],
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Give a user another role. The last enabled admin stays one."""

    async def act(store: "Store") -> "UserRecord":
        async with audited(store, "users.change", f"user/{user}", {"role": new.value}):
            return await store.change_user(user, role=new)

    _print(with_store(database, name, act), f"is {new.value} from now on", json=json)


@commands.command(epilog=examples("headrace users password ada", "headrace users password ada --password-stdin"))
def password(
    user: UserName,
    password_stdin: FromStdin = False,
    database: Database = None,
    name: Namespace = "headrace",
    json: Json = False,
) -> None:
    """Give a user another password. Ends every session of theirs, and lifts a lock."""
    hashed = _hashed(stdin=password_stdin)

    async def act(store: "Store") -> "UserRecord":
        async with audited(store, "users.change", f"user/{user}", {"password": "changed"}):
            return await store.change_user(user, password=hashed)

    _print(with_store(database, name, act), "has another password; their sessions have ended", json=json)


@commands.command(epilog=examples("headrace users disable ada"))
def disable(user: UserName, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Shut a user out: sessions end, tokens are refused. Their tasks go on. The last enabled admin stays."""
    _print(_set_disabled(database, name, user, disabled=True), "is shut out", json=json)


@commands.command(epilog=examples("headrace users enable ada"))
def enable(user: UserName, database: Database = None, name: Namespace = "headrace", json: Json = False) -> None:
    """Let a user in again, with the tokens they had."""
    _print(_set_disabled(database, name, user, disabled=False), "may come in again", json=json)


def _set_disabled(database: str | None, name: str, user: str, *, disabled: bool) -> "UserRecord":
    async def act(store: "Store") -> "UserRecord":
        async with audited(store, "users.change", f"user/{user}", {"disabled": disabled}):
            return await store.change_user(user, disabled=disabled)

    return with_store(database, name, act)


def _hashed(*, stdin: bool) -> str:
    """Of what is typed, twice, or of the first line of stdin."""
    import sys

    if stdin:
        typed = sys.stdin.readline().removesuffix("\n").removesuffix("\r")
        if not typed:
            raise CommandError("--password-stdin: there is nothing on the first line of stdin")
    elif not sys.stdin.isatty():
        raise CommandError("nobody can be asked for a password here: use --password-stdin")
    else:
        typed = str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    # Imported here: argon2 is for servers, and for whoever gives somebody a password.
    from headrace.server.auth.passwords import hash_password

    with _usage():
        return hash_password(typed)


@contextmanager
def _usage() -> "Generator[None]":
    """What is wrong with a name or a password is wrong with the command."""
    from headrace.core.errors import OptionError

    try:
        yield
    except OptionError as error:
        raise CommandError(str(error)) from None


def _state(record: "UserRecord") -> str:
    if record.disabled:
        return "disabled"
    if record.locked_until is not None and (left := ago(record.locked_until)).startswith("in "):
        return f"locked, ends {left}"
    return "enabled"


def _plain(record: "UserRecord") -> dict[str, Any]:
    """Without the hash: nobody reads it, and many would keep it."""
    return {
        "name": record.name,
        "role": record.role.value,
        "has_password": record.password is not None,
        "disabled": record.disabled,
        "failed_logins": record.failed_logins,
        "locked_until": record.locked_until,
        "created_at": record.created_at,
        "changed_at": record.changed_at,
    }


def _print(record: "UserRecord", said: str, *, json: bool) -> None:
    if json:
        print_json(_plain(record))
    else:
        console.print(f"user {record.name} ({record.role.value}) {said}", markup=False)
