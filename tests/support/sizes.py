"""A heavy proof has one body and two sizes: HEADRACE_TEST_SIZE=small (make test) or full (make test-all)."""

import os

import pytest

FULL = os.environ.get("HEADRACE_TEST_SIZE", "small") == "full"


def sized[T](*, small: T, full: T) -> T:
    """The value for this run's size: `tasks = sized(small=500, full=20_000)`."""
    return full if FULL else small


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if FULL:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
