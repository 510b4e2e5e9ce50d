"""Blobs that no row refers to: of workers that died after the write, or whose report came too late."""

import asyncio
from collections.abc import Iterator
from itertools import islice

from headrace.core.task import TaskRecord
from headrace.store.base import Store
from headrace.store.blobs.base import Blobs, Found, is_draft, owner_of, stored_path
from headrace.store.moved import moved_to

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
        orphans = [path for path in old if is_draft(path)]
        # What another ledger wrote is that one's to look after.
        owners = {path: owner for path in old if (owner := owner_of(path)) and owner.ledger == self._blobs.ledger}
        if owners:
            # Of a ledger that has moved, the other one has the tasks, and refers to what was written here.
            has_moved = await moved_to(self._store) is not None
            records = await self._store.get(sorted({owner.task for owner in owners.values()}))
            for path, owner in owners.items():
                record = records.get(owner.task)
                if not (has_moved if record is None else _has(record, path, owner.claim_no)):
                    orphans.append(path)
        await asyncio.to_thread(lambda: [self._blobs.remove(path) for path in orphans])
        return len(orphans)


def _has(record: TaskRecord, path: str, claim_no: int) -> bool:
    """Whether a task refers to it, or may still do so: the claim that wrote it is the one that holds the task."""
    if record.result_ref is not None:
        return stored_path(record.result_ref) == path
    return not record.state.terminal and record.worker is not None and record.claim_no == claim_no
