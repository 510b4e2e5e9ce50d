"""Files of tables wherever fsspec reaches: `s3://bucket/folder`, `gs://…`, `memory://…`."""

import contextlib
from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

import fsspec

from headrace.core.errors import DataError, MissingExtra
from headrace.data.formats.files import Entry, Load
from headrace.store.connect import masked_url


class FsspecFiles:
    """Two who write the same id at the same instant may both succeed, and the last one stands: most such places have no
    way to create a file only if there is none."""

    def __init__(self, url: str) -> None:
        self.url = masked_url(url)
        scheme = url.partition("://")[0]
        if scheme not in fsspec.available_protocols():
            raise DataError(f"data URL {self.url!r}: nothing reads {scheme}://; write a folder, or a URL of fsspec's")
        try:
            # A cached listing would show what others wrote a while ago.
            found = cast("Any", fsspec).url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            raise MissingExtra(f"{scheme}:// needs a package that is not installed: {error}") from error
        self._system: Any = found[0]
        self._root = cast("str", found[1]).rstrip("/")
        self.shared = scheme != "memory"

    @contextlib.contextmanager
    def write(self, folder: str, name: str) -> Generator[Any]:
        self._system.makedirs(self._path(folder), exist_ok=True)
        path = self._path(folder, name)
        try:
            with self._system.open(path, "wb") as file:
                yield file
        except BaseException:
            with contextlib.suppress(Exception):
                self._system.rm_file(path)
            raise

    def open(self, folder: str, name: str) -> contextlib.AbstractContextManager[Any]:
        return cast("contextlib.AbstractContextManager[Any]", self._system.open(self._path(folder, name), "rb"))

    def load(self, folder: str, name: str) -> bytes:
        return cast("bytes", self._system.cat_file(self._path(folder, name)))

    @contextlib.contextmanager
    def ranges(self, folder: str, name: str) -> Generator[Load]:
        path = self._path(folder, name)
        # An open file would read ahead, 5 MB at a time.
        yield lambda start, end: cast("bytes", self._system.cat_file(path, start=start, end=end))

    def publish(self, folder: str, name: str, content: bytes, *, replace: bool) -> None:
        target = self._path(folder, name)
        if not replace and self._system.exists(target):
            raise FileExistsError(target)
        self._system.makedirs(self._path(folder), exist_ok=True)
        draft = f"{target}.{uuid4().hex}"
        self._system.pipe_file(draft, content)
        self._system.mv(draft, target)

    def copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        self._system.makedirs(self._path(target[0]), exist_ok=True)
        self._system.cp_file(self._path(*source), self._path(*target))

    def size(self, folder: str, name: str) -> int:
        return int(self._system.size(self._path(folder, name)))

    def remove(self, folder: str, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._system.rm_file(self._path(folder, name))

    def remove_if_empty(self, folder: str) -> None:
        with contextlib.suppress(OSError, NotImplementedError):  # or it is a place without folders
            self._system.rmdir(self._path(folder))

    def folders(self) -> list[str]:
        return sorted(_last(item["name"]) for item in self._list("") if item["type"] == "directory")

    def entries(self, folder: str) -> list[Entry]:
        return [
            Entry(_last(item["name"]), self._touched(item["name"]))
            for item in self._list(folder)
            if item["type"] == "file"
        ]

    def _list(self, folder: str) -> list[dict[str, Any]]:
        try:
            return cast("list[dict[str, Any]]", self._system.ls(self._path(folder), detail=True))
        except FileNotFoundError:
            return []

    def _touched(self, path: str) -> datetime:
        try:
            found = cast("datetime", self._system.modified(path))
        except (NotImplementedError, FileNotFoundError):
            return datetime.max.replace(tzinfo=UTC)  # nobody can say that it is old
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def _path(self, *parts: str) -> str:
        return "/".join(part for part in (self._root, *parts) if part)


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
