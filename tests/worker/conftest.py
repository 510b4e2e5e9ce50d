"""Workers inside the test, on both stores."""

import pytest

from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template
from tests.worker.bench import Bench


@pytest.fixture
def bench(store_url: str) -> Bench:
    return Bench(store_url)
