"""Fixtures of the guarantee suites. Each test names its promise; the harness proves at the end that it was kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guarantees.harness import Harness


@pytest.fixture
def harness(store_url: str, tmp_path: Path) -> Iterator[Harness]:
    """On both databases."""
    made = Harness(store_url, tmp_path)
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
