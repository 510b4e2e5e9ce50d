"""A heavy proof has one body and two sizes: HEADRACE_TEST_SIZE=small (make test) or full (make test-all).

`chaos` marks a test whose body asks for its size with `sized`; `slow` marks one that has only the full size.
"""

import os

import pytest

FULL = os.environ.get("HEADRACE_TEST_SIZE", "small") == "full"
# Set when a run at the small size has just passed: only what differs at full size is worth running.
ONLY_SIZED = FULL and bool(os.environ.get("HEADRACE_TEST_ONLY_SIZED"))


def sized[T](*, small: T, full: T) -> T:
    """The value for this run's size: `tasks = sized(small=500, full=20_000)`."""
    return full if FULL else small


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [item for item in items if _belongs(item)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if not _belongs(item)])
        items[:] = kept


def _belongs(item: pytest.Item) -> bool:
    slow = item.get_closest_marker("slow") is not None
    if ONLY_SIZED:
        return slow or item.get_closest_marker("chaos") is not None
    return FULL or not slow


def pytest_sessionfinish(session: pytest.Session) -> None:
    # pytest calls a run that selected nothing a failure; here it means that no test has a second size.
    if ONLY_SIZED and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK
