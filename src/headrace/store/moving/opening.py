"""Both ends of a move, opened: what can be refused is refused here, before anything is written."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from headrace.core.errors import MoveError, SchemaError
from headrace.store.base import Store, StoreOptions
from headrace.store.connect import connect, masked_url, postgres_dsn, sqlite_path
from headrace.store.moving.source import Source
from headrace.store.sqlite.store import SQLiteStore

if TYPE_CHECKING:
    from headrace.store.postgres.receiving import Receiving
    from headrace.store.postgres.store import PostgresStore


@asynccontextmanager
async def opened(
    source_url: str, target_url: str, *, name: str = "headrace", upgrade: bool = True
) -> AsyncGenerator[tuple[Source, "Receiving"]]:
    """The SQLite ledger and the PostgreSQL one. `upgrade` makes the target's schema, or brings it up to date."""
    check_urls(source_url, target_url)
    options = StoreOptions(name=name, migrate=False, pool_size=2)
    source = cast("SQLiteStore", connect(source_url, options))
    target = cast("PostgresStore", connect(target_url, options))
    from headrace.store.postgres.receiving import Receiving

    await _same_schema(source, target, upgrade=upgrade)
    await source.open()
    try:
        await target.open()
        try:
            yield Source(source), Receiving(target.database)
        finally:
            await target.close()
    finally:
        await source.close()


def check_urls(source_url: str, target_url: str) -> None:
    """MoveError for what is no SQLite file, or no PostgreSQL database."""
    source, target = masked_url(source_url), masked_url(target_url)
    if source_url == target_url:
        raise MoveError(f"source and target are the same, {source}: name the database to move to")
    if not source_url.startswith("sqlite"):
        raise MoveError(f"only an SQLite ledger can be moved, not {source}; write sqlite:///file.db first")
    if not target_url.startswith("postgres"):
        raise MoveError(f"a ledger moves to PostgreSQL, not to {target}; write postgresql://user@host/database")
    path = sqlite_path(source_url)
    if path == ":memory:":
        raise MoveError("a database in memory belongs to its process and cannot be moved")
    if not Path(path).exists():
        raise MoveError(f"there is no {Path(path).absolute()}: nothing to move")


def shown_target(url: str) -> str:
    """By which a target is known and told."""
    return masked_url(postgres_dsn(url))


def without_password(url: str) -> str:
    """The URL for whoever has the password from elsewhere (PGPASSWORD, a password file)."""
    place, mark, query = re.sub(r"(://[^:/@]*):.*@", r"\1@", url).partition("?")
    kept = "&".join(part for part in query.split("&") if not part.startswith("password="))
    return f"{place}{mark if kept else ''}{kept}"


async def _same_schema(source: Store, target: Store, *, upgrade: bool) -> None:
    from headrace.store import migrations

    (head,) = migrations.heads()
    known = await source.schema_revision()
    if known is None:
        raise SchemaError(f"{source.url} has no ledger of this name: nothing to move")
    if known != head:
        raise SchemaError(
            f"{source.url} has the schema {known}, this code moves {head}: run `headrace db upgrade -d {source.url}` "
            "first, or use the headrace that made it"
        )
    found = await target.schema_revision()
    if found == head:
        return
    if not upgrade:
        raise SchemaError(
            f"{masked_url(target.url)} has the schema {found or 'of nobody'}, the source {head}: run `headrace db "
            "upgrade -d` with the target's URL, or leave out --no-upgrade"
        )
    await target.upgrade()
