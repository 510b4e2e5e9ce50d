"""Databases that already have the schema: migrated once, then copied, because there are hundreds of cases."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.store import migrations
from tests.support.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> Iterator[str]:
    name = f"headrace_template_{os.getpid()}"
    migrations.upgrade(postgres_server.create_database(name), name="headrace")
    yield name
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "headrace.db"
    migrations.upgrade(f"sqlite:///{path}", name="headrace")
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    shutil.copy(sqlite_template, tmp_path / "headrace.db")
    return f"sqlite:///{tmp_path / 'headrace.db'}"
