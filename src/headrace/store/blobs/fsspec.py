"""Any place that fsspec knows: s3://bucket/path, gs://…, memory://…. The only file that imports it."""

import contextlib
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from headrace.core.errors import MissingExtra, SettingsError
from headrace.store.blobs.base import FOLDER, Found


class FsspecBlobs:
    """Object stores write a whole object or none, so a write needs no name of its own first."""

    def __init__(self, url: str, *, ledger: str) -> None:
        self.ledger = ledger
        try:
            import fsspec
        except ImportError:
            raise MissingExtra(f"results in {url} need fsspec: pip install 'headrace[data]'") from None
        try:
            found: tuple[Any, str] = cast("Any", fsspec).core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise SettingsError(f"results_url {url!r} is not understood: {error}") from None
        self._system, root = found
        self._root = root.rstrip("/")
        self.place = url

    def write(self, path: str, data: bytes) -> None:
        target = f"{self._root}/{path}"
        self._system.makedirs(target.rpartition("/")[0], exist_ok=True)
        self._system.pipe_file(target, data)

    def read(self, path: str) -> bytes:
        return self._system.cat_file(f"{self._root}/{path}")

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._system.rm_file(f"{self._root}/{path}")

    def search(self) -> Iterator[Found]:
        now = time.time()
        self._system.invalidate_cache()
        for _, _, files in self._system.walk(f"{self._root}/{FOLDER}", detail=True):
            for entry in cast("dict[str, dict[str, Any]]", files).values():
                name = str(entry["name"])
                path = name[name.rindex(f"{FOLDER}/") :]
                yield Found(path=path, age=now - _written(self._system, entry))


def _written(system: Any, entry: dict[str, Any]) -> float:
    """Epoch seconds, as each kind of place calls them. One that cannot say is never old."""
    for key in ("mtime", "LastModified", "updated", "last_modified", "created"):
        value = entry.get(key)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                return datetime.fromisoformat(value).timestamp()
    return time.time()
