"""A place for tables in a folder of the test, and apps on a fresh database."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import App
from headrace.data import Data, use
from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Data]:
    with use(Data(str(tmp_path / "tables"))) as made:
        yield made
    made.close()


@pytest.fixture
def app(sqlite_url: str) -> Iterator[App]:
    made = App(sqlite_url)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HEADRACE_") and not name.startswith("HEADRACE_TEST"):
            monkeypatch.delenv(name)
