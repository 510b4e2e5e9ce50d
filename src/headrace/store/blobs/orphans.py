"""Blobs that no row refers to: of workers that died after the write, or whose report came too late."""

import asyncio
from collections.abc import Iterator
from itertools import islice

from headrace.core.task import TaskRecord
from headrace.store.base import Store
from headrace.store.blobs.base import Blobs, Found, owner_of, stored_path

# Younger ones may belong to a report that is on its way, through an outage of the database, say.
OLD = 86_400.0
LOOKED_AT = 1000
_PAUSE = 60  # rounds between two searches through everything


class Orphans:
    """Goes through the result store a bounded part at a time."""

    def __init__(self, store: Store, blobs: Blobs, *, old: float = OLD) -> None:
        self._store = store
        self._blobs = blobs
        self._old = old
        self._search: Iterator[Found] | None = None
        self._rest = 0

    async def collect(self, *, limit: int = LOOKED_AT) -> int:
        """Look at up to `limit` blobs; how many were removed."""
        if self._search is None:
            if self._rest > 0:
                self._rest -= 1
                return 0
            self._search = self._blobs.search()
        search = self._search
        found = await asyncio.to_thread(lambda: list(islice(search, limit)))
        if len(found) < limit:
            self._search, self._rest = None, _PAUSE
        old = [blob.path for blob in found if blob.age > self._old]
        owners = {path: owner_of(path) for path in old}
        tasks = sorted({owner[0] for owner in owners.values() if owner is not None})
        records = await self._store.get(tasks) if tasks else {}
        orphans = [
            path for path, owner in owners.items() if owner is None or not _has(records.get(owner[0]), path, owner[1])
        ]
        await asyncio.to_thread(lambda: [self._blobs.remove(path) for path in orphans])
        return len(orphans)


def _has(record: TaskRecord | None, path: str, claim_no: int) -> bool:
    """Whether a task refers to it, or may still do so: the claim that wrote it is the one that holds the task."""
    if record is None:
        return False
    if record.result_ref is not None:
        return stored_path(record.result_ref) == path
    return not record.state.terminal and record.worker is not None and record.claim_no == claim_no
