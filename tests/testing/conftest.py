"""Databases that have the schema already, and an app to test."""

from types import SimpleNamespace

import pytest

from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template
from tests.testing.shop import make_shop


@pytest.fixture
def shop() -> SimpleNamespace:
    return make_shop()
