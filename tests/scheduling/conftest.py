"""Stores and apps on a clock that the test moves."""

import os
from datetime import UTC, datetime

import pytest

from headrace.testing.clock import FakeClock
from tests.scheduling.firing import Bench
from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(instant=datetime(2030, 1, 1, 12, tzinfo=UTC))


@pytest.fixture
def bench(store_url: str, clock: FakeClock) -> Bench:
    return Bench(store_url, clock)


@pytest.fixture
def sqlite_bench(sqlite_url: str, clock: FakeClock) -> Bench:
    return Bench(sqlite_url, clock)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HEADRACE_") and not name.startswith("HEADRACE_TEST"):
            monkeypatch.delenv(name)
