"""An app on a fresh database of each kind, with its schema."""

import os
from collections.abc import Iterator

import pytest

from headrace import App
from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template


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
