"""Fixtures of the guarantee suites. Each test names its promise; the harness proves at the end that it was kept."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guarantees.harness import Harness
from tests.guarantees.ledgers import empty, prepare
from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template
from tests.support.postgres import PostgresServer
from tests.support.sizes import sized


@pytest.fixture
def harness(store_url: str, tmp_path: Path) -> Iterator[Harness]:
    """On both databases."""
    made = Harness(store_url, tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["sqlite", *sized(small=[], full=[pytest.param("postgres", marks=pytest.mark.postgres)])])
def either_harness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    """On both databases at full size; what is tried hardly depends on which, so the small size does with SQLite."""
    made = Harness(request.getfixturevalue(f"{request.param}_url"), tmp_path)
    yield made
    made.close()


@pytest.fixture
def sqlite_harness(sqlite_url: str, tmp_path: Path) -> Iterator[Harness]:
    made = Harness(sqlite_url, tmp_path)
    yield made
    made.close()


@pytest.fixture
def postgres_harness(postgres_url: str, tmp_path: Path) -> Iterator[Harness]:
    made = Harness(postgres_url, tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A guarded ledger for all tests of a module that work below the worker."""
    url = f"sqlite:///{tmp_path_factory.mktemp('shared') / 'headrace.db'}"
    prepare(url)
    return url


@pytest.fixture(scope="module")
def shared_postgres_url(
    postgres_server: PostgresServer, postgres_template: str, request: pytest.FixtureRequest
) -> Iterator[str]:
    name = f"headrace_shared_{os.getpid()}_{request.node.name.partition('.')[0]}"
    url = postgres_server.create_database(name, postgres_template)
    prepare(url)
    yield url
    postgres_server.drop_database(name)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def clean_url(request: pytest.FixtureRequest) -> str:
    """The module's ledger on both databases, emptied."""
    url: str = request.getfixturevalue(f"shared_{request.param}_url")
    empty(url)
    return url
