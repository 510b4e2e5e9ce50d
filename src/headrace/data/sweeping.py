"""Objects that nobody needs: of jobs that failed or were cancelled, expired ones, and what dead writers left."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.core.states import JobState
from headrace.data.backend import ObjectMeta
from headrace.data.catalog import Data
from headrace.store.base import Store

# Of these jobs, those whose objects may go.
type FailedJobs = Callable[[Collection[int]], Awaitable[Collection[int]]]

LEFTOVERS_AFTER = timedelta(days=1)
GRACE = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    objects: tuple[str, ...] = ()
    leftovers: int = 0


async def sweep(data: Data, failed_jobs: FailedJobs, *, now: datetime) -> Swept:
    """Drop what is due. Safe from many processes at once; what one of them dropped is no error for another.

    Of jobs, only those of the ledger that `data.owner` stands for. A job that the ledger has forgotten says nothing: it
    may have completed, so its objects stay until they expire.
    """
    found = await asyncio.to_thread(lambda: list(data.backend.list()))
    jobs = {meta.job for meta in found if meta.job is not None and meta.owner == data.owner and not meta.kept}
    failed = frozenset(await failed_jobs(jobs)) if jobs else frozenset[int]()
    dropped = tuple([meta.id for meta in due(found, failed, owner=data.owner, now=now) if await data.adrop(meta.id)])
    leftovers = await asyncio.to_thread(data.backend.prune, now - LEFTOVERS_AFTER)
    return Swept(objects=dropped, leftovers=leftovers)


def due(found: Iterable[ObjectMeta], failed: Collection[int], *, owner: str | None, now: datetime) -> list[ObjectMeta]:
    """Those to drop: expired, or made by one of these jobs and not kept."""
    return [
        meta
        for meta in found
        if (meta.expires_at is not None and meta.expires_at <= now)
        or (not meta.kept and meta.owner == owner and meta.job in failed)
    ]


def failed_jobs_of(store: Store, *, now: datetime, grace: timedelta = GRACE) -> FailedJobs:
    """Jobs that failed or were cancelled a while ago: who retries one at once finds what its tasks made before."""

    async def failed(jobs: Collection[int]) -> list[int]:
        return [
            record.id
            for record in await store.get_jobs(sorted(jobs))
            if record.state in (JobState.FAILED, JobState.CANCELLED)
            and (record.completed_at is None or record.completed_at <= now - grace)
        ]

    return failed
