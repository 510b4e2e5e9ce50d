"""What a place for tables must do. Both kinds, files and ClickHouse, are behind this one face.

Methods block; the async face calls them from threads, several at once on one backend. Every object is written once and
never changes, so a reader needs no lock, and the number of a row is the same for everybody: that is what makes slices
disjoint and complete.

`pyarrow` ships no types, so its classes go by the names below.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

type Schema = Any  # pyarrow.Schema
type RecordBatch = Any  # pyarrow.RecordBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What is known of an object before its rows are.

    `job` and `task` made it (None: no task did); they are ids in the ledger that `owner` stands for, since several may
    share a place. `kept`: it stays when its job fails or is cancelled. `expires_at`: it
    may be dropped from then on, kept or not; None is never.
    """

    id: str
    created_at: datetime
    name: str | None = None
    owner: str | None = None
    job: int | None = None
    task: int | None = None
    kept: bool = False
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectMeta(Draft):
    """An object that is complete. `bytes` is what it takes where it lies, so compressed."""

    rows: int
    bytes: int
    schema: Schema


class Backend(Protocol):
    """One place. Raises NotFound for an id that it does not have, ObjectExists for one that is taken, DataError for
    what it cannot do or store, StoreUnavailable when it cannot be reached now."""

    @property
    def url(self) -> str:
        """For messages: without a password."""
        ...

    @property
    def shared(self) -> bool:
        """Whether other processes can use the same URL at the same time."""
        ...

    def write(
        self, draft: Draft, schema: Schema, batches: Iterable[RecordBatch], *, replace: bool = False
    ) -> ObjectMeta:
        """Store the batches, in this order, as they come: a few of them are in memory at a time.

        The object is there only when it is complete; an error of `batches`, or a crash, leaves nothing that can be
        seen, and the id can be used again. ObjectExists when the id is taken, and nothing changed. With `replace`, for
        a task that is repeated, the last complete one wins; a reader of the former one either finishes or is told.
        Batches have exactly this schema. None at all, or empty ones, make an empty object.
        """
        ...

    def concat(self, draft: Draft, parts: Sequence[str], *, replace: bool = False) -> ObjectMeta:
        """Make an object of the rows of others (at least one; one may come twice), in this order, atomically as
        `write` does. DataError when their schemas differ.

        The rows do not pass through this process where the place can do without it. The parts can be dropped
        afterwards, and the new object stays.
        """
        ...

    def write_run(
        self, draft: Draft, schema: Schema, parts: Sequence[Sequence[RecordBatch]], *, replace: bool = False
    ) -> ObjectMeta:
        """As `write`, of rows that are in memory and cut into parts, for `read_part`. `read` gives all of them.

        What is written twice with `replace` must be the same: who reads a part may get it from either.
        """
        ...

    def read_part(self, ids: Sequence[str], part: int) -> Iterator[RecordBatch]:
        """The rows of this part of each of these runs, run after run, all of one schema. A run that has fewer parts
        has none. What this costs must not depend on the number of parts: as many ask as there are."""
        ...

    def query(self, draft: Draft, sql: str, *, replace: bool = False) -> ObjectMeta:
        """Make an object of what a SQL query gives, run by the place itself. DataError where it cannot."""
        ...

    def meta(self, id: str) -> ObjectMeta | None:
        """What is known of an object, without reading its rows; None when there is no complete one of that id."""
        ...

    def read(
        self, id: str, *, offset: int = 0, limit: int | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[RecordBatch]:
        """The rows from `offset` on, at most `limit`, in the order in which they were written, every time.

        Reads what it needs and little more; memory is bounded whatever the size. Past the end there is nothing.
        DataError for a column that there is none of. The columns come in the order asked for.
        """
        ...

    def drop(self, id: str) -> bool:
        """Remove it; whether there was one. Gone at once for others, and twice is no error."""
        ...

    def list(self) -> Iterator[ObjectMeta]:
        """Every complete object, oldest id first. One that is dropped meanwhile may be left out."""
        ...

    def prune(self, before: datetime) -> int:
        """Remove what writers that died left behind, if it was last touched before this instant; how many things."""
        ...

    def close(self) -> None:
        """Let go of connections; the next use opens them again."""
        ...
