"""A backend on an empty place, and what the cases do with it."""

import contextlib
import itertools
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pyarrow

from headrace.data.backend import Backend, Draft, ObjectMeta

pa: Any = cast("Any", pyarrow)

_CHILD = "headrace.testing.data_conformance.child"
CEILING = 100.0


class Stand:
    def __init__(
        self, make_backend: Callable[[], Backend], *, url: str | None, refused: frozenset[str], megabytes: int
    ) -> None:
        self._make_backend = make_backend
        self._open: list[Backend] = []
        self._numbers = itertools.count()
        self.url = url
        self.refused = refused
        self.megabytes = megabytes
        self.backend = self.another()

    def another(self) -> Backend:
        """Another backend on the same place."""
        made = self._make_backend()
        self._open.append(made)
        return made

    def close(self) -> None:
        while self._open:
            self._open.pop().close()

    @contextlib.contextmanager
    def away(self) -> Generator[None]:
        """While another process uses the place: nothing here holds it."""
        self.close()
        yield
        self.backend = self.another()

    def draft(self, id: str | None = None, **known: Any) -> Draft:
        """Ids that sort in the order in which they are asked for."""
        known.setdefault("created_at", datetime(2030, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC))
        return Draft(id=id or f"obj_{next(self._numbers):026}", **known)

    def write(self, table: Any, id: str | None = None, *, rows: int = 1000, **options: Any) -> ObjectMeta:
        """Store a table, in batches of so many rows."""
        return self.backend.write(self.draft(id), table.schema, table.to_batches(max_chunksize=rows), **options)

    def read(self, id: str, offset: int = 0, limit: int | None = None, columns: Sequence[str] | None = None) -> Any:
        batches = list(self.backend.read(id, offset=offset, limit=limit, columns=columns))
        schema = self.meta(id).schema
        wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        return pa.Table.from_batches(batches, wanted)

    def meta(self, id: str) -> ObjectMeta:
        found = self.backend.meta(id)
        assert found is not None, f"there is no object {id}"
        return found

    def ids(self) -> list[str]:
        return [meta.id for meta in self.backend.list()]

    @contextlib.contextmanager
    def child(self, *words: object) -> "Generator[subprocess.Popen[str]]":
        """Another process on the same place (see the module `child`); it is killed at the end if it still lives."""
        assert self.url is not None
        command = [sys.executable, "-m", _CHILD, self.url, *map(str, words)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def ask(self, *words: object) -> str:
        """What such a process prints when it has done its work."""
        with self.child(*words) as process:
            said, _ = process.communicate(timeout=CEILING)
        assert process.returncode == 0, f"{words} ended with {process.returncode}"
        return said.strip()


def numbers(rows: int, *, start: int = 0) -> Any:
    """A table in which every row is another one."""
    text = pa.array([f"row {n}" for n in range(rows)], pa.string())
    return pa.table({"n": pa.array(range(start, start + rows), pa.int64()), "text": text})


def same(found: Any, expected: Any) -> None:
    """Equal in schema and in every row; a NaN is equal to itself."""
    assert found.schema.equals(expected.schema), f"{found.schema} is not {expected.schema}"
    assert found.num_rows == expected.num_rows
    assert repr(found.to_pylist()) == repr(expected.to_pylist())


def refuses(kind: type[Exception], work: Callable[[], object], *words: str) -> None:
    """The work raises this, and its message has these words."""
    try:
        made = work()
    except kind as error:
        missing = [word for word in words if word not in str(error)]
        if not missing:
            return
        raise AssertionError(f"the message does not say {missing[0]!r}: {error}") from error
    raise AssertionError(f"{kind.__name__} was to be raised, and {made!r} came back")


def failing(batches: Iterable[Any], after: int, error: Exception) -> Generator[Any]:
    yield from itertools.islice(batches, after)
    raise error
