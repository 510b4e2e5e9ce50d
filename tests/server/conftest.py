"""A server for every test of this folder, on a database that has the schema.

`serve` makes one: `async with serve() as server: await server.operator.get("/api/v1/queues")`. It has a user of every
role, and a client for each; `server.nobody` sends no token. Tasks are those of tests/server/tasks.py, or your own App:
`serve(app=…)`. What it may be told is in ServerOptions: `serve(auth=False)`.
"""

import pytest

from tests.server.serving import Serve, Serving
from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template

__all__ = ["Serving"]


@pytest.fixture
def serve(store_url: str) -> Serve:
    """On SQLite and on PostgreSQL, one after the other."""
    return Serve(store_url)


@pytest.fixture
def serve_sqlite(sqlite_url: str) -> Serve:
    """On SQLite alone, for what has nothing to do with the database."""
    return Serve(sqlite_url)
