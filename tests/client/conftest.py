"""An app on a fresh database of each kind, with its schema."""

import asyncio
import os
from collections.abc import Iterator

import pytest

from headrace import App
from headrace.store.connect import connect
from tests.support.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> Iterator[str]:
    """A database that has the schema: copying it is faster than migrating each time."""
    name = f"headrace_client_template_{os.getpid()}"
    url = postgres_server.create_database(name)

    async def upgrade() -> None:
        store = connect(url)
        try:
            await store.upgrade()
        finally:
            await store.close()

    asyncio.run(upgrade())
    yield name
    postgres_server.drop_database(name)


@pytest.fixture
def app(store_url: str) -> Iterator[App]:
    made = App(store_url)
    yield made
    made.close()


@pytest.fixture
def sqlite_app(sqlite_url: str) -> Iterator[App]:
    made = App(sqlite_url)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HEADRACE_") and not name.startswith("HEADRACE_TEST"):
            monkeypatch.delenv(name)
