"""Databases that already have the schema: migrated once, then emptied or copied, as there are hundreds of cases."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.store import migrations
from tests.support.postgres import PostgresServer

_EMPTY = """
DO $$ BEGIN
    EXECUTE (
        SELECT 'TRUNCATE ' || string_agg(format('headrace.%I', tablename), ', ') FROM pg_tables
        WHERE schemaname = 'headrace' AND tablename NOT IN ('meta', 'alembic_version')
    );
END $$
"""


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: PostgresServer) -> Iterator[str]:
    name = f"headrace_conformance_{os.getpid()}"
    url = postgres_server.create_database(name)
    migrations.upgrade(url, name="headrace")
    yield name
    postgres_server.drop_database(name)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, migrated_postgres: str) -> str:
    empty_postgres(postgres_server, migrated_postgres)
    return postgres_server.url(migrated_postgres)


def empty_postgres(server: PostgresServer, database: str) -> None:
    with server.connect(database) as connection:
        connection.execute(_EMPTY)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "headrace.db"
    migrations.upgrade(f"sqlite:///{path}", name="headrace")
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    shutil.copy(sqlite_template, tmp_path / "headrace.db")
    return f"sqlite:///{tmp_path / 'headrace.db'}"
