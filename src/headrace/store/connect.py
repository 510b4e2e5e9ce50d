"""From a URL to a store. The driver of a database is imported only when its URL is used."""

import re
from hashlib import blake2s
from typing import cast
from urllib.parse import unquote, urlsplit

from headrace.core.errors import MissingExtra, SettingsError
from headrace.store.base import Store, StoreOptions

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_EXAMPLES = "sqlite:///headrace.db, postgresql://user@host/database, or https://host of a headrace server"


def connect(url: str, options: StoreOptions | None = None) -> Store:
    """A store for this URL; it is not opened yet. Raises SettingsError for a URL that no store understands."""
    options = options or StoreOptions()
    if not _NAME.fullmatch(options.name):
        raise SettingsError(
            f"app name {options.name!r} cannot be a schema: use lower-case letters, digits and _, a letter first"
        )
    scheme = urlsplit(url).scheme.partition("+")[0] if "://" in url else ""
    match scheme:
        case "sqlite":
            from headrace.store.sqlite import SQLiteStore

            return SQLiteStore(sqlite_path(url), options)
        case "postgresql" | "postgres":
            try:
                from headrace.store.postgres import PostgresStore
            except ImportError as error:
                raise MissingExtra(
                    f"{scheme}:// needs the PostgreSQL driver: pip install 'headrace[postgres]'"
                ) from error
            return PostgresStore(postgres_dsn(url), options)
        case "http" | "https":
            from headrace.store.http import HttpStore

            return cast("Store", HttpStore(url, options))
        case _:
            raise SettingsError(f"database URL {masked_url(url)!r} is not understood; write {_EXAMPLES}")


def sqlite_path(url: str) -> str:
    """`sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://` or `sqlite:///:memory:` as a path."""
    parts = urlsplit(url)
    if parts.netloc or parts.query:
        raise SettingsError(
            f"SQLite URL {url!r} has a host or options; write sqlite:///file.db or sqlite:////folder/file.db"
        )
    path = unquote(parts.path).removeprefix("/")
    return path or ":memory:"


def postgres_dsn(url: str) -> str:
    """The URL for asyncpg: without SQLAlchemy's driver suffix."""
    scheme, rest = url.split("://", 1)
    if scheme.partition("+")[2] not in ("", "asyncpg", "psycopg", "psycopg2"):
        raise SettingsError(f"PostgreSQL URL has an unknown driver {scheme!r}; write postgresql://user@host/database")
    return "postgresql://" + rest


def masked_url(url: str) -> str:
    """The URL for messages and logs: without its password, wherever that stands."""
    return re.sub(r"([?&]password=)[^&]*", r"\1***", re.sub(r"(://[^:/@]*):.*@", r"\1:***@", url))


def ledger_mark(url: str, name: str) -> str:
    """Stands for a ledger where several keep things in one place: each has tasks and jobs of the same numbers."""
    return blake2s(f"{masked_url(url)} {name}".encode(), digest_size=8).hexdigest()
