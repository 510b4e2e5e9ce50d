"""For tests of applications, and of stores and executors of others: what headrace proves itself with.

Ships with the package. Nothing here needs pytest, but for `headrace.testing.pytest_plugin`, which pytest itself loads.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.testing.asserting import EnqueuedTask, all_enqueued, assert_enqueued, assert_not_enqueued
    from headrace.testing.clock import FakeClock, MovableClock, SharedClock, SkippingClock
    from headrace.testing.databases import TemporaryDatabase, temporary_database
    from headrace.testing.draining import Drained, adrain, drain
    from headrace.testing.errors import NotOverridden, StillWaiting, TasksFailed, TooManyRuns
    from headrace.testing.inlining import InlineMode, inline
    from headrace.testing.overriding import Override, override

    refute_enqueued = assert_not_enqueued

__all__ = [
    "Drained",
    "EnqueuedTask",
    "FakeClock",
    "InlineMode",
    "MovableClock",
    "NotOverridden",
    "Override",
    "SharedClock",
    "SkippingClock",
    "StillWaiting",
    "TasksFailed",
    "TemporaryDatabase",
    "TooManyRuns",
    "adrain",
    "all_enqueued",
    "assert_enqueued",
    "assert_not_enqueued",
    "drain",
    "inline",
    "override",
    "refute_enqueued",
    "temporary_database",
]

# Where each name lives. Imported when it is first asked for: pytest loads the plugin in every run, of whatever project.
_PLACES = {
    "asserting": ("EnqueuedTask", "all_enqueued", "assert_enqueued", "assert_not_enqueued", "refute_enqueued"),
    "clock": ("FakeClock", "MovableClock", "SharedClock", "SkippingClock"),
    "databases": ("TemporaryDatabase", "temporary_database"),
    "draining": ("Drained", "adrain", "drain"),
    "errors": ("NotOverridden", "StillWaiting", "TasksFailed", "TooManyRuns"),
    "inlining": ("InlineMode", "inline"),
    "overriding": ("Override", "override"),
}


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"headrace.testing.{module}"), name)
            return value
    raise AttributeError(f"module 'headrace.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
