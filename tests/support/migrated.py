"""For the conftest of a folder whose tests need databases that have the schema: import both of these there."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgres_template(migrated_postgres_template: str) -> str:
    return migrated_postgres_template


@pytest.fixture(scope="session")
def sqlite_template(migrated_sqlite_template: Path) -> Path:
    return migrated_sqlite_template
