"""A directory."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from headrace.store.blobs.base import FOLDER, Found


class LocalBlobs:
    def __init__(self, root: Path, *, ledger: str) -> None:
        self.ledger = ledger
        self._root = root
        self.place = str(root)

    def write(self, path: str, data: bytes) -> None:
        target = self._root / path
        # The first part of a name: what a killed process leaves behind is found by the search, and removed by its age.
        draft = target.with_name(f"{target.name}.{os.getpid()}.part")
        while True:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
                break
            except FileNotFoundError:  # whoever removed the last blob in it removed the directory, too
                continue
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _sync(target.parent)
        _sync(target.parent.parent)

    def read(self, path: str) -> bytes:
        return (self._root / path).read_bytes()

    def remove(self, path: str) -> None:
        target = self._root / path
        target.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another blob is in it, or it is gone
            target.parent.rmdir()

    def search(self) -> Iterator[Found]:
        now = time.time()
        for folder in _entries(self._root / FOLDER):
            for entry in _entries(folder.path):
                with contextlib.suppress(FileNotFoundError):
                    path = f"{FOLDER}/{folder.name}/{entry.name}"
                    yield Found(path=path, age=now - entry.stat(follow_symlinks=False).st_mtime)


def _entries(folder: str | Path) -> "Iterator[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as found:
            yield from found
    except (FileNotFoundError, NotADirectoryError):
        return


def _sync(folder: Path) -> None:
    """A name is durable when its directory is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
