"""Which place `Object.create` and `Object.open` mean."""

import contextlib
from collections.abc import Generator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from headrace.core.errors import NoCurrentTask, SettingsError
from headrace.executors.context import running

if TYPE_CHECKING:
    from headrace.data.catalog import Data


_used: ContextVar["Data | None"] = ContextVar("headrace_data", default=None)
_apps: WeakSet[Any] = WeakSet()


@contextlib.contextmanager
def use(place: Any) -> Generator["Data"]:
    """`with use(app):`, or a `Data`: objects within are made and found there."""
    found = _data_of(place)
    token = _used.set(found)
    try:
        yield found
    finally:
        _used.reset(token)


def offer(app: Any) -> None:
    """Make an app known in this process, for code that names none."""
    _apps.add(app)


def current_data() -> "Data":
    """What `use` says; else that of the app of the task that runs here; else that of the apps of this process, if it is
    the same for all."""
    used = _used.get()
    if used is not None:
        return used
    source = getattr(running.get(), "_source", None)  # where the worker has its tasks from: an app
    if hasattr(source, "data"):
        return _data_of(source)
    found: dict[str, Data] = {}
    refused: SettingsError | None = None
    for app in list(_apps):
        try:
            found[app.data.url] = app.data
        except SettingsError as error:  # it has no place
            refused = error
    if len(found) == 1:
        return next(iter(found.values()))
    if refused is not None and not found:
        raise refused
    why = f"the apps of this process keep theirs in {len(found)} places" if found else "this process has no app"
    raise NoCurrentTask(f"it is not clear which objects are meant, for {why}: write `with use(app):`, or give data=")


def _data_of(place: Any) -> "Data":
    return getattr(place, "data", place)
