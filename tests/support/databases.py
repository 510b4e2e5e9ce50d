"""Fixtures that give a test an empty database.

- `postgres_server`   the session's PostgreSQL (`PostgresServer`)
- `private_postgres`  the same, when the test must stop or restart it (skips on an external server)
- `postgres_template` name of the database that new ones are copied from; None is an empty one
- `sqlite_template`   the same for SQLite: the path of a file
- `migrated_postgres_template`, `migrated_sqlite_template`  those that have headrace's schema, made once. To copy takes
  far less time than to migrate, so a folder whose tests need the schema overrides the two above with them
- `postgres_url`      a fresh PostgreSQL database, dropped afterwards
- `sqlite_url`        a fresh SQLite file
- `store_url`         both of them, one after the other: the test runs as [sqlite] and as [postgres]
"""

import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.store import migrations
from tests.support.parts import missing
from tests.support.postgres import PostgresMissing, PostgresServer, PrivatePostgres, running_server
from tests.support.sizes import FULL

_NUMBERS = itertools.count(1)
_POSTGRES_FIXTURES = {"postgres_server", "private_postgres", "postgres_url"}


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    try:
        running = running_server(fsync=FULL)
        server = running.__enter__()
    except PostgresMissing as absent:
        missing("postgres", str(absent))
    try:
        yield server
    finally:
        running.__exit__(None, None, None)


@pytest.fixture
def private_postgres(postgres_server: PostgresServer) -> Iterator[PrivatePostgres]:
    if not isinstance(postgres_server, PrivatePostgres):
        missing("postgres-control", "an external server is not restarted")
    yield postgres_server
    # The next test needs a server, whatever this one did to it.
    if not postgres_server.is_running():
        postgres_server.start()


@pytest.fixture(scope="session")
def postgres_template() -> str | None:
    return None


@pytest.fixture(scope="session")
def migrated_postgres_template(postgres_server: PostgresServer) -> Iterator[str]:
    name = f"headrace_migrated_{os.getpid()}"
    migrations.upgrade(postgres_server.create_database(name), name="headrace")
    yield name
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def sqlite_template() -> Path | None:
    return None


@pytest.fixture(scope="session")
def migrated_sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "headrace.db"
    migrations.upgrade(f"sqlite:///{path}", name="headrace")
    return path


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, postgres_template: str | None) -> Iterator[str]:
    name = f"headrace_test_{os.getpid()}_{next(_NUMBERS)}"
    yield postgres_server.create_database(name, postgres_template)
    postgres_server.drop_database(name)


@pytest.fixture
def sqlite_url(tmp_path: Path, sqlite_template: Path | None) -> str:
    path = tmp_path / "headrace.db"
    if sqlite_template is not None:
        shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(f"{request.param}_url")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _POSTGRES_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.postgres)
