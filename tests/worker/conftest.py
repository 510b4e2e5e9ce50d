"""Workers inside the test, on both stores."""

from pathlib import Path

import pytest

from tests.worker.bench import Bench


@pytest.fixture(scope="session")
def postgres_template(migrated_postgres_template: str) -> str:
    return migrated_postgres_template


@pytest.fixture(scope="session")
def sqlite_template(migrated_sqlite_template: Path) -> Path:
    return migrated_sqlite_template


@pytest.fixture
def bench(store_url: str) -> Bench:
    return Bench(store_url)
