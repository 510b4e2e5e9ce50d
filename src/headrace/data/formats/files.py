"""Where the files of tables lie: a folder of this machine. `fsspec` has the same face for other places."""

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast
from uuid import uuid4

import pyarrow

pa: Any = cast("Any", pyarrow)


type Load = Callable[[int, int], bytes]
"""The bytes of a file from one position to another."""


class Entry(NamedTuple):
    name: str
    touched: datetime


class Files(Protocol):
    """Folders with files in them, one deep. FileNotFoundError for what is not there."""

    @property
    def url(self) -> str: ...

    @property
    def shared(self) -> bool: ...

    def write(self, folder: str, name: str) -> contextlib.AbstractContextManager[Any]:
        """A binary file to write into; on leaving without an error it is durable. The folder is made."""
        ...

    def open(self, folder: str, name: str) -> contextlib.AbstractContextManager[Any]:
        """What a Parquet reader takes."""
        ...

    def load(self, folder: str, name: str) -> bytes: ...

    def ranges(self, folder: str, name: str) -> contextlib.AbstractContextManager[Load]:
        """To read some bytes of a file, which has them, and no others."""
        ...

    def publish(self, folder: str, name: str, content: bytes, *, replace: bool) -> None:
        """All or nothing, after everything else in the folder is durable. FileExistsError unless `replace`."""
        ...

    def copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        """Another file of the same content, which stays when the first is removed."""
        ...

    def size(self, folder: str, name: str) -> int: ...

    def remove(self, folder: str, name: str) -> None:
        """No error when it is gone already."""
        ...

    def remove_if_empty(self, folder: str) -> None:
        """No error when it is gone already, or is not empty."""
        ...

    def folders(self) -> list[str]:
        """Sorted by name."""
        ...

    def entries(self, folder: str) -> list[Entry]: ...


class LocalFiles:
    """A folder of this machine, or one that several machines mount."""

    shared = True

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = root.as_uri()

    @contextlib.contextmanager
    def write(self, folder: str, name: str) -> Generator[Any]:
        path = self.root / folder / name
        with self._create(path) as file:
            try:
                yield file
            except BaseException:
                with contextlib.suppress(OSError):
                    path.unlink()
                raise
            file.flush()
            os.fsync(file.fileno())

    def open(self, folder: str, name: str) -> contextlib.AbstractContextManager[Any]:
        # Arrow's own file: its reads do not wait for the interpreter's lock.
        return cast("contextlib.AbstractContextManager[Any]", pa.OSFile(str(self.root / folder / name), "rb"))

    def load(self, folder: str, name: str) -> bytes:
        with open(self._name(folder, name), "rb") as file:
            return file.read()

    @contextlib.contextmanager
    def ranges(self, folder: str, name: str) -> Generator[Load]:
        handle = os.open(self._name(folder, name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield lambda start, end: _read(handle, start, end)
        finally:
            os.close(handle)

    def publish(self, folder: str, name: str, content: bytes, *, replace: bool) -> None:
        path = self.root / folder / name
        draft = path.with_name(f"{name}.{uuid4().hex}")
        try:
            with self._create(draft) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                draft.replace(path)
            else:
                os.link(draft, path)  # unlike a rename it refuses to replace
            # The names of the other files are in the same folder, and were made before this one.
            _sync(path.parent)
        finally:
            draft.unlink(missing_ok=True)

    def copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        old, new = self.root.joinpath(*source), self.root.joinpath(*target)
        try:
            self._in_folder(new.parent, lambda: os.link(old, new))
        except OSError as error:
            # A file system without links, or a file that has as many as it may have.
            if error.errno not in (errno.EMLINK, errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.ENOSYS):
                raise
            with old.open("rb") as reader, self.write(*target) as writer:
                shutil.copyfileobj(reader, writer, 1 << 20)

    def size(self, folder: str, name: str) -> int:
        return (self.root / folder / name).stat().st_size

    def remove(self, folder: str, name: str) -> None:
        (self.root / folder / name).unlink(missing_ok=True)

    def remove_if_empty(self, folder: str) -> None:
        with contextlib.suppress(OSError):
            (self.root / folder).rmdir()

    def folders(self) -> list[str]:
        try:
            with os.scandir(self.root) as found:
                return sorted(entry.name for entry in found if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []

    def entries(self, folder: str) -> list[Entry]:
        found: list[Entry] = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.root / folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    # Of the inode, not of the content: a link to an old file was made now.
                    found.append(Entry(entry.name, datetime.fromtimestamp(entry.stat().st_ctime, UTC)))
        return found

    def _name(self, folder: str, name: str) -> str:
        """A `Path` takes as long to make as a small file to read; a sort reads one for each part and run."""
        return f"{self.root}/{folder}/{name}"

    def _create(self, path: Path) -> Any:
        return self._in_folder(path.parent, lambda: path.open("xb"))

    def _in_folder[T](self, folder: Path, make: Callable[[], T]) -> T:
        """Twice, because another process may remove the folder while it is still empty."""
        for last in (False, True):
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                _sync(folder.parent)
            try:
                return make()
            except FileNotFoundError:
                if last:
                    raise
        raise AssertionError("not reached")


def _read(handle: int, start: int, end: int) -> bytes:
    found = os.pread(handle, end - start, start)
    while len(found) < end - start:  # at most 2 GB come at a time
        more = os.pread(handle, end - start - len(found), start + len(found))
        if not more:
            raise OSError(errno.EIO, f"the file ends at {start + len(found)}, and was to have {end} bytes")
        found += more
    return found


def _sync(folder: Path) -> None:
    """What was made in a folder is there after a power cut only when the folder itself is written."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
