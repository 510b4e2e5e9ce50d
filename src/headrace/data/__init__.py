"""Tables that tasks share: made once, passed by id, read by slices.

`Object` is a table, `View` a slice of one, `Data` the place where they are kept. Nothing here knows of clients, workers
or apps. `pyarrow` comes with headrace[data] and is imported when a table is touched, not before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.data.backend import Backend, Draft, ObjectMeta
    from headrace.data.catalog import Data
    from headrace.data.current import current_data, use
    from headrace.data.objects import Object, View
    from headrace.data.sources import SQL
    from headrace.data.sweeping import sweep

__all__ = ["SQL", "Backend", "Data", "Draft", "Object", "ObjectMeta", "View", "current_data", "sweep", "use"]

_PLACES = {
    "SQL": "headrace.data.sources",
    "Backend": "headrace.data.backend",
    "Data": "headrace.data.catalog",
    "Draft": "headrace.data.backend",
    "Object": "headrace.data.objects",
    "ObjectMeta": "headrace.data.backend",
    "View": "headrace.data.objects",
    "current_data": "headrace.data.current",
    "sweep": "headrace.data.sweeping",
    "use": "headrace.data.current",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'headrace.data' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
