"""What a result store can do, and how a row refers to what is in it.

A reference is `results/{task}/{claim_no}-{ledger}#size=…&sha256=…`: whoever reads is told when it is not what was
written. Each claim writes a path of its own, so a late worker never overwrites the result of the one that followed it;
and so does each ledger, because several may share a place, or one may have moved to another database.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from urllib.parse import parse_qs

from headrace.core.errors import ResultError

FOLDER = "results"


class BlobMissing(ResultError):
    """It is not there: removed, or stored where this process does not look."""


class BlobCorrupt(ResultError):
    """It is not what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A blob that a search came by."""

    path: str
    age: float  # seconds since it was written


class Blobs(Protocol):
    """A place for blobs by path. Every method blocks: call it from a thread."""

    place: str  # for people
    ledger: str  # a mark of the ledger whose results are written here

    def write(self, path: str, data: bytes) -> None:
        """Whole or not at all; durable when it returns. The same path twice is the same blob twice."""
        ...

    def read(self, path: str) -> bytes:
        """FileNotFoundError when it is not there."""
        ...

    def remove(self, path: str) -> None:
        """It may be gone already."""
        ...

    def search(self) -> Iterator[Found]:
        """Everything below FOLDER, in whatever order, read as it goes."""
        ...


class Owner(NamedTuple):
    """Who wrote a blob."""

    task: int
    claim_no: int
    ledger: str


_PATH = re.compile(rf"{FOLDER}/([0-9]+)/([0-9]+)-([0-9a-z]+)")


def path_of(task: int, claim_no: int, ledger: str) -> str:
    return f"{FOLDER}/{task}/{claim_no}-{ledger}"


def owner_of(path: str) -> Owner | None:
    """None when it is no result."""
    found = _PATH.fullmatch(path)
    return None if found is None else Owner(int(found[1]), int(found[2]), found[3])


def is_draft(path: str) -> bool:
    """Whether it is what a killed writer left."""
    return path.startswith(f"{FOLDER}/") and path.endswith(".part")


def stored_path(reference: str) -> str:
    return reference.partition("#")[0]


async def keep(blobs: Blobs, path: str, text: str) -> str:
    """Write it; the reference."""

    def write() -> str:
        data = text.encode()
        blobs.write(path, data)
        return f"{path}#size={len(data)}&sha256={hashlib.sha256(data).hexdigest()}"

    return await asyncio.to_thread(write)


async def fetch(blobs: Blobs, reference: str, *, what: str) -> str:
    """What a reference stands for. BlobMissing, or BlobCorrupt; `what` says whose it is."""
    return await asyncio.to_thread(_fetch, blobs, reference, what)


def _fetch(blobs: Blobs, reference: str, what: str) -> str:
    path, _, rest = reference.partition("#")
    try:
        data = blobs.read(path)
    except FileNotFoundError:
        raise BlobMissing(
            f"{what} is not in the result store {blobs.place} (as {path}): it was removed when its time was over, or "
            "this app looks elsewhere than the worker that stored it (HEADRACE_RESULTS_URL)"
        ) from None
    said = {name: values[0] for name, values in parse_qs(rest).items()}
    size, digest = said.get("size"), said.get("sha256")
    if size is not None and int(size) != len(data):
        raise BlobCorrupt(f"{what} is damaged: {path} in {blobs.place} has {len(data):,} bytes, not {int(size):,}")
    if digest is not None and hashlib.sha256(data).hexdigest() != digest:
        raise BlobCorrupt(f"{what} is damaged: the checksum of {path} in {blobs.place} is not the one of its result")
    return data.decode()


async def remove(blobs: Blobs, references: tuple[str, ...]) -> None:
    """One that cannot be removed now is found again by the search for those that nobody has."""

    def act() -> None:
        for reference in references:
            blobs.remove(stored_path(reference))

    await asyncio.to_thread(act)
