"""The server's side of the hot path: functions that a migration installs, one file each."""

from functools import cache
from importlib.resources import files

from headrace.store.queries import for_app


@cache
def load_functions(name: str = "headrace") -> list[str]:
    """CREATE OR REPLACE statements for the app called `name`, in the order in which they are installed.

    A function that a released version calls keeps its name and meaning; a new meaning is a new `_v2` beside it.
    """
    folder = files("headrace.store.postgres.sql.functions")
    entries = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    return [for_app(entry.read_text(encoding="utf-8"), name) for entry in entries]
