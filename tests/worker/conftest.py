"""Workers inside the test, on both stores."""

import pytest

from tests.worker.bench import Bench


@pytest.fixture
def bench(store_url: str) -> Bench:
    return Bench(store_url)
