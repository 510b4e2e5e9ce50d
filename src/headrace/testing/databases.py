"""Databases for one test each: empty, with the schema, gone afterwards."""

import secrets
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from headrace.store.connect import masked_url


class TemporaryDatabase(NamedTuple):
    url: str
    name: str  # PostgreSQL schema, SQLite table prefix


@contextmanager
def temporary_database(server: str | None = None, *, name: str = "headrace") -> Generator[TemporaryDatabase]:
    """An SQLite file of its own, or, where `server` is a PostgreSQL URL, a schema of its own in that database.

    Two at once never meet, whatever process made them: safe under pytest-xdist.
    """
    if server is None:
        with tempfile.TemporaryDirectory(prefix="headrace-test-") as folder:
            path = Path(folder) / "headrace.db"
            path.write_bytes(_empty_file(name))
            yield TemporaryDatabase(f"sqlite:///{path}", name)
        return
    if not server.startswith("postgres"):
        raise ValueError(f"{masked_url(server)} is no PostgreSQL URL; without one the database is a file")
    schema = f"{name[:24]}_{secrets.token_hex(6)}"
    from headrace.store import migrations

    migrations.upgrade(server, name=schema)
    try:
        yield TemporaryDatabase(server, schema)
    finally:
        migrations.drop(server, name=schema)


_FILES: dict[str, bytes] = {}


def _empty_file(name: str) -> bytes:
    """A database with the schema. It is migrated once in a process: a copy takes a hundredth of the time."""
    if name not in _FILES:
        from headrace.store import migrations

        with tempfile.TemporaryDirectory(prefix="headrace-test-") as folder:
            path = Path(folder) / "headrace.db"
            migrations.upgrade(f"sqlite:///{path}", name=name)
            _FILES[name] = path.read_bytes()
    return _FILES[name]
