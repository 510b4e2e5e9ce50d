"""Tasks on their way to the ledger: in memory while they are few, beyond that in a temporary file."""

import os
import pickle
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import IO, Any, overload

from headrace.core.task import NewTask

IN_MEMORY = 5000  # tasks; a few megabytes
BATCH = 500  # what is written, and read again, at once


class Spool(Sequence[NewTask]):
    """Grows at its end, is read from its beginning, as often as one likes. The file is gone with the spool."""

    def __init__(self, *, in_memory: int = IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._recent: list[NewTask] = []  # behind those in the file
        self._file: IO[bytes] | None = None
        self._end = 0
        self._batches: list[tuple[int, int, int]] = []  # first place, offset, size
        self._stored = 0  # tasks in the file

    def append(self, task: NewTask) -> int:
        """Its place."""
        self._recent.append(task)
        if len(self._recent) >= self._in_memory + BATCH:
            self._write()
        return self._stored + len(self._recent) - 1

    def __len__(self) -> int:
        return self._stored + len(self._recent)

    def __iter__(self) -> Iterator[NewTask]:
        for number in range(len(self._batches)):
            yield from self._read(number)
        yield from self._recent

    @overload
    def __getitem__(self, index: int) -> NewTask: ...
    @overload
    def __getitem__(self, index: slice) -> list[NewTask]: ...
    def __getitem__(self, index: int | slice) -> NewTask | list[NewTask]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        if place >= self._stored:
            return self._recent[place - self._stored]
        number = bisect_right(self._batches, place, key=lambda batch: batch[0]) - 1
        return self._read(number)[place - self._batches[number][0]]

    @property
    def spilled(self) -> int:
        """How many are in the file."""
        return self._stored

    def _write(self) -> None:
        """All but the newest: those may be asked for soon."""
        if self._file is None:
            import tempfile  # costs whoever plans little nothing

            self._file = tempfile.TemporaryFile(prefix="headrace-plan-")  # noqa: SIM115 -- lives as long as the spool
        while len(self._recent) > BATCH:
            batch, self._recent = self._recent[:BATCH], self._recent[BATCH:]
            data = pickle.dumps(batch, protocol=pickle.HIGHEST_PROTOCOL)
            self._file.write(data)
            self._batches.append((self._stored, self._end, len(data)))
            self._stored += len(batch)
            self._end += len(data)
        self._file.flush()

    def _read(self, number: int) -> list[NewTask]:
        assert self._file is not None
        _, offset, size = self._batches[number]
        # Without moving the file's own position: several may read at once, and one may write.
        data = os.pread(self._file.fileno(), size, offset)
        return pickle.loads(data)

    def __del__(self) -> None:
        file: Any = getattr(self, "_file", None)
        if file is not None:
            file.close()
