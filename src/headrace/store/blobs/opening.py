"""Which result store an app has."""

from pathlib import Path
from urllib.parse import unquote

from headrace.store.blobs.base import Blobs
from headrace.store.connect import ledger_mark, sqlite_path

NOWHERE = "none"


def open_blobs(url: str | None, *, database: str, name: str) -> Blobs | None:
    """The one that `url` names, with a part of its own for the app of that name. Without one: a directory beside an
    SQLite file, and none for PostgreSQL, whose workers may be on many machines. `none` is none.
    """
    if url is None:
        if not database.startswith("sqlite"):
            return None
        path = sqlite_path(database)
        if path == ":memory:":
            return None
        url = f"{path}.results"
    elif url == NOWHERE:
        return None
    ledger = ledger_mark(database, name)
    scheme, separator, rest = url.partition("://")
    if not separator or scheme in ("file", "local"):
        from headrace.store.blobs.local import LocalBlobs

        return LocalBlobs(Path(unquote(rest) if separator else url).absolute() / name, ledger=ledger)
    from headrace.store.blobs.fsspec import FsspecBlobs

    return FsspecBlobs(f"{url.rstrip('/')}/{name}", ledger=ledger)
